/* SPDX-License-Identifier: ISC */

/*
 * Tests of common/https: calls to a server on loopback that runs in the same
 * event loop.  TLS, HTTP/2 and names are regress/deciders'.
 */

#include <sys/socket.h>

#include <netinet/in.h>

#include <unistd.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/https/private.h"
#include "test.h"

#define ANSWER_MAX	100
#define LIMIT_MS	20000

/* ---- calls ---- */

static struct {
	int		 listener;
	struct event	*event;
	char		 url[64];
	const char	*says;		/* NULL: nothing, ever */
	const char	*more;		/* after the first piece */
	char		 heard[8192];	/* of the last request */
	unsigned int	 accepted;
} server;

static struct {
	unsigned int		 ends;
	enum https_result	 result;
	long			 status;
	long long		 retry_after_s;
	char			 why[512];
	char			 body[ANSWER_MAX + 1];
	size_t			 body_len;
	struct https_server	*again;		/* asked from the callback */
	unsigned int		 pieces;
	size_t			 stop_at;	/* bytes, then -1; or 0 */
	struct https_call	*cancel;	/* by the next piece */
} seen;

static int		 conns[16];
static struct event	*conn_events[16];

/* Requests of tests come in one piece. */
static void
on_request(evutil_socket_t fd, short what, void *arg)
{
	struct event	**ev = arg;
	ssize_t		 n;

	(void)what;
	n = read(fd, server.heard, sizeof(server.heard) - 1);
	if (n <= 0) {
		event_del(*ev);
		return;
	}
	server.heard[n] = '\0';
	if (server.says != NULL)
		CHECK_INT(write(fd, server.says, strlen(server.says)),
		    strlen(server.says));
}

static void
on_connection(evutil_socket_t fd, short what, void *arg)
{
	unsigned int	 n = server.accepted++;

	(void)what, (void)arg;
	CHECK(n < sizeof(conns) / sizeof(conns[0]));
	CHECK((conns[n] = accept(fd, NULL, NULL)) != -1);
	conn_events[n] = event_new(child_base, conns[n], EV_READ | EV_PERSIST,
	    on_request, &conn_events[n]);
	event_add(conn_events[n], NULL);
}

static void
start(const char *says)
{
	struct sockaddr_in	 sin = { .sin_family = AF_INET };
	socklen_t		 len = sizeof(sin);

	if (child_base == NULL) {
		CHECK((child_base = event_base_new()) != NULL);
		https_warm();
	}
	memset(&seen, 0, sizeof(seen));
	memset(&server, 0, sizeof(server));
	server.says = says;
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK((server.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK,
	    0)) != -1);
	CHECK_INT(bind(server.listener, (struct sockaddr *)&sin, len), 0);
	CHECK_INT(listen(server.listener, 16), 0);
	CHECK_INT(getsockname(server.listener, (struct sockaddr *)&sin, &len),
	    0);
	snprintf(server.url, sizeof(server.url), "http://127.0.0.1:%u/u?v",
	    ntohs(sin.sin_port));
	server.event = event_new(child_base, server.listener,
	    EV_READ | EV_PERSIST, on_connection, NULL);
	event_add(server.event, NULL);
}

static void
stop(void)
{
	unsigned int	 i;

	for (i = 0; i < server.accepted; i++) {
		event_free(conn_events[i]);
		close(conns[i]);
	}
	event_free(server.event);
	close(server.listener);
}

static const struct https_request simple = {
	.hr_method = "GET",
	.hr_answer_max = ANSWER_MAX,
	.hr_timeout_ms = LIMIT_MS,
};

static void
on_end(void *arg, const struct https_answer *ha)
{
	struct https_server	*sv = seen.again;

	CHECK(arg == &seen);
	seen.ends++;
	seen.result = ha->ha_result;
	seen.status = ha->ha_status;
	seen.retry_after_s = ha->ha_retry_after_s;
	strlcpy(seen.why, ha->ha_why != NULL ? ha->ha_why : "",
	    sizeof(seen.why));
	CHECK(ha->ha_body_len <= ANSWER_MAX);
	if (ha->ha_body_len > 0) {
		memcpy(seen.body, ha->ha_body, ha->ha_body_len);
		seen.body_len = ha->ha_body_len;
	}
	seen.again = NULL;
	if (sv != NULL)
		https_begin(sv, &simple, on_end, &seen);
	else
		event_base_loopbreak(child_base);
}

static struct https_server *
server_new(const char *url)
{
	struct https_server	*sv = https_server_new(url);

	CHECK(sv != NULL);
	return sv;
}

/* One call from its beginning to its end. */
static void
call(struct https_server *sv, const struct https_request *hr)
{
	unsigned int	 before = seen.ends;

	https_begin(sv, hr, on_end, &seen);
	CHECK_INT(seen.ends, before);	/* never from within */
	CHECK(event_base_dispatch(child_base) != -1);
	CHECK_INT(seen.ends, before + 1);
}

static void
call_once(const struct https_request *hr)
{
	struct https_server	*sv = server_new(server.url);

	call(sv, hr);
	https_server_unref(sv);
}

