/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a port of this machine's loopback that leads into a sandbox.
 * Whoever connects here is another program of this machine, whoever answers
 * lives in the sandbox; neither is trusted, and bytes between them wait in
 * bounded buffers.
 */

#include <sys/socket.h>

#include <netinet/in.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hands.h"
#include "show.h"

#define TUNNELS_MAX	32	/* others wait to be accepted */
#define PIECE_LEN	16384
#define POLL_LINK	0
#define POLL_LISTENER	1
#define POLL_TUNNELS	2

/* A connection from here, and the request that carries it. */
struct tunnel {
	int		 tn_fd;		/* -1: this place is free */
	struct call	*tn_call;	/* NULL: it is over */
	int		 tn_ended;	/* nothing more comes from here */
	int		 tn_quiet;	/* nothing more comes from there */
	size_t		 tn_at;		/* sent of tn_buf */
	size_t		 tn_len;
	char		*tn_buf;	/* FRAME_CREDIT bytes */
};

static struct {
	const char	*session;
	const char	*ports;
} options;

static struct {
	struct task	 task;
	int		 listener;
	uint16_t	 port;		/* in the sandbox */
	struct tunnel	 tunnels[TUNNELS_MAX];
	struct pollfd	 pfd[POLL_TUNNELS + TUNNELS_MAX];
} fw;

static const struct token t_ports[] = {
	{ WORD, "[local:]port", NULL, NULL, &options.ports, NULL },
	{ 0 }
};

static const struct token t_forward[] = {
	{ SESSION_ID, "session ID", t_ports, NULL, &options.session, NULL },
	{ 0 }
};

/* ---- one connection ------------------------------------------------------ */

static void
tunnel_close(struct tunnel *tn)
{
	if (tn->tn_call != NULL)
		call_drop(tn->tn_call);
	close(tn->tn_fd);
	free(tn->tn_buf);
	memset(tn, 0, sizeof(*tn));
	tn->tn_fd = -1;
}

/* Sends on what has come from the sandbox; it may be the last. */
static void
tunnel_flush(struct tunnel *tn)
{
	ssize_t	n;

	while (tn->tn_at < tn->tn_len) {
		n = send(tn->tn_fd, tn->tn_buf + tn->tn_at,
		    tn->tn_len - tn->tn_at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n == -1) {
			tunnel_close(tn);
			return;
		}
		tn->tn_at += (size_t)n;
		if (tn->tn_call != NULL)
			call_grant(tn->tn_call, (size_t)n);
	}
	tn->tn_at = tn->tn_len = 0;
	if (tn->tn_call == NULL)
		tunnel_close(tn);
	else if (tn->tn_quiet)
		shutdown(tn->tn_fd, SHUT_WR);
}

/* What waits here is within the credit, hence within the buffer. */
static void
tunnel_data(struct call *ca, const char *data, size_t len)
{
	struct tunnel	*tn = call_arg(ca);

	memmove(tn->tn_buf, tn->tn_buf + tn->tn_at, tn->tn_len - tn->tn_at);
	tn->tn_len -= tn->tn_at;
	tn->tn_at = 0;
	if (len > FRAME_CREDIT - tn->tn_len) {
		link_fail(call_link(ca), "more than the credit");
		return;
	}
	memcpy(tn->tn_buf + tn->tn_len, data, len);
	tn->tn_len += len;
	tunnel_flush(tn);
}

static void
tunnel_end(struct call *ca)
{
	struct tunnel	*tn = call_arg(ca);

	tn->tn_quiet = 1;
	tunnel_flush(tn);
}

/* A sandbox that forwards nothing need not be asked again. */
static int
is_final(const char *code)
{
	return strcmp(code, "denied") == 0 ||
	    strcmp(code, "not_supported") == 0;
}

static void
tunnel_done(struct call *ca, const struct outcome *oc)
{
	struct tunnel	*tn = call_arg(ca);
	char		 port[16];

	tn->tn_call = NULL;
	if (oc->oc_code == NULL)
		tunnel_flush(tn);
	else
		tunnel_close(tn);
	if (oc->oc_code == NULL || oc->oc_text == NULL)
		return;
	snprintf(port, sizeof(port), "port %u: ", fw.port);
	fprintf(stderr, "egressctl: forward: %s", strncmp(oc->oc_message, port,
	    strlen(port)) == 0 ? "" : port);
	visible_put(stderr, oc->oc_message, VISIBLE_TEXT);
	fprintf(stderr, " (%s)\n", oc->oc_code);
	if (is_final(oc->oc_code))
		fw.task.ta_status = EXIT_REFUSED;
}

