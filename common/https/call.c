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
#include "https/private.h"
#include "log.h"
#include "resolver.h"

#define CONNECTIONS_MAX	1024
#define IDLE_MAX	64	/* connections kept for the next request */
#define HEAD_LEN	(64 * 1024)

static CURLM		*multi;
static struct event	 on_timeout;

static void	 call_done(struct https_call *, CURLcode);

/* ---- the event loop ---- */

static void
multi_reap(void)
{
	CURLMsg		*cm;
	int		 left;
	void		*ca;

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
	curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
	    (long)CONNECTIONS_MAX);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)IDLE_MAX);
	resolver_warm(NULL);
}

/* ---- how a call ends ---- */

/* Never within a call of libcurl's: deadlines and answers have their turn. */
static void
call_stop(struct https_call *ca)
{
	event_del(&ca->ca_event);
	server_forget(ca);
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

static void
call_end(struct https_call *ca, const struct https_answer *ha)
{
	call_stop(ca);
	ca->ca_done(ca->ca_arg, ha);
	call_free(ca);
}

static void
call_done(struct https_call *ca, CURLcode code)
{
	struct https_answer	 ha = { .ha_result = HTTPS_ANSWERED };
	curl_off_t		 wait = 0;
	long			 version = CURL_HTTP_VERSION_NONE;

	curl_easy_getinfo(ca->ca_easy, CURLINFO_RESPONSE_CODE, &ha.ha_status);
	curl_easy_getinfo(ca->ca_easy, CURLINFO_RETRY_AFTER, &wait);
	curl_easy_getinfo(ca->ca_easy, CURLINFO_HTTP_VERSION, &version);
	ca->ca_server->sv_shares = version == CURL_HTTP_VERSION_2_0;
	ha.ha_retry_after_s = wait;
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
	ca->ca_head += size * n;
	ca->ca_huge = ca->ca_head > HEAD_LEN;
	return ca->ca_huge ? 0 : size * n;
}

static size_t
take_body(char *data, size_t size, size_t n, void *arg)
{
	struct https_call	*ca = arg;
	size_t			 len = size * n;
	char			*p;

	ca->ca_huge = len > ca->ca_request.hr_answer_max - ca->ca_body_len;
	if (ca->ca_huge || len == 0)
		return 0;
	if ((p = realloc(ca->ca_body, ca->ca_body_len + len)) == NULL)
		return 0;
	memcpy(p + ca->ca_body_len, data, len);
	ca->ca_body = p;
	ca->ca_body_len += len;
	return len;
}

/* ---- what goes out ---- */

#define SET(option, value)						\
	if ((rv = curl_easy_setopt(ca->ca_easy, CURLOPT_##option,	\
	    value)) != CURLE_OK)					\
		return rv

/* Nothing from the environment, and no other place that an answer names. */
static CURLcode
set_transport(struct https_call *ca, struct https_server *sv)
{
	CURLcode	 rv;

	SET(NOSIGNAL, 1L);
	SET(PROTOCOLS_STR, "http,https");
	SET(FOLLOWLOCATION, 0L);
	SET(PROXY, "");
	SET(NOPROXY, "*");
	SET(NETRC, (long)CURL_NETRC_IGNORED);
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/* In libcurl 8.14 those that wait for HTTP/1 wait until it is over. */
	SET(PIPEWAIT, sv->sv_shares ? 1L : 0L);
	SET(FRESH_CONNECT, sv->sv_afresh ? 1L : 0L);
	sv->sv_afresh = false;
	SET(CAPATH, NULL);
	SET(CAINFO, NULL);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(SSL_VERIFYPEER, 1L);
	SET(SSL_VERIFYHOST, 2L);
	if (sv->sv_tls &&
	    (rv = trust_set(sv->sv_trust, ca->ca_easy)) != CURLE_OK)
		return rv;
	if (sv->sv_known != NULL) {
		ca->ca_resolve = curl_slist_append(NULL, sv->sv_known);
		SET(RESOLVE, ca->ca_resolve);
	}
	return CURLE_OK;
}

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
	size_t			 i, n = 0;

	while (line != NULL && line[n] != NULL)
		n++;
	if ((ca->ca_headers = calloc(n + 1, sizeof(*ca->ca_headers))) == NULL)
		fatal("%s", __func__);
	for (i = 0; i < n; i++) {
		ca->ca_headers[i].data = strchr(line[i], line[i][0]);
		ca->ca_headers[i].next = &ca->ca_headers[i + 1];
	}
	ca->ca_headers[n].data = expect;
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

	if (sv->sv_tls && sv->sv_trust == NULL) {
		call_fail(ca, "there are no certificates to verify it with");
		return;
	}
	if ((ca->ca_easy = curl_easy_init()) == NULL)
		fatalx("%s: no memory", __func__);
	if ((rv = set_transport(ca, sv)) != CURLE_OK ||
	    (rv = set_request(ca)) != CURLE_OK) {
		curl_easy_cleanup(ca->ca_easy);
		ca->ca_easy = NULL;
		call_fail(ca, "%s", curl_easy_strerror(rv));
		return;
	}
	if (curl_multi_add_handle(multi, ca->ca_easy) != CURLM_OK)
		fatalx("%s: curl_multi_add_handle", __func__);
}

struct https_call *
https_begin(struct https_server *sv, const struct https_request *hr,
    https_done *done, void *arg)
{
	struct https_call	*ca;
	struct timeval		 tv;

	if ((ca = calloc(1, sizeof(*ca))) == NULL)
		fatal("%s", __func__);
	sv->sv_refs++;
	ca->ca_server = sv;
	ca->ca_request = *hr;
	ca->ca_done = done;
	ca->ca_arg = arg;
	tv.tv_sec = hr->hr_timeout_ms / 1000;
	tv.tv_usec = hr->hr_timeout_ms % 1000 * 1000;
	event_assign(&ca->ca_event, child_base, -1, 0, call_on_event, ca);
	if (event_add(&ca->ca_event, &tv) == -1)
		fatalx("%s: event_add", __func__);
	server_find(ca);
	return ca;
}
