/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operation forward, a stream to a port of loopback
 * inside the sandbox.  Who listens there is a command, and not trusted.
 *
 * In a sandbox connect(2) is for the broker to make, who may not look into us
 * and would make us wait.  So the connection begins with the other call that
 * TCP has for it: a send of nothing that opens.  It goes to loopback only, in
 * the sandbox's own network.
 */

#include <sys/socket.h>

#include <netinet/in.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "op.h"

struct op_forward {
	int64_t		 fo_port;
	int		 fo_fd;
	int		 fo_family;
	int		 fo_connected;
	struct watch	*fo_watch;
	struct feed	 fo_feed;
	int		 fo_in_done;	/* nothing more goes to the port */
	int		 fo_out_done;	/* nothing more comes from it */
	uint64_t	 fo_out;
};

static const struct member forward_members[] = {
	MUST_INTEGER(op_forward, "port", fo_port, 1, 65535),
	MEMBERS_END
};

static short	 forward_wants(void *);
static void	 forward_ready(void *);

static void
forward_settle(struct request *rq)
{
	struct op_forward	*fo = rq->rq_state;
	struct jsonw		*w;

	if (!fo->fo_in_done || !fo->fo_out_done || rq->rq_over)
		return;
	w = request_writer();
	jsonw_object(w);
	jsonw_lit(w, "bytes_in");
	jsonw_uint(w, fo->fo_feed.fe_total);
	jsonw_lit(w, "bytes_out");
	jsonw_uint(w, fo->fo_out);
	jsonw_end(w);
	request_result(rq, w);
}

/* Begin to connect; 0, or an errno. */
static int
forward_try(struct request *rq, int family)
{
	struct op_forward	*fo = rq->rq_state;
	struct sockaddr_in	 sin = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)fo->fo_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	struct sockaddr_in6	 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)fo->fo_port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT
	};
	struct sockaddr		*sa = family == AF_INET ?
	    (struct sockaddr *)&sin : (struct sockaddr *)&sin6;
	socklen_t		 len = family == AF_INET ? sizeof(sin) :
	    sizeof(sin6);

	fo->fo_family = family;
	if ((fo->fo_fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0)) == -1)
		return errno;
	if (sendto(fo->fo_fd, "", 0, MSG_FASTOPEN | MSG_NOSIGNAL, sa,
	    len) == -1 && errno == EOPNOTSUPP &&
	    connect(fo->fo_fd, sa, len) == 0)
		errno = EINPROGRESS;
	if (errno != EINPROGRESS)
		return errno;
	fo->fo_watch = watch_new(fo->fo_fd, forward_wants, forward_ready, rq);
	return 0;
}

static void
forward_close(struct op_forward *fo)
{
	watch_free(fo->fo_watch);
	fo->fo_watch = NULL;
	if (fo->fo_fd != -1)
		(void)close(fo->fo_fd);
	fo->fo_fd = -1;
}

/* The other family, or none. */
static void
forward_refused(struct request *rq, int error)
{
	struct op_forward	*fo = rq->rq_state;

	forward_close(fo);
	if (fo->fo_family == AF_INET &&
	    (error = forward_try(rq, AF_INET6)) == 0)
		return;
	forward_close(fo);
	request_error(rq, error == ECONNREFUSED || error == EAFNOSUPPORT ||
	    error == EADDRNOTAVAIL ? "not_found" : error_code(error),
	    "port %lld: %s", (long long)fo->fo_port, strerror(error));
}

static void
forward_start(struct request *rq)
{
	struct op_forward	*fo = rq->rq_state;
	int			 error;

	fo->fo_fd = fo->fo_feed.fe_fd = -1;
	if (!rq->rq_conn->cn_options->ho_forward) {
		request_error(rq, "denied",
		    "this sandbox does not say `forward yes'");
		return;
	}
	if ((error = forward_try(rq, AF_INET)) != 0)
		forward_refused(rq, error);
}

/* All is sent, or cannot be. */
static void
forward_sent(struct request *rq)
{
	struct op_forward	*fo = rq->rq_state;

	if (fo->fo_fd != -1)
		(void)shutdown(fo->fo_fd, SHUT_WR);
	fo->fo_in_done = 1;
	forward_settle(rq);
}

static void
forward_connected(struct request *rq)
{
	struct op_forward	*fo = rq->rq_state;
	socklen_t		 len = sizeof(int);
	int			 error = 0;

	if (getsockopt(fo->fo_fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error != 0) {
		forward_refused(rq, error);
		return;
	}
	fo->fo_connected = 1;
	feed_start(&fo->fo_feed, rq, fo->fo_fd, forward_sent);
}

static short
forward_wants(void *arg)
{
	const struct request	*rq = arg;
	const struct op_forward	*fo = rq->rq_state;

	if (rq->rq_over || fo->fo_out_done)
		return 0;
	if (!fo->fo_connected)
		return POLLOUT;
	return request_room(rq) > 0 ? POLLIN : 0;
}

/* The end, or a reset, which is one as well. */
static void
forward_ready(void *arg)
{
	struct request		*rq = arg;
	struct op_forward	*fo = rq->rq_state;
	ssize_t			 n;

	if (rq->rq_over || fo->fo_out_done)
		return;
	if (!fo->fo_connected) {
		forward_connected(rq);
		return;
	}
	if (request_room(rq) == 0)
		return;
	n = request_read(rq, FRAME_DATA, fo->fo_fd, SLICE);
	if (n > 0)
		fo->fo_out += (uint64_t)n;
	if (n > 0 || (n == -1 && (errno == EAGAIN || errno == EINTR)))
		return;
	fo->fo_out_done = 1;
	request_send_end(rq);
	if (n == -1)
		fo->fo_in_done = 1;
	forward_settle(rq);
}

static void
forward_data(struct request *rq, const uint8_t *data, size_t len)
{
	struct op_forward	*fo = rq->rq_state;

	feed_put(&fo->fo_feed, data, len);
}

static void
forward_end(struct request *rq)
{
	struct op_forward	*fo = rq->rq_state;

	feed_end(&fo->fo_feed);
}

static void
forward_free(struct request *rq)
{
	struct op_forward	*fo = rq->rq_state;

	feed_free(&fo->fo_feed);
	forward_close(fo);
}

const struct op op_forward = {
	.op_name = "forward", .op_members = forward_members,
	.op_size = sizeof(struct op_forward),
	.op_start = forward_start, .op_data = forward_data,
	.op_end = forward_end, .op_free = forward_free,
};
