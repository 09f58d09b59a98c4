/* SPDX-License-Identifier: ISC */

/*
 * Children with an HTTPS client run this: a request, by way of libcurl's multi
 * interface on the child's event loop.
 *
 *	begin -> find the server's address -> send -> answered, failed, huge
 *	  `----------- any time: late, cancelled -----------'
 *
 * Whoever began a call hears of its end from the event loop alone, never from
 * within a function of this client or of libcurl's.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "clock.h"
#include "https/private.h"
#include "log.h"
#include "resolver.h"

#define CONNECTIONS_MAX	1024
#define IDLE_MAX	64	/* connections kept for the next request */
#define HEAD_LEN	(64 * 1024)

static CURLM			*multi;
static struct event		 on_timeout;
static struct https_calls	 due = TAILQ_HEAD_INITIALIZER(due);

static void	 call_tell(struct https_call *);
static void	 call_done(struct https_call *, CURLcode);

/* ---- the event loop ---- */

/* After libcurl had its turn: what has come, then what is over. */
static void
multi_reap(void)
{
	CURLMsg			*cm;
	struct https_call	*first;
	int			 left;
	void			*ca;

	while ((first = TAILQ_FIRST(&due)) != NULL)
		call_tell(first);
	while ((cm = curl_multi_info_read(multi, &left)) != NULL)
		if (cm->msg == CURLMSG_DONE && curl_easy_getinfo(
		    cm->easy_handle, CURLINFO_PRIVATE, &ca) == CURLE_OK)
			call_done(ca, cm->data.result);
}

static void
multi_on_timeout(evutil_socket_t fd, short what, void *arg)
{
	int	 running;

	(void)fd, (void)what, (void)arg;
	curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
	multi_reap();
}

static void
multi_on_socket(evutil_socket_t fd, short what, void *arg)
{
	int	 running;

	(void)arg;
	curl_multi_socket_action(multi, fd,
	    (what & EV_READ ? CURL_CSELECT_IN : 0) |
	    (what & EV_WRITE ? CURL_CSELECT_OUT : 0), &running);
	multi_reap();
}

static int
multi_set_timer(CURLM *cm, long ms, void *arg)
{
	struct timeval	 tv = { ms / 1000, ms % 1000 * 1000 };

	(void)cm, (void)arg;
	if (ms < 0)
		event_del(&on_timeout);
	else if (event_add(&on_timeout, &tv) == -1)
		fatalx("%s: event_add", __func__);
	return 0;
}

static int
multi_set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *old)
{
	struct event	*ev = old;
	short		 events = EV_PERSIST;

	(void)easy, (void)arg;
	if (ev != NULL)
		event_free(ev);
	curl_multi_assign(multi, fd, NULL);
	if (what == CURL_POLL_REMOVE)
		return 0;
	if (what & CURL_POLL_IN)
		events |= EV_READ;
	if (what & CURL_POLL_OUT)
		events |= EV_WRITE;
	if ((ev = event_new(child_base, fd, events, multi_on_socket, NULL)) ==
	    NULL || event_add(ev, NULL) == -1)
		fatalx("%s: event", __func__);
	curl_multi_assign(multi, fd, ev);
	return 0;
}

/*
 * libcurl reads the configuration of its TLS library here, and makes the pair
 * of sockets by which it would wake itself.
 */
void
https_warm(void)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    (multi = curl_multi_init()) == NULL)
		fatalx("libcurl cannot be used");
	event_assign(&on_timeout, child_base, -1, 0, multi_on_timeout, NULL);
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, multi_set_socket);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, multi_set_timer);
	curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	calls_open(0);
	resolver_warm(NULL);
}

/*
 * Connections that somebody has taken for good: libcurl counts them, and they
 * shall not be at the cost of those that are kept for requests.
 */
void
calls_open(int more)
{
	static int	 taken;

	taken += more;
	curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
	    (long)CONNECTIONS_MAX + taken);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)IDLE_MAX + taken);
}

/* ---- how a call ends ---- */