#define OK(body)	"HTTP/1.1 200 OK\r\nContent-Length: " body

static void
check_heard(const char *text)
{
	if (strstr(server.heard, text) == NULL)
		test_end(TEST_FAILED, "not in %s: %s",
		    test_show(server.heard, strlen(server.heard)), text);
}

TEST(answered)
{
	start("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 2\r\n"
	    "\r\nhi");
	call_once(&simple);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	CHECK_INT(seen.status, 429);
	CHECK_INT(seen.retry_after_s, 7);
	CHECK_MEM(seen.body, seen.body_len, "hi", 2);
	check_heard("GET /u?v HTTP/1.1\r\n");
	check_heard("\r\nUser-Agent: egressd/");
	stop();
}

TEST(request)
{
	static const char *const	 methods[] = { "POST", "PUT", "PATCH",
	    "DELETE" };
	static const char *const	 lines[] = { "X-One: 1", "Y-Two: 2",
	    NULL };
	struct https_request		 hr = simple;
	char				 want[64];
	size_t				 i;

	hr.hr_path = "/api/v1?x=y";
	hr.hr_headers = lines;
	hr.hr_body = "{}\0{}";
	hr.hr_body_len = 5;
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		hr.hr_method = methods[i];
		start(OK("0\r\n\r\n"));
		call_once(&hr);
		CHECK_INT(seen.result, HTTPS_ANSWERED);
		snprintf(want, sizeof(want), "%s /api/v1?x=y HTTP/1.1\r\n",
		    methods[i]);
		check_heard(want);
		check_heard("\r\nX-One: 1\r\nY-Two: 2\r\n");
		check_heard("\r\nContent-Length: 5\r\n");
		CHECK(strstr(server.heard, "Expect") == NULL);
		stop();
	}
}

/* No body, no length: a server would wait for one. */
TEST(delete_without_body)
{
	struct https_request	 hr = simple;

	hr.hr_method = "DELETE";
	start(OK("0\r\n\r\n"));
	call_once(&hr);
	check_heard("DELETE /u?v HTTP/1.1\r\n");
	CHECK(strstr(server.heard, "Content-Length") == NULL);
	stop();
}

static void
answer_of(size_t len)
{
	char	*text;

	CHECK(asprintf(&text, OK("%zu\r\n\r\n%0*d"), len, (int)len, 0) != -1);
	start(text);
	call_once(&simple);
	stop();
	free(text);
}

TEST(size)
{
	answer_of(ANSWER_MAX);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	CHECK_INT(seen.body_len, ANSWER_MAX);
	answer_of(ANSWER_MAX + 1);
	CHECK_INT(seen.result, HTTPS_HUGE);
}

TEST(head_size)
{
	char	*text;

	CHECK(asprintf(&text, "HTTP/1.1 200 OK\r\nX: %070000d\r\n"
	    "Content-Length: 0\r\n\r\n", 0) != -1);
	start(text);
	call_once(&simple);
	CHECK_INT(seen.result, HTTPS_HUGE);
	stop();
	free(text);
}

TEST(redirect_is_an_answer)
{
	start("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
	    "Content-Length: 0\r\n\r\n");
	call_once(&simple);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	CHECK_INT(seen.status, 302);
	stop();
}

/* A connection is used again, unless it was mute. */
TEST(late)
{
	struct https_request	 hr = simple;
	struct https_server	*sv;

	start(OK("0\r\n\r\n"));
	sv = server_new(server.url);
	call(sv, &simple);
	call(sv, &simple);
	CHECK_INT(server.accepted, 1);
	hr.hr_timeout_ms = 50;
	server.says = NULL;
	call(sv, &hr);
	CHECK_INT(seen.result, HTTPS_LATE);
	server.says = OK("0\r\n\r\n");
	call(sv, &simple);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	CHECK_INT(server.accepted, 2);
	https_server_unref(sv);
	stop();
}

TEST(no_time_left)
{
	struct https_request	 hr = simple;

	hr.hr_timeout_ms = 0;
	start(NULL);
	call_once(&hr);
	CHECK_INT(seen.result, HTTPS_LATE);
	stop();
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	event_base_loopbreak(child_base);
}

/* Cancelled at once, or when it has been heard: no end is told. */
TEST(cancel)
{
	static const struct timeval	 tick = { 0, 1000 };
	struct https_server		*sv;
	struct https_call		*ca;

	start(NULL);
	sv = server_new(server.url);
	https_cancel(https_begin(sv, &simple, on_end, &seen));
	ca = https_begin(sv, &simple, on_end, &seen);
	while (server.heard[0] == '\0') {
		event_base_once(child_base, -1, EV_TIMEOUT, on_turn, NULL,
		    &tick);
		CHECK(event_base_dispatch(child_base) != -1);
	}
	https_server_unref(sv);
	https_cancel(ca);
	https_cancel(NULL);
	CHECK_INT(event_base_loop(child_base, EVLOOP_NONBLOCK), 0);
	CHECK_INT(seen.ends, 0);
	stop();
}

