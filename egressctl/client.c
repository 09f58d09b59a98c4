/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the connection to the daemon.  Lines are bounded and waits
 * have an end, so that a daemon that is stuck, or something else that
 * answers on its socket, cannot hold the operator's shell.
 */

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"

#define BUFFER_FIRST	16384

/* Talk over a socket that is connected already. */
void
client_adopt(struct client *cl, int fd, const char *name)
{
	memset(cl, 0, sizeof(*cl));
	cl->cl_path = name;
	cl->cl_fd = fd;
}

/* 0; or connect(2)'s error, for the caller to explain; or -1, explained. */
int
client_try(struct client *cl, const char *path)
{
	struct timeval		tv = { .tv_sec = ANSWER_TIMEOUT_MS / 1000 };
	struct sockaddr_un	sun = { .sun_family = AF_UNIX };

	client_adopt(cl, -1, path);
	if (strlcpy(sun.sun_path, path, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path)) {
		warnx("socket path too long: %zu bytes (at most %zu)",
		    strlen(path), sizeof(sun.sun_path) - 1);
		return -1;
	}
	cl->cl_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (cl->cl_fd == -1) {
		warn("socket");
		return -1;
	}
	/* The time also bounds connect(2), which waits for a full backlog. */
	if (setsockopt(cl->cl_fd, SOL_SOCKET, SO_SNDTIMEO, &tv,
	    sizeof(tv)) == -1) {
		warn("setsockopt SO_SNDTIMEO");
		return -1;
	}
	if (connect(cl->cl_fd, (struct sockaddr *)&sun, sizeof(sun)) == -1)
		return errno;
	return 0;
}

int
client_open(struct client *cl, const char *path)
{
	int	error;

	if ((error = client_try(cl, path)) > 0)
		explain_connect(path, error);
	return error == 0 ? 0 : -1;
}

/* As send(2); a descriptor, if not -1, goes with the first byte. */
static ssize_t
send_some(int sock, const char *data, size_t len, int fd)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(int))];
	} control;
	char		*bytes = (char *)(uintptr_t)data;
	struct iovec	 iov = { bytes, len };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd != -1) {
		memset(&control, 0, sizeof(control));
		control.hdr.cmsg_len = CMSG_LEN(sizeof(fd));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.hdr), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL);
}

static int
send_all(struct client *cl, const char *data, size_t len, int fd)
{
	ssize_t	n;

	while (len > 0) {
		n = send_some(cl->cl_fd, data, len, fd);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && (errno == EPIPE || errno == ECONNRESET)) {
			/* The daemon may have said why before it hung up. */
			return 0;
		}
		if (n == -1) {
			warn("%s: send", cl->cl_path);
			return -1;
		}
		data += n;
		len -= (size_t)n;
		fd = -1;
	}
	return 0;
}

/* Sends one request, and the descriptor unless that is -1. */
int
client_send(struct client *cl, const cJSON *request, int fd)
{
	char	*text;
	size_t	 len;
	int	 rv = -1;

	if ((text = cJSON_PrintUnformatted(request)) == NULL) {
		warnx("out of memory");
		return -1;
	}
	len = strlen(text);
	if (len > REQUEST_MAX)
		warnx("request too long: %zu bytes (at most %d)", len,
		    REQUEST_MAX);
	else {
		text[len] = '\n';
		rv = send_all(cl, text, len + 1, fd);
	}
	cJSON_free(text);
	return rv;
}

int
client_has_line(const struct client *cl)
{
	return cl->cl_len > cl->cl_used && memchr(cl->cl_buf + cl->cl_used,
	    '\n', cl->cl_len - cl->cl_used) != NULL;
}

