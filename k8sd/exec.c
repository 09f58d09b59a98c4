/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: commands in pods, by pods/exec over a WebSocket.
 *
 *	credentials -> upgrade -> pump -> Status -> close -> drain -> the end
 *	     ^  `--------' 401, or subprotocol refused
 *
 * The descriptor is a client's and the stream a pod's; neither is believed,
 * and nothing of what is pumped is looked at.  How the command has ended is
 * said by the Status on a channel of its own, never by text; a connection that
 * ends without one is lost, in whatever way it ended.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event_struct.h>

#include "channels.h"
#include "child.h"
#include "cluster.h"
#include "exec.h"
#include "log.h"

#define UPGRADE_MS	30000
#define SILENCE_MS	30000	/* then the server is asked for a sign */
#define LINGER_MS	1000	/* of output, after the end of input in v4 */
#define READ_LEN	(32 * 1024)
#define OUT_LEN		(128 * 1024)
#define OUT_HOLD	(OUT_LEN - 8 * 1024)	/* a piece is shorter */

/* An API server takes the first that it knows. */
static const char *const	 both[] = {
	"v5.channel.k8s.io", "v4.channel.k8s.io", NULL
};
#define V5	0	/* its place in the list */

struct exec {
	struct cluster		*ex_cluster;
	exec_ended		*ex_ended;
	void			*ex_arg;
	char			*ex_path;
	char			*ex_name;	/* for the log */
	char			*ex_authorization;
	const char		*ex_headers[2];
	const char *const	*ex_offered;	/* in both */
	bool			 ex_waits;	/* for credentials */
	bool			 ex_retried;	/* after a 401 */
	struct https_ws		*ex_ws;
	bool			 ex_open;
	bool			 ex_v5;
	struct channels		 ex_channels;
	/* The client's side. */
	int			 ex_fd;		/* -1: it has left */
	bool			 ex_input_over;
	struct event		 ex_readable;
	struct event		 ex_writable;
	struct event		 ex_timer;
	char			*ex_out;
	size_t			 ex_out_off;
	size_t			 ex_out_len;
	/* How it ended, once that is known. */
	bool			 ex_over;
	struct exec_end		 ex_end;
	char			 ex_why[STATUS_TEXT_LEN + 65];
};

static void	 exec_ask(struct exec *);

/* ---- the end ---- */

static void
forget_authorization(struct exec *ex)
{
	if (ex->ex_authorization != NULL)
		freezero(ex->ex_authorization, strlen(ex->ex_authorization));
	ex->ex_authorization = NULL;
}

static void
on_authorization(void *, const char *);

static void
exec_free(struct exec *ex)
{
	https_ws_free(ex->ex_ws);
	if (ex->ex_waits)
		cluster_wait_cancel(ex->ex_cluster, on_authorization, ex);
	event_del(&ex->ex_readable);
	event_del(&ex->ex_writable);
	event_del(&ex->ex_timer);
	if (ex->ex_fd != -1)
		exec_hang_up(ex->ex_fd);
	channels_free(&ex->ex_channels);
	forget_authorization(ex);
	cluster_unref(ex->ex_cluster);
	free(ex->ex_out);
	free(ex->ex_name);
	free(ex->ex_path);
	free(ex);
}

void
exec_cancel(struct exec *ex)
{
	if (ex != NULL)
		exec_free(ex);
}

/* How it ended; the first word counts. */
static void
exec_over(struct exec *ex, enum exec_how how, int code, const char *fmt, ...)
{
	va_list	 ap;

	if (ex->ex_over)
		return;
	ex->ex_over = true;
	ex->ex_end.how = how;
	ex->ex_end.code = code;
	va_start(ap, fmt);
	vsnprintf(ex->ex_why, sizeof(ex->ex_why), fmt, ap);
	va_end(ap);
}

/* Told when the connection is gone and all output has reached the client. */
static void
exec_settle(struct exec *ex)
{
	char	 tail[TAIL_LEN + 1];

	if (!ex->ex_over || ex->ex_ws != NULL ||
	    (ex->ex_fd != -1 && ex->ex_out != NULL))
		return;
	status_text(ex->ex_channels.cn_tail, ex->ex_channels.cn_tail_len, tail,
	    sizeof(tail));
	if (tail[0] != '\0')
		log_info("%s: it wrote: %s", ex->ex_name, tail);
	ex->ex_end.why = ex->ex_why;
	ex->ex_end.stderr_tail = tail;
	ex->ex_ended(ex->ex_arg, &ex->ex_end);
	exec_free(ex);
}

/* ---- the client's side ---- */

static void
arm(struct event *ev, uint64_t ms)
{
	struct timeval	 tv;

	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (event_add(ev, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

/* Nobody reads any more: there is nothing to go on for. */
static void
client_left(struct exec *ex)
{
	event_del(&ex->ex_readable);
	event_del(&ex->ex_writable);
	exec_hang_up(ex->ex_fd);
	ex->ex_fd = -1;
	free(ex->ex_out);
	ex->ex_out = NULL;
	exec_over(ex, EXEC_LOST, 0, "the client has left");
	if (ex->ex_ws != NULL) {
		https_ws_hold(ex->ex_ws, false);
		https_ws_close(ex->ex_ws, 1000);
	}
}

/* In v4 there is no end of input: wait for what is still said, then go. */
static void
input_over(struct exec *ex)
{
	static const unsigned char	 close_stdin[] = {
		CHANNEL_CLOSE, CHANNEL_STDIN
	};

	ex->ex_input_over = true;
	event_del(&ex->ex_readable);
	if (ex->ex_v5)
		https_ws_send(ex->ex_ws, close_stdin, sizeof(close_stdin));
	else
		arm(&ex->ex_timer, LINGER_MS);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct exec	*ex = arg;

	(void)fd, (void)what;
	exec_over(ex, EXEC_LOST, 0, "its input has ended, which this server "
	    "cannot be told");
	if (ex->ex_ws != NULL)
		https_ws_close(ex->ex_ws, 1000);
}

/* Only as much as there is room for: a slow server slows the client down. */
static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	static char	 buf[1 + READ_LEN];
	struct exec	*ex = arg;
	size_t		 room = https_ws_room(ex->ex_ws);
	ssize_t		 n;

	(void)what;
	if (room < sizeof(buf)) {
		event_del(&ex->ex_readable);	/* until on_room() */
		return;
	}
	n = read(fd, buf + 1, READ_LEN);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1) {
		client_left(ex);
		exec_settle(ex);
	} else if (n == 0)
		input_over(ex);
	else {
		buf[0] = CHANNEL_STDIN;
		https_ws_send(ex->ex_ws, buf, (size_t)n + 1);
	}
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct exec	*ex = arg;
	ssize_t		 n;

	(void)what;
	n = write(fd, ex->ex_out + ex->ex_out_off,
	    ex->ex_out_len - ex->ex_out_off);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1)
		client_left(ex);
	else if ((ex->ex_out_off += (size_t)n) == ex->ex_out_len) {
		event_del(&ex->ex_writable);
		free(ex->ex_out);
		ex->ex_out = NULL;
		if (ex->ex_ws != NULL)
			https_ws_hold(ex->ex_ws, false);
	}
	exec_settle(ex);
}

/* A slow client slows the server down: nothing is read beyond OUT_HOLD. */
static void
client_put(struct exec *ex, const char *data, size_t len)
{
	if (ex->ex_fd == -1 || len == 0)
		return;
	if (ex->ex_out == NULL) {
		if ((ex->ex_out = malloc(OUT_LEN)) == NULL)
			fatal("%s", __func__);
		ex->ex_out_off = ex->ex_out_len = 0;
		event_add(&ex->ex_writable, NULL);
	}
	if (len > OUT_LEN - ex->ex_out_len)
		fatalx("%s: a piece of %zu bytes", __func__, len);
	memcpy(ex->ex_out + ex->ex_out_len, data, len);
	ex->ex_out_len += len;
	if (ex->ex_out_len > OUT_HOLD)
		https_ws_hold(ex->ex_ws, true);
}

/* ---- the server's side ---- */

static void
on_open(void *arg, size_t which)
{
	struct exec	*ex = arg;

	ex->ex_open = true;
	ex->ex_v5 = ex->ex_offered == both && which == V5;
	forget_authorization(ex);
	event_add(&ex->ex_readable, NULL);
}

static void
on_room(void *arg)
{
	struct exec	*ex = arg;

	if (!ex->ex_input_over && ex->ex_fd != -1)
		event_add(&ex->ex_readable, NULL);
}

/*
 * A failure of the API's, before the command has said anything, is taken for
 * one to start it; later, for one on the way.
 */
static void
take_status(struct exec *ex)
{
	const struct status	*st = &ex->ex_channels.cn_status;

	if (st->st_kind != STATUS_FAILURE)
		exec_over(ex, EXEC_EXITED, st->st_code, "%s", "");
	else
		exec_over(ex, ex->ex_channels.cn_spoke ? EXEC_LOST :
		    EXEC_REFUSED, 0, "%s%s%s", st->st_reason,
		    st->st_reason[0] != '\0' ? ": " : "", st->st_message);
	https_ws_close(ex->ex_ws, 1000);
}

static void
on_piece(void *arg, const struct https_ws_piece *wp)
{
	struct exec	*ex = arg;
	const char	*data = NULL, *why;
	size_t		 len;

	why = channels_take(&ex->ex_channels, wp, &data, &len);
	if (why != NULL) {
		exec_over(ex, EXEC_LOST, 0, "it sent %s", why);
		https_ws_close(ex->ex_ws, 1002);
		return;
	}
	client_put(ex, data, len);
	if (ex->ex_input_over && !ex->ex_v5)
		arm(&ex->ex_timer, LINGER_MS);
	if (ex->ex_channels.cn_ended)
		take_status(ex);
}

/* Whether a body is the API's own word, and not that of its WebSocket code. */
static bool
is_status(const struct https_answer *ha, struct status *st)
{
	return ha->ha_body_len > 0 &&
	    status_parse(ha->ha_body, ha->ha_body_len, st) == 0 &&
	    st->st_kind == STATUS_FAILURE;
}

/* A server that gives our credential back is not quoted. */
static void
say_refused(struct exec *ex, const struct https_answer *ha)
{
	const char	*token = ex->ex_authorization != NULL ?
	    strrchr(ex->ex_authorization, ' ') : NULL;
	char		 text[STATUS_TEXT_LEN + 1] = "";
	struct status	 st;

	if (is_status(ha, &st))
		strlcpy(text, st.st_message, sizeof(text));
	else if (ha->ha_body_len > 0)
		status_text(ha->ha_body, ha->ha_body_len, text, sizeof(text));
	if (token != NULL && strstr(text, token + 1) != NULL)
		text[0] = '\0';
	exec_over(ex, EXEC_REFUSED, 0, "status %ld%s%s", ha->ha_status,
	    text[0] != '\0' ? ": " : "", text);
}

/* 1.20 says 403 to a subprotocol that it does not know, others may say 400. */
static bool
refused_v5(const struct exec *ex, const struct https_answer *ha)
{
	struct status	 st;

	return ex->ex_offered == both &&
	    (ha->ha_status == 400 || ha->ha_status == 403) &&
	    !is_status(ha, &st);
}

static void
exec_refused(struct exec *ex, const struct https_answer *ha)
{
	if (ha->ha_status == 401 && !ex->ex_retried) {
		ex->ex_retried = true;
		cluster_refused(ex->ex_cluster);
		exec_ask(ex);
	} else if (refused_v5(ex, ha)) {
		ex->ex_offered = both + V5 + 1;
		exec_ask(ex);
	} else
		say_refused(ex, ha);
}

/* The end of the connection, which is no end of the command. */
static void
on_end(void *arg, const struct https_answer *ha)
{
	struct exec	*ex = arg;

	ex->ex_ws = NULL;
	event_del(&ex->ex_readable);
	event_del(&ex->ex_timer);
	if (!ex->ex_open && ha->ha_status != 0)
		exec_refused(ex, ha);
	else if (ha->ha_result == HTTPS_ANSWERED)
		exec_over(ex, EXEC_LOST, 0, "the connection was closed, with "
		    "code %u and without a Status", ha->ha_close);
	else
		exec_over(ex, EXEC_LOST, 0, "%s", ha->ha_why != NULL ?
		    ha->ha_why : "the server has not answered in time");
	exec_settle(ex);
}

/* ---- the beginning ---- */

static void
on_authorization(void *arg, const char *why)
{
	struct exec	*ex = arg;

	ex->ex_waits = false;
	if (why == NULL)
		exec_ask(ex);
	else
		exec_over(ex, EXEC_REFUSED, 0, "no credentials: %s", why);
	exec_settle(ex);
}

static void
exec_ask(struct exec *ex)
{
	static const struct https_ws_calls	 calls = {
		.wc_open = on_open,
		.wc_piece = on_piece,
		.wc_room = on_room,
		.wc_end = on_end
	};
	struct https_request			 hr = {
		.hr_path = ex->ex_path,
		.hr_headers = ex->ex_headers,
		.hr_answer_max = STATUS_LEN,
		.hr_timeout_ms = UPGRADE_MS,
		.hr_idle_ms = SILENCE_MS,
	};
	const char	*line = cluster_authorization(ex->ex_cluster);

	forget_authorization(ex);
	if (line == NULL) {
		ex->ex_waits = true;
		cluster_wait(ex->ex_cluster, on_authorization, ex);
		return;
	}
	if ((ex->ex_authorization = strdup(line)) == NULL)
		fatal("%s", __func__);
	ex->ex_headers[0] = line[0] != '\0' ? ex->ex_authorization : NULL;
	ex->ex_ws = https_upgrade(cluster_server(ex->ex_cluster), &hr,
	    ex->ex_offered, &calls, ex);
}

/* RFC 3986: what need not be escaped is not. */
static void
put_escaped(FILE *out, const char *name, const char *text)
{
	const unsigned char	*p;

	fputs(name, out);
	for (p = (const unsigned char *)text; *p != '\0'; p++)
		if ((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') ||
		    (*p >= 'a' && *p <= 'z') || strchr("-._~", *p) != NULL)
			putc(*p, out);
		else
			fprintf(out, "%%%02X", *p);
}

static char *
make_path(const struct cluster *kc, const struct exec_request *er)
{
	const char *const	*arg;
	char			*text = NULL;
	size_t			 len;
	FILE			*out;

	if ((out = open_memstream(&text, &len)) == NULL)
		fatal("%s", __func__);
	fputs(cluster_path(kc), out);
	put_escaped(out, "/api/v1/namespaces/", er->namespace);
	put_escaped(out, "/pods/", er->pod);
	put_escaped(out, "/exec?container=", er->container);
	fputs("&stdin=true&stdout=true&stderr=true&tty=false", out);
	for (arg = er->command; *arg != NULL; arg++)
		put_escaped(out, "&command=", *arg);
	if (fclose(out) != 0)
		fatal("%s", __func__);
	return text;
}

struct exec *
exec_begin(struct cluster *kc, const struct exec_request *er,
    exec_ended *ended, void *arg)
{
	struct exec	*ex;

	if ((ex = calloc(1, sizeof(*ex))) == NULL ||
	    asprintf(&ex->ex_name, "pod %s/%s", er->namespace, er->pod) == -1)
		fatal("%s", __func__);
	ex->ex_cluster = cluster_ref(kc);
	ex->ex_ended = ended;
	ex->ex_arg = arg;
	ex->ex_path = make_path(kc, er);
	ex->ex_offered = both;
	channels_init(&ex->ex_channels);
	ex->ex_fd = er->fd;
	if (fcntl(ex->ex_fd, F_SETFL, O_NONBLOCK) == -1)
		fatal("%s: fcntl", __func__);
	event_assign(&ex->ex_readable, child_base, ex->ex_fd,
	    EV_READ | EV_PERSIST, on_readable, ex);
	event_assign(&ex->ex_writable, child_base, ex->ex_fd,
	    EV_WRITE | EV_PERSIST, on_writable, ex);
	event_assign(&ex->ex_timer, child_base, -1, 0, on_timer, ex);
	exec_ask(ex);
	return ex;
}