static const struct call_ops tunnel_ops = {
	.op_data = tunnel_data,
	.op_end = tunnel_end,
	.op_done = tunnel_done,
	.op_slow = 1,
};

/* Takes what the program here sends. */
static void
tunnel_read(struct tunnel *tn)
{
	char	piece[PIECE_LEN];
	size_t	room = call_room(tn->tn_call);
	ssize_t	n;

	if (room == 0)
		return;
	n = recv(tn->tn_fd, piece, room < sizeof(piece) ? room :
	    sizeof(piece), MSG_DONTWAIT);
	if (n > 0)
		call_send(tn->tn_call, piece, (size_t)n);
	else if (n == 0) {
		tn->tn_ended = 1;
		call_end(tn->tn_call);
	} else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
		tunnel_close(tn);
}

static void
tunnel_open(struct tunnel *tn, int fd)
{
	struct jsonw	 w;
	const char	*why;

	tn->tn_fd = fd;
	call_op(&w, "forward");
	put_uint(&w, "port", fw.port);
	if ((tn->tn_buf = malloc(FRAME_CREDIT)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	tn->tn_call = link_call(fw.task.ta_link, &w, &tunnel_ops, tn, &why);
	if (tn->tn_call == NULL) {
		warnx("forward: %s", why);
		tunnel_close(tn);
	}
}

/* ---- all of them --------------------------------------------------------- */

static struct tunnel *
tunnel_free(void)
{
	size_t	i;

	for (i = 0; i < TUNNELS_MAX; i++)
		if (fw.tunnels[i].tn_fd == -1)
			return &fw.tunnels[i];
	return NULL;
}

static void
accept_one(void)
{
	struct tunnel	*tn = tunnel_free();
	int		 fd;

	if (tn == NULL || (fd = accept4(fw.listener, NULL, NULL,
	    SOCK_CLOEXEC)) == -1)
		return;
	tunnel_open(tn, fd);
}

/* What poll(2) is to look at; 0: nothing, as a hang-up would not end it. */
static short
tunnel_events(const struct tunnel *tn)
{
	short	events = 0;

	if (tn->tn_fd == -1)
		return 0;
	if (tn->tn_at < tn->tn_len)
		events |= POLLOUT;
	if (tn->tn_call != NULL && !tn->tn_ended && call_room(tn->tn_call) > 0)
		events |= POLLIN;
	return events;
}

static void
prepare(void)
{
	struct pollfd	*pfd;
	size_t		 i;

	fw.pfd[POLL_LINK].fd = link_fd(fw.task.ta_link);
	fw.pfd[POLL_LINK].events = link_events(fw.task.ta_link);
	fw.pfd[POLL_LISTENER].fd = tunnel_free() != NULL ? fw.listener : -1;
	fw.pfd[POLL_LISTENER].events = POLLIN;
	for (i = 0; i < TUNNELS_MAX; i++) {
		pfd = &fw.pfd[POLL_TUNNELS + i];
		pfd->events = tunnel_events(&fw.tunnels[i]);
		pfd->fd = pfd->events != 0 ? fw.tunnels[i].tn_fd : -1;
	}
}

static void
forward_wait(void)
{
	struct tunnel	*tn;
	size_t		 i;
	short		 revents;

	prepare();
	if (poll(fw.pfd, POLL_TUNNELS + TUNNELS_MAX, -1) == -1) {
		if (errno != EINTR)
			err(EXIT_NO_DAEMON, "poll");
		return;
	}
	for (i = 0; i < TUNNELS_MAX; i++) {
		tn = &fw.tunnels[i];
		revents = fw.pfd[POLL_TUNNELS + i].revents;
		if (revents & (POLLOUT | POLLERR) && tn->tn_at < tn->tn_len)
			tunnel_flush(tn);
		if (revents & ~POLLOUT && tn->tn_fd != -1 &&
		    tn->tn_call != NULL && !tn->tn_ended)
			tunnel_read(tn);
	}
	if (fw.pfd[POLL_LISTENER].revents != 0)
		accept_one();
	link_handle(fw.task.ta_link, fw.pfd[POLL_LINK].revents);
}

/* ---- the command --------------------------------------------------------- */

static uint16_t
take_port(const char *text, int least)
{
	const char	*fault;
	long long	 n = strtonum(text, least, UINT16_MAX, &fault);

	if (fault != NULL)
		errx(EXIT_USAGE, "forward: port %s is %s (%d to %d)", text,
		    fault, least, UINT16_MAX);
	return (uint16_t)n;
}

/* Returns the port here; 0 is any that is free. */
static uint16_t
take_ports(void)
{
	const char	*colon = strchr(options.ports, ':');
	uint16_t	 here;
	char		*text;

	fw.port = take_port(colon != NULL ? colon + 1 : options.ports, 1);
	if (colon == NULL)
		return fw.port;
	if ((text = strndup(options.ports, (size_t)(colon - options.ports))) ==
	    NULL)
		err(EXIT_NO_DAEMON, NULL);
	here = take_port(text, 0);
	free(text);
	return here;
}

/* Only programs of this machine can connect. */
static uint16_t
listen_here(uint16_t port)
{
	struct sockaddr_in	sin = {
		.sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) },
		.sin_port = htons(port),
	};
	socklen_t		len = sizeof(sin);
	int			on = 1;

	fw.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0);
	if (fw.listener == -1 || setsockopt(fw.listener, SOL_SOCKET,
	    SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    bind(fw.listener, (struct sockaddr *)&sin, sizeof(sin)) == -1 ||
	    listen(fw.listener, TUNNELS_MAX) == -1 ||
	    getsockname(fw.listener, (struct sockaddr *)&sin, &len) == -1)
		err(EXIT_NO_DAEMON, "127.0.0.1:%u", port);
	return ntohs(sin.sin_port);
}