/* Moves unread bytes to the front and makes room for more. */
static int
client_room(struct client *cl)
{
	char	*buf;
	size_t	 size;

	if (cl->cl_used > 0) {
		cl->cl_len -= cl->cl_used;
		memmove(cl->cl_buf, cl->cl_buf + cl->cl_used, cl->cl_len);
		cl->cl_used = 0;
	}
	if (cl->cl_len < cl->cl_size)
		return 0;
	if (cl->cl_size >= ANSWER_MAX) {
		warnx("%s: answer too long: more than %d bytes",
		    cl->cl_path, ANSWER_MAX);
		return -1;
	}
	size = cl->cl_size == 0 ? BUFFER_FIRST : cl->cl_size * 2;
	if ((buf = realloc(cl->cl_buf, size)) == NULL) {
		warn(NULL);
		return -1;
	}
	cl->cl_buf = buf;
	cl->cl_size = size;
	return 0;
}

/*
 * Waits until the daemon has sent something.  While following, it also
 * watches our own output: `egressctl events | head -1` should end with
 * head, not with the next record.
 */
static enum client_result
client_wait(const struct client *cl, int64_t deadline)
{
	struct pollfd	pfd[2] = {
		{ .fd = cl->cl_fd, .events = POLLIN },
		{ .fd = STDOUT_FILENO },
	};
	int64_t		left = FOREVER;
	int		n;

	do {
		if (deadline != FOREVER && (left = deadline -
		    (int64_t)clock_ms()) < 0)
			left = 0;
		n = poll(pfd, deadline == FOREVER ? 2 : 1, (int)left);
	} while (n == -1 && errno == EINTR);

	if (n == -1) {
		warn("poll");
		return CLIENT_FAILED;
	}
	if (n == 0) {
		warnx("%s: no answer after %d seconds; egressd accepted the "
		    "connection but seems stuck", cl->cl_path,
		    ANSWER_TIMEOUT_MS / 1000);
		return CLIENT_FAILED;
	}
	return pfd[1].revents != 0 ? CLIENT_NO_READER : CLIENT_LINE;
}

/* Reads once; CLIENT_LINE: bytes have come, not necessarily a line. */
static enum client_result
client_read(struct client *cl)
{
	ssize_t	n;

	do {
		n = recv(cl->cl_fd, cl->cl_buf + cl->cl_len,
		    cl->cl_size - cl->cl_len, 0);
	} while (n == -1 && errno == EINTR);

	if (n > 0) {
		cl->cl_len += (size_t)n;
		return CLIENT_LINE;
	}
	if (n == -1 && errno != ECONNRESET) {
		warn("%s: receive", cl->cl_path);
		return CLIENT_FAILED;
	}
	if (cl->cl_len > cl->cl_used) {
		warnx("%s: hung up in the middle of a line", cl->cl_path);
		return CLIENT_FAILED;
	}
	return CLIENT_HUNG_UP;
}

/*
 * Hands out the next line, NUL-terminated and without its newline; it is
 * good until the next call.  The time is for the whole line, so that a
 * byte now and then does not prolong it.
 */
enum client_result
client_line(struct client *cl, char **line, size_t *len, int timeout_ms)
{
	enum client_result	 result;
	int64_t			 deadline = FOREVER;
	char			*end;

	if (timeout_ms != FOREVER)
		deadline = (int64_t)clock_ms() + timeout_ms;
	while (!client_has_line(cl)) {
		if (client_room(cl) == -1)
			return CLIENT_FAILED;
		if ((result = client_wait(cl, deadline)) != CLIENT_LINE ||
		    (result = client_read(cl)) != CLIENT_LINE)
			return result;
	}
	*line = cl->cl_buf + cl->cl_used;
	end = memchr(*line, '\n', cl->cl_len - cl->cl_used);
	*end = '\0';
	*len = (size_t)(end - *line);
	cl->cl_used += *len + 1;
	return CLIENT_LINE;
}

void
client_close(struct client *cl)
{
	if (cl->cl_fd != -1)
		close(cl->cl_fd);
	free(cl->cl_buf);
	memset(cl, 0, sizeof(*cl));
	cl->cl_fd = -1;
}
