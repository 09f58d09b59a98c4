/* SPDX-License-Identifier: ISC */

/*
 * egressctl: keys of an operator, or lines of a program that answers in one's
 * stead.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "questions.h"

void
keys_init(struct keys *ky)
{
	memset(ky, 0, sizeof(*ky));
	ky->ky_tty = tty_raw(TTY_KEYS) == 0;
}

/* Nothing more can be read: the input has ended, or the buffer is full. */
int
keys_full(const struct keys *ky)
{
	return ky->ky_ended || ky->ky_len == sizeof(ky->ky_buf);
}

void
keys_read(struct keys *ky)
{
	ssize_t	n;

	n = read(STDIN_FILENO, ky->ky_buf + ky->ky_len,
	    sizeof(ky->ky_buf) - ky->ky_len);
	if (n > 0)
		ky->ky_len += (size_t)n;
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		ky->ky_ended = 1;
}

static void
consume(struct keys *ky, size_t len)
{
	ky->ky_len -= len;
	memmove(ky->ky_buf, ky->ky_buf + len, ky->ky_len);
}

/* "a", or "a 17" for the question 17 and no other. */
static void
parse_line(const char *line, size_t len, struct press *pr)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	pr->pr_key = '?';
	if (len == 0 || (len > 1 && line[1] != ' ') ||
	    len - 1 > sizeof(pr->pr_id))
		return;
	pr->pr_key = line[0];
	if (len > 2) {
		memcpy(pr->pr_id, line + 2, len - 2);
		pr->pr_id[len - 2] = '\0';
	}
}

/* The next press, which is taken from the buffer; pr_key is 0 without one. */
void
keys_next(struct keys *ky, struct press *pr)
{
	char	*nl;
	size_t	 len;

	memset(pr, 0, sizeof(*pr));
	if (ky->ky_len == 0)
		return;
	if (ky->ky_tty) {
		pr->pr_key = ky->ky_buf[0];
		consume(ky, 1);
		return;
	}
	if ((nl = memchr(ky->ky_buf, '\n', ky->ky_len)) != NULL) {
		len = (size_t)(nl - ky->ky_buf);
		parse_line(ky->ky_buf, len, pr);
		consume(ky, len + 1);
	} else if (keys_full(ky)) {
		/* The last line may lack its newline; a long one is refused. */
		parse_line(ky->ky_buf, ky->ky_len, pr);
		ky->ky_len = 0;
	}
}