/* The callback may begin another call, whose server it has let go of. */
TEST(again)
{
	struct https_server	*sv;

	start(OK("2\r\n\r\nhi"));
	sv = server_new(server.url);
	seen.again = sv;
	https_begin(sv, &simple, on_end, &seen);
	https_server_unref(sv);
	CHECK(event_base_dispatch(child_base) != -1);
	CHECK_INT(seen.ends, 2);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	stop();
}

/* ---- pieces ---- */

static int
on_data(void *arg, const char *data, size_t len)
{
	CHECK(arg == &server);
	CHECK(len > 0 && seen.body_len + len <= ANSWER_MAX);
	memcpy(seen.body + seen.body_len, data, len);
	seen.body_len += len;
	seen.pieces++;
	if (seen.cancel != NULL) {
		https_cancel(seen.cancel);
		event_base_loopbreak(child_base);
		return 0;
	}
	/* The server goes on when the first piece was seen. */
	if (server.more != NULL)
		CHECK_INT(write(conns[0], server.more, strlen(server.more)),
		    strlen(server.more));
	server.more = NULL;
	return seen.stop_at != 0 && seen.body_len >= seen.stop_at ? -1 : 0;
}

static const struct https_request streamed = {
	.hr_method = "GET",
	.hr_answer_max = ANSWER_MAX,
	.hr_timeout_ms = HTTPS_NO_LIMIT,
	.hr_data = on_data,
	.hr_arg = &server,
};

#define CHUNKED		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

TEST(pieces)
{
	start(CHUNKED "3\r\none\r\n");
	server.more = "3\r\ntwo\r\n0\r\n\r\n";
	call_once(&streamed);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	CHECK_INT(seen.status, 200);
	CHECK_INT(seen.pieces, 2);
	CHECK_STR(seen.body, "onetwo");
	stop();
}

/* The body of a refusal is no piece: it is kept, and bounded. */
TEST(pieces_of_a_refusal)
{
	start("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\nlate");
	call_once(&streamed);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	CHECK_INT(seen.status, 410);
	CHECK_INT(seen.pieces, 0);
	CHECK_MEM(seen.body, seen.body_len, "late", 4);
	stop();
}

TEST(pieces_stopped)
{
	start(CHUNKED "3\r\none\r\n");
	seen.stop_at = 3;
	call_once(&streamed);
	CHECK_INT(seen.result, HTTPS_ANSWERED);
	CHECK_INT(seen.status, 200);
	CHECK_INT(seen.pieces, 1);
	stop();
}

TEST(pieces_cancelled)
{
	struct https_server	*sv;

	start(CHUNKED "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
	sv = server_new(server.url);
	seen.cancel = https_begin(sv, &streamed, on_end, &seen);
	https_server_unref(sv);
	CHECK(event_base_dispatch(child_base) != -1);
	CHECK_INT(seen.pieces, 1);
	CHECK_INT(event_base_loop(child_base, EVLOOP_NONBLOCK), 0);
	CHECK_INT(seen.ends, 0);
	stop();
}

/* Silence ends it, whether something has come before or not. */
TEST(pieces_idle)
{
	struct https_request	 hr = streamed;

	hr.hr_idle_ms = 50;
	start(CHUNKED "3\r\none\r\n");
	server.more = "3\r\ntwo\r\n";
	call_once(&hr);
	CHECK_INT(seen.result, HTTPS_LATE);
	CHECK_STR(seen.body, "onetwo");
	stop();
	start(NULL);
	call_once(&hr);
	CHECK_INT(seen.result, HTTPS_LATE);
	CHECK_INT(seen.pieces, 0);
	stop();
}

TEST(pieces_cut_off)
{
	start(CHUNKED "3\r\none\r\nzz\r\n");
	call_once(&streamed);
	CHECK_INT(seen.result, HTTPS_FAILED);
	CHECK(seen.why[0] != '\0');
	stop();
}

/* ---- what cannot be asked ---- */

static const struct {
	const char	*url;
	const char	*why;
} failures[] = {
	{ "https://127.0.0.1:1/",
	    "there are no certificates to verify it with" },
	{ "https://a.test/", "a.test: no name server is configured" },
	{ "http://a.test/", "a.test: no name server is configured" },
};

TEST(fails_without_asking)
{
	struct https_server	*sv;
	size_t			 i;

	for (i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		start(NULL);
		sv = server_new(failures[i].url);
		call(sv, &simple);
		CHECK_INT(seen.result, HTTPS_FAILED);
		CHECK_STR(seen.why, failures[i].why);
		https_server_unref(sv);
		stop();
	}
}

/* The port stays ours, but nobody listens there. */
TEST(refused)
{
	start(NULL);
	event_del(server.event);
	CHECK_INT(shutdown(server.listener, SHUT_RDWR), 0);
	call_once(&simple);
	CHECK_INT(seen.result, HTTPS_FAILED);
	CHECK(seen.why[0] != '\0');
	stop();
}

TEST_MAIN("https")