/* Never within a call of libcurl's: deadlines and answers have their turn. */
static void
call_stop(struct https_call *ca)
{
	event_del(&ca->ca_event);
	server_forget(ca);
	if (ca->ca_due)
		TAILQ_REMOVE(&due, ca, ca_entry);
	ca->ca_due = false;
	if (ca->ca_easy == NULL)
		return;
	curl_multi_remove_handle(multi, ca->ca_easy);
	curl_easy_cleanup(ca->ca_easy);
	ca->ca_easy = NULL;
}

static void
call_free(struct https_call *ca)
{
	curl_slist_free_all(ca->ca_resolve);
	free(ca->ca_headers);
	free(ca->ca_url);
	free(ca->ca_body);
	https_server_unref(ca->ca_server);
	free(ca);
}

void
https_cancel(struct https_call *ca)
{
	if (ca == NULL)
		return;
	call_stop(ca);
	call_free(ca);
}

void
call_end(struct https_call *ca, const struct https_answer *ha)
{
	call_stop(ca);
	ca->ca_done(ca->ca_arg, ha);
	call_free(ca);
}

/* The piece is taken off first: the call may be cancelled on the way. */
static void
call_tell(struct https_call *ca)
{
	struct https_answer	 ha = { .ha_result = HTTPS_ANSWERED };
	char			*data = ca->ca_body;
	size_t			 len = ca->ca_body_len;

	TAILQ_REMOVE(&due, ca, ca_entry);
	ca->ca_due = false;
	ca->ca_body = NULL;
	ca->ca_body_len = ca->ca_body_size = 0;
	if (ca->ca_request.hr_data(ca->ca_request.hr_arg, data, len) == -1) {
		curl_easy_getinfo(ca->ca_easy, CURLINFO_RESPONSE_CODE,
		    &ha.ha_status);
		call_end(ca, &ha);
	}
	free(data);
}

/* By the server's clock, in seconds since the epoch; 0 if it does not say. */
static long long
call_date(struct https_call *ca)
{
	struct curl_header	*ch;
	time_t			 t;

	if (curl_easy_header(ca->ca_easy, "Date", 0, CURLH_HEADER, -1, &ch) !=
	    CURLHE_OK || (t = curl_getdate(ch->value, NULL)) == -1)
		return 0;
	return t;
}

static void
call_done(struct https_call *ca, CURLcode code)
{
	struct https_answer	 ha = { .ha_result = HTTPS_ANSWERED };
	curl_off_t		 wait = 0;
	long			 version = CURL_HTTP_VERSION_NONE;

	if (ca->ca_connected != NULL && code == CURLE_OK) {
		ca->ca_connected(ca);
		return;
	}
	curl_easy_getinfo(ca->ca_easy, CURLINFO_RESPONSE_CODE, &ha.ha_status);
	curl_easy_getinfo(ca->ca_easy, CURLINFO_RETRY_AFTER, &wait);
	curl_easy_getinfo(ca->ca_easy, CURLINFO_HTTP_VERSION, &version);
	if (ca->ca_connected == NULL)
		ca->ca_server->sv_shares = version == CURL_HTTP_VERSION_2_0;
	ha.ha_retry_after_s = wait;
	ha.ha_date_s = call_date(ca);
	ha.ha_body = ca->ca_body;
	ha.ha_body_len = ca->ca_body_len;
	if (ca->ca_huge)
		ha.ha_result = HTTPS_HUGE;
	else if (code != CURLE_OK) {
		ha.ha_result = HTTPS_FAILED;
		ha.ha_why = ca->ca_why[0] != '\0' ? ca->ca_why :
		    curl_easy_strerror(code);
	}
	call_end(ca, &ha);
}

/*
 * The connection of a late call may be mute, and would be that of all further
 * requests: it goes with the last that uses it, and the next request gets
 * another.
 */
static void
call_late(struct https_call *ca)
{
	struct https_answer	 ha = { .ha_result = HTTPS_LATE };

	if (ca->ca_easy != NULL) {
		curl_easy_setopt(ca->ca_easy, CURLOPT_FORBID_REUSE, 1L);
		ca->ca_server->sv_afresh = true;
	}
	call_end(ca, &ha);
}

