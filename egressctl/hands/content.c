/* SPDX-License-Identifier: ISC */

/*
 * egressctl: bytes of files and commands in a sandbox, which are hostile, on
 * their way out.  To a file or a pipe they go as they are; a terminal is shown
 * what would drive it; and with -j they are strings of JSON.
 */

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hands.h"
#include "show.h"

/* Our own output may have been made non-blocking by whoever shares it. */
int
write_all(int fd, const char *data, size_t len)
{
	struct pollfd	pfd = { .fd = fd, .events = POLLOUT };
	ssize_t		n;

	while (len > 0) {
		n = write(fd, data, len);
		if (n == -1 && errno == EAGAIN)
			poll(&pfd, 1, -1);
		else if (n == -1 && errno != EINTR)
			return -1;
		else if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* `member' is that of a line of JSON, which goes to standard output. */
void
content_init(struct content *ct, int fd, const struct invocation *in,
    const char *member)
{
	memset(ct, 0, sizeof(*ct));
	ct->ct_fd = fd;
	ct->ct_json = in->in_output == &output_json ? member : NULL;
	ct->ct_seen = isatty(fd);
}

static FILE *
content_file(const struct content *ct)
{
	return ct->ct_fd == STDERR_FILENO ? stderr : stdout;
}

static void
put_json(struct content *ct, const char *data, size_t len)
{
	struct jsonw	 w;
	const char	*line;
	size_t		 n;

	jsonw_init(&w, JSONW_ESCAPED(len) + 64);
	jsonw_object(&w);
	jsonw_key(&w, ct->ct_json);
	jsonw_string(&w, data, len);
	jsonw_end(&w);
	if ((line = jsonw_finish(&w, &n)) != NULL) {
		fwrite(line, 1, n, stdout);
		putchar('\n');
		fflush(stdout);
	} else {
		errno = ENOMEM;
		ct->ct_failed = 1;
	}
	jsonw_free(&w);
}

/* The end of what came may be half a character: it waits for the rest. */
static void
put_seen(struct content *ct, const char *data, size_t len)
{
	size_t	 taken;
	char	*all;

	if ((all = malloc(ct->ct_len + len)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	memcpy(all, ct->ct_rest, ct->ct_len);
	memcpy(all + ct->ct_len, data, len);
	len += ct->ct_len;
	taken = visible_put_content(content_file(ct), all, len);
	ct->ct_len = len - taken;
	memcpy(ct->ct_rest, all + taken, ct->ct_len);
	free(all);
	fflush(content_file(ct));
}

/* 0, or -1 if it cannot be written; then errno is of the first failure. */
int
content_put(struct content *ct, const char *data, size_t len)
{
	if (ct->ct_failed)
		return -1;
	if (ct->ct_json != NULL)
		put_json(ct, data, len);
	else if (ct->ct_seen)
		put_seen(ct, data, len);
	else if (write_all(ct->ct_fd, data, len) == -1)
		ct->ct_failed = 1;
	if (ferror(content_file(ct)))
		ct->ct_failed = 1;
	return ct->ct_failed ? -1 : 0;
}

/* Nothing more comes: half a character is shown as what it is. */
int
content_end(struct content *ct)
{
	size_t	i;

	for (i = 0; i < ct->ct_len; i++)
		fprintf(content_file(ct), "\\%03o",
		    (unsigned char)ct->ct_rest[i]);
	ct->ct_len = 0;
	return ct->ct_failed ? -1 : 0;
}
