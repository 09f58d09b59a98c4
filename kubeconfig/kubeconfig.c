/* SPDX-License-Identifier: ISC */

/*
 * egressd-kubeconfig runs this: confine itself, then read, then answer.
 *
 * usage: egressd-kubeconfig files [context]
 */

#include <sys/prctl.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kubeconfig.h"
#include "log.h"
#include "sandbox.h"

static const struct sandbox_group no_groups[] = { { NULL, NULL } };

static const struct sandbox confined = {
	.sb_groups = no_groups,
	.sb_pledge = "stdio",
	.sb_files = FIRST_FD + FILES_MAX,
};

void *
must(void *p)
{
	if (p == NULL)
		_exit(1);
	return p;
}

static void
put(const void *data, size_t len)
{
	const char	*p = data;
	ssize_t		 n;

	for (; len > 0; p += n, len -= (size_t)n)
		if ((n = write(STDOUT_FILENO, p, len)) == -1) {
			if (errno != EINTR)
				_exit(1);
			n = 0;
		}
}

void
say(const char *word, unsigned int file, const void *data, size_t len)
{
	char	 head[64];

	put(head, (size_t)snprintf(head, sizeof(head), "%s %u %zu\n", word,
	    file, len));
	put(data, len);
	put("\n", 1);
}

void
say_text(const char *word, unsigned int file, const char *text)
{
	say(word, file, text, strlen(text));
}

void
fail(unsigned int file, unsigned int line, const char *fmt, ...)
{
	va_list	 ap;
	char	 text[512];
	int	 n = 0;

	if (line != 0)
		n = snprintf(text, sizeof(text), "%u: ", line);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	say_text("error", file, text);
	_exit(0);
}

static struct node *
file_read(unsigned int file)
{
	unsigned char	*data = must(malloc(FILE_LEN_MAX + 1));
	size_t		 len = 0;
	ssize_t		 n;

	while (len <= FILE_LEN_MAX && (n = read(FIRST_FD + (int)file,
	    data + len, FILE_LEN_MAX + 1 - len)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			fail(file, 0, "%s", strerror(errno));
		len += (size_t)n;
	}
	if (len > FILE_LEN_MAX)
		fail(file, 0, "larger than 1 MiB");
	return tree_read(file, data, len);
}

int
main(int argc, char *argv[])
{
	struct node	*roots[FILES_MAX];
	unsigned int	 i, n;
	const char	*why;

	log_init("kubeconfig", LOG_LVL_WARN, 0);
	if (argc < 2 || argc > 3)
		return 1;
	n = (unsigned int)strtonum(argv[1], 1, FILES_MAX, &why);
	if (why != NULL)
		return 1;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return 1;
	sandbox_limit(&confined);
	sandbox_enter(&confined);
	for (i = 0; i < n; i++)
		roots[i] = file_read(i);
	answer(roots, n, argc == 3 ? argv[2] : "");
	say_text("end", 0, "");
	/* Nothing was freed, and nobody is to count it. */
	_exit(0);
}
