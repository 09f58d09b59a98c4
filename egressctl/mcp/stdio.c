/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: lines from the client, and to it.  Neither direction waits for
 * the other: a client that writes much before it reads must not block us, so
 * output is queued, and input left alone while too much of that is.
 */

#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp.h"

#define BUFFER_FIRST	65536
#define QUEUE_FULL	(16 * 1024 * 1024)

/* Makes room for len more bytes in a buffer. */
static void
grow(char **buf, size_t *size, size_t used, size_t len)
{
	size_t	want = *size == 0 ? BUFFER_FIRST : *size;

	while (want - used < len)
		want *= 2;
	if (want == *size)
		return;
	*buf = must(realloc(*buf, want));
	*size = want;
}

/* Hands out whole lines; what follows the last newline stays. */
static void
take_lines(struct server *sv)
{
	char	*line = sv->sv_in, *end, *scan = sv->sv_in + sv->sv_in_seen;
	size_t	 left = sv->sv_in_len, len;

	while ((end = memchr(scan, '\n', left - (size_t)(scan - line))) !=
	    NULL) {
		len = (size_t)(end - line);
		*end = '\0';
		if (len > LINE_MAX_BYTES)
			break;
		rpc_line(sv, line, len);
		left -= len + 1;
		line = scan = end + 1;
	}
	memmove(sv->sv_in, line, left);
	sv->sv_in_len = sv->sv_in_seen = left;
	if (left <= LINE_MAX_BYTES)
		return;
	sv->sv_broken = sv->sv_eof = 1;
	rpc_answer(sv, NULL, rpc_error(NULL, RPC_PARSE,
	    "a line is longer than 4 MiB; the server ends", NULL));
}

/* Reads once; poll(2) has said that there is something. */
void
stdio_read(struct server *sv)
{
	ssize_t	n;

	grow(&sv->sv_in, &sv->sv_in_size, sv->sv_in_len, BUFFER_FIRST);
	n = read(STDIN_FILENO, sv->sv_in + sv->sv_in_len,
	    sv->sv_in_size - sv->sv_in_len);
	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		sv->sv_eof = 1;
		return;
	}
	sv->sv_in_len += (size_t)n;
	take_lines(sv);
}

/* Queues a message. */
void
stdio_line(struct server *sv, const cJSON *message)
{
	char	*text = must(cJSON_PrintUnformatted(message));
	size_t	 len = strlen(text);

	if (sv->sv_out_sent > 0) {
		sv->sv_out_len -= sv->sv_out_sent;
		memmove(sv->sv_out, sv->sv_out + sv->sv_out_sent,
		    sv->sv_out_len);
		sv->sv_out_sent = 0;
	}
	grow(&sv->sv_out, &sv->sv_out_size, sv->sv_out_len, len + 1);
	memcpy(sv->sv_out + sv->sv_out_len, text, len);
	sv->sv_out_len += len;
	sv->sv_out[sv->sv_out_len++] = '\n';
	cJSON_free(text);
}

/*
 * Writes once.  We leave O_NONBLOCK as it is, others may have the same file
 * open: poll(2) has said that a pipe has room for PIPE_BUF.
 */
int
stdio_write(struct server *sv)
{
	const char	*p = sv->sv_out + sv->sv_out_sent;
	size_t		 len = sv->sv_out_len - sv->sv_out_sent;
	ssize_t		 n;

	if (len == 0)
		return 0;
	n = send(STDOUT_FILENO, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n == -1 && errno == ENOTSOCK)
		n = write(STDOUT_FILENO, p, len < PIPE_BUF ? len : PIPE_BUF);
	if (n == -1)
		return errno == EINTR || errno == EAGAIN ? 0 : -1;
	sv->sv_out_sent += (size_t)n;
	return 0;
}

int
stdio_waits(const struct server *sv)
{
	return sv->sv_out_len > sv->sv_out_sent;
}

int
stdio_full(const struct server *sv)
{
	return sv->sv_out_len - sv->sv_out_sent > QUEUE_FULL;
}