static void
forward_put(const cJSON *json)
{
	fputs("127.0.0.1:", stdout);
	json_put(stdout, json_get(json, "port"));
	fputs(" leads to port ", stdout);
	json_put(stdout, json_get(json, "to"));
	fputs(" in there\n", stdout);
}

static void
announce(const struct invocation *in, uint16_t port)
{
	cJSON	*json = output_object();

	cJSON_AddStringToObject(json, "address", "127.0.0.1");
	cJSON_AddNumberToObject(json, "port", port);
	cJSON_AddNumberToObject(json, "to", fw.port);
	output_show(in, json);
	fflush(stdout);
}

/* Said now, and not to whoever connects. */
static int
is_permitted(const struct invocation *in)
{
	static const char	 message[] = "this sandbox does not forward: "
	    "its block has to say \"forward yes\"";
	cJSON			*json, *error;
	char			*line;

	if (link_can(fw.task.ta_link, "forward"))
		return 1;
	fw.task.ta_status = EXIT_REFUSED;
	if (in->in_output != &output_json) {
		warnx("forward: %s (denied)", message);
		return 0;
	}
	json = output_object();
	error = cJSON_AddObjectToObject(json, "error");
	cJSON_AddStringToObject(error, "code", "denied");
	cJSON_AddStringToObject(error, "message", message);
	if ((line = cJSON_PrintUnformatted(json)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	in->in_output->ou_refusal(in->in_command, line, json);
	free(line);
	cJSON_Delete(json);
	return 0;
}

/* Until it is interrupted, or the sandbox has ended. */
static int
forward_run(const struct invocation *in)
{
	size_t		i;
	uint16_t	here = take_ports();

	for (i = 0; i < TUNNELS_MAX; i++)
		fw.tunnels[i].tn_fd = -1;
	if (task_open(&fw.task, in, options.session) == -1)
		return fw.task.ta_status;
	if (!is_permitted(in))
		return task_close(&fw.task);
	announce(in, listen_here(here));
	while (link_error(fw.task.ta_link) == NULL && fw.task.ta_status == 0)
		forward_wait();
	if (fw.task.ta_status == 0) {
		fputs("egressctl: forward: ", stderr);
		visible_put(stderr, link_error(fw.task.ta_link), VISIBLE_TEXT);
		fputc('\n', stderr);
		fw.task.ta_status = EXIT_NO_DAEMON;
	}
	for (i = 0; i < TUNNELS_MAX; i++)
		if (fw.tunnels[i].tn_fd != -1)
			tunnel_close(&fw.tunnels[i]);
	close(fw.listener);
	return task_close(&fw.task);
}

const struct command command_forward = {
	.co_name = "forward",
	.co_synopsis = "forward SESSION [LOCAL:]PORT",
	.co_help = "let a port here lead to one there",
	.co_tokens = t_forward,
	.co_run = forward_run,
	.co_op = "session.attach",
	.co_show = forward_put,
};