static void
call_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct https_call	*ca = arg;
	struct https_answer	 ha = {
		.ha_result = HTTPS_FAILED,
		.ha_why = ca->ca_why
	};

	(void)fd;
	if (what & EV_READ)
		call_end(ca, &ha);
	else
		call_late(ca);
}

/* The deadline; before it, the end of a silence that is too long. */
static void
call_arm(struct https_call *ca)
{
	uint64_t	 now = clock_ms(), left = HTTPS_NO_LIMIT;
	uint64_t	 idle = ca->ca_request.hr_idle_ms;
	struct timeval	 tv;

	if (ca->ca_until_ms != HTTPS_NO_LIMIT)
		left = ca->ca_until_ms > now ? ca->ca_until_ms - now : 0;
	if (idle != 0 && idle < left)
		left = idle;
	if (left == HTTPS_NO_LIMIT)
		return;
	tv.tv_sec = (time_t)(left / 1000);
	tv.tv_usec = (suseconds_t)(left % 1000 * 1000);
	if (event_add(&ca->ca_event, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

/* Heard of in the next turn of the loop; EV_READ tells it from the deadline. */
void
call_fail(struct https_call *ca, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(ca->ca_why, sizeof(ca->ca_why), fmt, ap);
	va_end(ap);
	event_active(&ca->ca_event, EV_READ, 0);
}

/* ---- what comes back ---- */

static size_t
take_head(char *data, size_t size, size_t n, void *arg)
{
	struct https_call	*ca = arg;

	(void)data;
	if (ca->ca_request.hr_idle_ms != 0)
		call_arm(ca);
	ca->ca_head += size * n;
	ca->ca_huge = ca->ca_head > HEAD_LEN;
	return ca->ca_huge ? 0 : size * n;
}

static bool
call_streams(const struct https_call *ca)
{
	long	 status = 0;

	curl_easy_getinfo(ca->ca_easy, CURLINFO_RESPONSE_CODE, &status);
	return ca->ca_request.hr_data != NULL && status / 100 == 2;
}

static int
body_grow(struct https_call *ca, size_t more)
{
	size_t	 size = ca->ca_body_size;
	char	*p;

	if (more <= size - ca->ca_body_len)
		return 0;
	size = 2 * size > ca->ca_body_len + more ? 2 * size :
	    ca->ca_body_len + more;
	if ((p = realloc(ca->ca_body, size)) == NULL)
		return -1;
	ca->ca_body = p;
	ca->ca_body_size = size;
	return 0;
}

/*
 * What is to be handed on is kept until libcurl has returned: who gets it may
 * begin and cancel calls.  libcurl bounds what it reads in one turn.
 */
static size_t
take_body(char *data, size_t size, size_t n, void *arg)
{
	struct https_call	*ca = arg;
	size_t			 len = size * n;
	bool			 streams = call_streams(ca);

	if (ca->ca_request.hr_idle_ms != 0)
		call_arm(ca);
	ca->ca_huge = !streams &&
	    len > ca->ca_request.hr_answer_max - ca->ca_body_len;
	if (ca->ca_huge || len == 0)
		return 0;
	if (body_grow(ca, len) == -1)
		return 0;
	memcpy(ca->ca_body + ca->ca_body_len, data, len);
	ca->ca_body_len += len;
	if (streams && !ca->ca_due) {
		ca->ca_due = true;
		TAILQ_INSERT_TAIL(&due, ca, ca_entry);
	}
	return len;
}

/* ---- what goes out ---- */

#define SET(option, value)						\
	if ((rv = curl_easy_setopt(ca->ca_easy, CURLOPT_##option,	\
	    value)) != CURLE_OK)					\
		return rv

/*
 * A list of libcurl's, around lines that stay where they are: one may be a
 * secret.  libcurl has no const there and changes nothing.
 */
static void
make_headers(struct https_call *ca)
{
	/* Or libcurl would wait for leave to send a body. */
	static char		 expect[] = "Expect:";
	const char *const	*line = ca->ca_request.hr_headers;
	char			*host = ca->ca_server->sv_host_line;
	struct curl_slist	*list;
	size_t			 i, n = 0;

	while (line != NULL && line[n] != NULL)
		n++;
	if ((list = calloc(n + 2, sizeof(*list))) == NULL)
		fatal("%s", __func__);
	for (i = 0; i < n; i++) {
		list[i].data = strchr(line[i], line[i][0]);
		list[i].next = &list[i + 1];
	}
	list[n].data = expect;
	if (host != NULL) {
		list[n].next = &list[n + 1];
		list[n + 1].data = host;
	}
	ca->ca_headers = list;
}

static CURLcode
set_request(struct https_call *ca)
{
	const struct https_request	*hr = &ca->ca_request;
	CURLcode			 rv;

	if (hr->hr_path != NULL && asprintf(&ca->ca_url, "%s%s",
	    ca->ca_server->sv_origin, hr->hr_path) == -1)
		fatal("%s", __func__);
	make_headers(ca);
	SET(URL, ca->ca_url != NULL ? ca->ca_url : ca->ca_server->sv_url);
	SET(HTTPHEADER, ca->ca_headers);
	SET(USERAGENT, "egressd/" EGRESSD_VERSION);
	if (hr->hr_body != NULL) {
		SET(POST, 1L);
		SET(POSTFIELDS, hr->hr_body);
		SET(POSTFIELDSIZE_LARGE, (curl_off_t)hr->hr_body_len);
	}
	SET(CUSTOMREQUEST, hr->hr_method);
	SET(PRIVATE, ca);
	SET(ERRORBUFFER, ca->ca_why);
	SET(HEADERFUNCTION, take_head);
	SET(HEADERDATA, ca);
	SET(WRITEFUNCTION, take_body);
	SET(WRITEDATA, ca);
	return CURLE_OK;
}
#undef SET

void
call_send(struct https_call *ca)
{
	struct https_server	*sv = ca->ca_server;
	CURLcode		 rv;

	if (sv->sv_tls && sv->sv_trust == NULL && !sv->sv_insecure) {
		call_fail(ca, "there are no certificates to verify it with");
		return;
	}
	if ((ca->ca_easy = curl_easy_init()) == NULL)
		fatalx("%s: no memory", __func__);
	if ((rv = transport_set(ca)) != CURLE_OK ||
	    (rv = set_request(ca)) != CURLE_OK) {
		curl_easy_cleanup(ca->ca_easy);
		ca->ca_easy = NULL;
		call_fail(ca, "%s", curl_easy_strerror(rv));
		return;
	}
	if (curl_multi_add_handle(multi, ca->ca_easy) != CURLM_OK)
		fatalx("%s: curl_multi_add_handle", __func__);
}

/* With connected, a connection and no more: see private.h. */
struct https_call *
call_begin(struct https_server *sv, const struct https_request *hr,
    https_done *done, void *arg, void (*connected)(struct https_call *))
{
	struct https_call	*ca;
	uint64_t		 now = clock_ms();

	if ((ca = calloc(1, sizeof(*ca))) == NULL)
		fatal("%s", __func__);
	sv->sv_refs++;
	ca->ca_server = sv;
	ca->ca_request = *hr;
	ca->ca_done = done;
	ca->ca_arg = arg;
	ca->ca_connected = connected;
	ca->ca_until_ms = hr->hr_timeout_ms < HTTPS_NO_LIMIT - now ?
	    now + hr->hr_timeout_ms : HTTPS_NO_LIMIT;
	event_assign(&ca->ca_event, child_base, -1, 0, call_on_event, ca);
	call_arm(ca);
	server_find(ca);
	return ca;
}

struct https_call *
https_begin(struct https_server *sv, const struct https_request *hr,
    https_done *done, void *arg)
{
	return call_begin(sv, hr, done, arg, NULL);
}
