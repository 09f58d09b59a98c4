/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the lines of an audit file.  The file is evidence and nothing in
 * it is believed: a line may be of any length and hold anything.  It may be
 * larger than memory, so one line is held at a time.
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "records.h"
#include "show.h"

/* `-' is the standard input.  NULL after saying why not. */
struct source *
source_open(const char *path)
{
	struct source	*so;

	if ((so = calloc(1, sizeof(*so))) == NULL) {
		warn(NULL);
		return NULL;
	}
	so->so_fd = STDIN_FILENO;
	so->so_name = "standard input";
	if (strcmp(path, "-") == 0)
		return so;
	so->so_name = path;
	if ((so->so_fd = open(path, O_RDONLY | O_CLOEXEC)) == -1) {
		warn("%s", path);
		free(so);
		return NULL;
	}
	return so;
}

/* The next line, NUL for newline; of a torn one only the length counts. */
enum next
source_line(struct source *so, char **line, size_t *len)
{
	char	*nl;
	ssize_t	 n;

	for (;;) {
		*line = so->so_buf + so->so_at;
		*len = so->so_len - so->so_at;
		if ((nl = memchr(*line, '\n', *len)) != NULL) {
			*nl = '\0';
			*len = (size_t)(nl - *line);
			so->so_at += *len + 1;
			return NEXT_LINE;
		}
		memmove(so->so_buf, *line, *len);
		so->so_at = 0;
		if ((so->so_len = *len) == sizeof(so->so_buf))
			return NEXT_TOO_LONG;
		n = read(so->so_fd, so->so_buf + *len,
		    sizeof(so->so_buf) - *len);
		if (n == 0)
			return *len > 0 ? NEXT_TORN : NEXT_END;
		if (n > 0)
			so->so_len += (size_t)n;
		else if (errno != EINTR)
			return NEXT_FAILED;
	}
}

void
source_close(struct source *so)
{
	if (so->so_fd != STDIN_FILENO)
		close(so->so_fd);
	free(so);
}

/* A finding in the form of compilers, so that editors find the line. */
void
finding_put(const cJSON *json)
{
	json_put(stdout, json_get(json, "file"));
	putchar(':');
	json_put(stdout, json_get(json, "line"));
	fputs(": ", stdout);
	json_put(stdout, json_get(json, "message"));
	putchar('\n');
}
