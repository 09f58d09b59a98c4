/* SPDX-License-Identifier: ISC */

/*
 * Children with a WebSocket run this: the connection, by way of libcurl's
 * CONNECT_ONLY (the libcurl of Debian 12 has no WebSocket of its own), the
 * upgrade, and what waits to be read and written.
 *
 *	connecting -> asking -> open -> closing, closed -> the end
 *	                `-> refused -> the end
 *
 * The call of call.c that made the connection stays, since libcurl closes the
 * connection with it; every end goes through call_end().  Whatever may end it
 * here runs under ws_run(), which looks whether it has.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "child.h"
#include "https/ws_private.h"
#include "log.h"

#define OUT_LEN		(64 * 1024)
#define FRAME_HEAD	14	/* RFC 6455, 5.2: of a long, masked frame */
#define CONTROL_FRAME	(FRAME_HEAD + WS_CONTROL_LEN)
#define OUT_KEPT	(4 * CONTROL_FRAME)	/* of it for control frames */
#define HEAD_MAX	(16 * 1024)
#define READ_LEN	4096
#define CLOSE_MS	2000

static void	 ws_run(struct https_ws *);

/* ---- the end ---- */

static void
ws_quiet(struct https_ws *ws)
{
	if (ws->ws_state == WS_CONNECTING)
		return;
	event_del(&ws->ws_readable);
	event_del(&ws->ws_writable);
	event_del(&ws->ws_timer);
}

/* Bytes that were to go out begin with the credentials of the request. */
static void
ws_drop(struct https_ws *ws)
{
	if (ws->ws_gone != NULL)
		*ws->ws_gone = true;
	if (ws->ws_frames != NULL)
		wslay_frame_context_free(ws->ws_frames);
	freezero(ws->ws_out, OUT_LEN);
	free(ws->ws_in);
	free(ws);
}

void
https_ws_free(struct https_ws *ws)
{
	if (ws == NULL)
		return;
	ws_quiet(ws);
	if (ws->ws_state != WS_CONNECTING)
		calls_open(-1);
	https_cancel(ws->ws_call);
	ws_drop(ws);
}

/* However the call ended: the deadline, a connection that failed, ws_over(). */
static void
ws_done(void *arg, const struct https_answer *ha)
{
	struct https_ws	*ws = arg;

	ws_quiet(ws);
	if (ws->ws_state != WS_CONNECTING)
		calls_open(-1);
	ws->ws_calls->wc_end(ws->ws_arg, ha);
	ws_drop(ws);
}

/* Before libcurl closes what the events are about. */
void
ws_over(struct https_ws *ws, const struct https_answer *ha)
{
	ws_quiet(ws);
	call_end(ws->ws_call, ha);
}

void
ws_fail(struct https_ws *ws, const char *fmt, ...)
{
	struct https_call	*ca = ws->ws_call;
	struct https_answer	 ha = { .ha_result = HTTPS_FAILED };
	va_list			 ap;

	va_start(ap, fmt);
	vsnprintf(ca->ca_why, sizeof(ca->ca_why), fmt, ap);
	va_end(ap);
	ha.ha_why = ca->ca_why;
	ws_over(ws, &ha);
}

/* ---- bytes ---- */

/* 0: none now; -1: ws_broken. */
ssize_t
ws_read(struct https_ws *ws, void *buf, size_t len)
{
	size_t		 n = ws->ws_in_len - ws->ws_in_off;
	CURLcode	 rv;

	if (ws->ws_state >= WS_OPEN && n > 0) {
		n = n < len ? n : len;
		memcpy(buf, ws->ws_in + ws->ws_in_off, n);
		ws->ws_in_off += n;
		return (ssize_t)n;
	}
	n = 0;
	rv = curl_easy_recv(ws->ws_call->ca_easy, buf, len, &n);
	ws->ws_dry = rv == CURLE_AGAIN;
	if (rv == CURLE_AGAIN)
		return 0;
	if (rv != CURLE_OK || n == 0) {
		ws->ws_broken = rv != CURLE_OK ? curl_easy_strerror(rv) :
		    "it has closed the connection";
		return -1;
	}
	ws->ws_silences = 0;
	return (ssize_t)n;
}

int
ws_put(struct https_ws *ws, const void *data, size_t len)
{
	if (len > OUT_LEN - ws->ws_out_len)
		return -1;
	if (ws->ws_out == NULL && (ws->ws_out = malloc(OUT_LEN)) == NULL)
		fatal("%s", __func__);
	memcpy(ws->ws_out + ws->ws_out_len, data, len);
	ws->ws_out_len += len;
	return 0;
}

/* For a control frame, and a close after it. */
bool
ws_has_room(const struct https_ws *ws)
{
	return ws->ws_out_len <= OUT_LEN - 2 * CONTROL_FRAME;
}

/*
 * TLS wants what it could not send once more, the same bytes from the same
 * place; so they are not moved before all have left.
 */
static void
ws_write(struct https_ws *ws)
{
	CURLcode	 rv;
	size_t		 n;

	while (ws->ws_out_off < ws->ws_out_len) {
		if (ws->ws_out_try == 0)
			ws->ws_out_try = ws->ws_out_len - ws->ws_out_off;
		n = 0;
		rv = curl_easy_send(ws->ws_call->ca_easy,
		    ws->ws_out + ws->ws_out_off, ws->ws_out_try, &n);
		if (rv == CURLE_AGAIN)
			return;
		if (rv != CURLE_OK) {
			ws_fail(ws, "%s", curl_easy_strerror(rv));
			return;
		}
		ws->ws_out_off += n;
		ws->ws_out_try = 0;
	}
	if (ws->ws_out == NULL)
		return;
	freezero(ws->ws_out, OUT_LEN);
	ws->ws_out = NULL;
	ws->ws_out_off = ws->ws_out_len = 0;
	if (ws->ws_state == WS_OPEN)
		ws->ws_calls->wc_room(ws->ws_arg);
}

/* ---- closing ---- */

static void
ws_arm(struct https_ws *ws, uint64_t ms)
{
	struct timeval	 tv;

	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (event_add(&ws->ws_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

/* Their close has come; the answer is ours, unless that has left before. */
void
ws_closed(struct https_ws *ws)
{
	if (ws->ws_state == WS_OPEN) {
		ws_put_close(ws, ws->ws_code);
		ws_arm(ws, CLOSE_MS);
	}
	ws->ws_state = WS_CLOSED;
}

/* They are told once, if that is possible at once. */
void
ws_bad(struct https_ws *ws, unsigned int code, const char *why)
{
	size_t	 n;

	if (ws->ws_out_len == 0 && ws->ws_state == WS_OPEN) {
		ws_put_close(ws, code);
		curl_easy_send(ws->ws_call->ca_easy, ws->ws_out,
		    ws->ws_out_len, &n);
	}
	ws_fail(ws, "WebSocket: %s", why);
}

void
https_ws_close(struct https_ws *ws, unsigned int code)
{
	if (ws->ws_state != WS_OPEN)
		return;
	ws_put_close(ws, code);
	ws->ws_state = WS_CLOSING;
	ws->ws_held = false;
	ws_arm(ws, CLOSE_MS);
	event_active(&ws->ws_writable, EV_WRITE, 0);
}

static void
ws_end_closed(struct https_ws *ws)
{
	struct https_answer	 ha = {
		.ha_result = HTTPS_ANSWERED,
		.ha_status = 101,
		.ha_close = ws->ws_code
	};

	if (ws->ws_state == WS_CLOSED && ws->ws_control_len > 2) {
		ha.ha_body = ws->ws_control + 2;
		ha.ha_body_len = ws->ws_control_len - 2;
	}
	ws_over(ws, &ha);
}

/* ---- the upgrade ---- */

/* A line must stay one. */
static int
put_line(struct https_ws *ws, const char *name, const char *text)
{
	if (strpbrk(text, "\r\n") != NULL)
		return -1;
	return ws_put(ws, name, strlen(name)) == -1 ||
	    ws_put(ws, text, strlen(text)) == -1 ||
	    ws_put(ws, "\r\n", 2) == -1 ? -1 : 0;
}

static int
put_protocols(struct https_ws *ws)
{
	static const char	 name[] = "Sec-WebSocket-Protocol: ";
	const char *const	*p;

	for (p = ws->ws_protocols; *p != NULL; p++)
		if (ws_put(ws, p == ws->ws_protocols ? name : ", ",
		    p == ws->ws_protocols ? sizeof(name) - 1 : 2) == -1 ||
		    ws_put(ws, *p, strlen(*p)) == -1)
			return -1;
	return p == ws->ws_protocols ? 0 : ws_put(ws, "\r\n", 2);
}

/* The Host as libcurl would write it. */
static int
put_host(struct https_ws *ws, const struct https_server *sv)
{
	const char	*place = strstr(sv->sv_origin, "://") + 3;

	return sv->sv_host_line != NULL ? put_line(ws, "", sv->sv_host_line) :
	    put_line(ws, "Host: ", place);
}

static int
put_request(struct https_ws *ws)
{
	const struct https_request	*hr = &ws->ws_call->ca_request;
	const char *const		*line = hr->hr_headers;

	if (strpbrk(hr->hr_path, " \t\r\n") != NULL ||
	    ws_put(ws, "GET ", 4) == -1 ||
	    put_line(ws, hr->hr_path, " HTTP/1.1") == -1 ||
	    put_host(ws, ws->ws_call->ca_server) == -1 ||
	    put_line(ws, "User-Agent: ", "egressd/" EGRESSD_VERSION) == -1 ||
	    put_line(ws, "Upgrade: ", "websocket") == -1 ||
	    put_line(ws, "Connection: ", "Upgrade") == -1 ||
	    put_line(ws, "Sec-WebSocket-Version: ", "13") == -1 ||
	    put_line(ws, "Sec-WebSocket-Key: ", ws->ws_key) == -1 ||
	    put_protocols(ws) == -1)
		return -1;
	for (; line != NULL && *line != NULL; line++)
		if (put_line(ws, "", *line) == -1)
			return -1;
	return ws_put(ws, "\r\n", 2);
}

/* NULL, or why a 101 is none. */
static const char *
answer_fault(struct https_ws *ws, const struct ws_answer *wa, size_t *which)
{
	char	 accept[WS_ACCEPT_LEN + 1];

	ws_accept(ws->ws_key, accept);
	if (!wa->wa_upgrade)
		return "it does not upgrade to a WebSocket";
	if (strcmp(wa->wa_accept, accept) != 0)
		return "it answers to another key";
	if (wa->wa_extended)
		return "it wants an extension that was not offered";
	for (*which = 0; ws->ws_protocols[*which] != NULL; (*which)++)
		if (strcmp(ws->ws_protocols[*which], wa->wa_protocol) == 0)
			return NULL;
	return *which == 0 && wa->wa_protocol[0] == '\0' ? NULL :
	    "it chose none of the subprotocols";
}

static void
ws_opened(struct https_ws *ws, const struct ws_answer *wa)
{
	const char	*why;
	size_t		 which;

	if ((why = answer_fault(ws, wa, &which)) != NULL) {
		ws_fail(ws, "WebSocket: %s", why);
		return;
	}
	event_del(&ws->ws_call->ca_event);	/* the deadline */
	ws->ws_in_off = wa->wa_head;
	ws_frames_new(ws);
	ws->ws_state = WS_OPEN;
	if (ws->ws_idle_ms != 0)
		ws_arm(ws, ws->ws_idle_ms);
	ws->ws_calls->wc_open(ws->ws_arg, which);
}

/* All of a refusal, as far as it says how long that is. */
static void
ws_refused(struct https_ws *ws, const struct ws_answer *wa)
{
	struct https_answer	 ha = { .ha_result = HTTPS_ANSWERED };
	char			*body = ws->ws_in + wa->wa_head;
	size_t			 len = ws->ws_in_len - wa->wa_head;
	size_t			 max = ws->ws_call->ca_request.hr_answer_max;

	ws->ws_state = WS_REFUSED;
	if (ws->ws_broken == NULL && len <= max &&
	    !(wa->wa_chunked && ws_answer_dechunk(body, &len) != 0) &&
	    !(wa->wa_sized && len >= wa->wa_length))
		return;
	if (len > max)
		ha.ha_result = HTTPS_HUGE;
	ha.ha_status = wa->wa_status;
	ha.ha_body = body;
	ha.ha_body_len = len;
	ws_over(ws, &ha);
}

static void
ws_take_head(struct https_ws *ws)
{
	struct ws_answer	 wa;
	int			 rv;

	rv = ws_answer_parse(ws->ws_in, ws->ws_in_len, &wa);
	if (rv == -1 || (rv == 0 && ws->ws_in_len > HEAD_MAX))
		ws_fail(ws, "its answer is no HTTP");
	else if (rv == 1 && wa.wa_status == 101)
		ws_opened(ws, &wa);
	else if (rv == 1)
		ws_refused(ws, &wa);
	else if (ws->ws_broken != NULL)
		ws_fail(ws, "%s", ws->ws_broken);
}

static void
ws_read_answer(struct https_ws *ws, const bool *gone)
{
	ssize_t	 n;
	char	*p;

	while (!*gone && (ws->ws_state == WS_ASKING ||
	    ws->ws_state == WS_REFUSED)) {
		if ((p = realloc(ws->ws_in, ws->ws_in_len + READ_LEN)) == NULL)
			fatal("%s", __func__);
		ws->ws_in = p;
		if ((n = ws_read(ws, p + ws->ws_in_len, READ_LEN)) == 0)
			return;
		if (n > 0)
			ws->ws_in_len += (size_t)n;
		ws_take_head(ws);
	}
}

/* ---- the event loop ---- */

static void
ws_wait(struct https_ws *ws)
{
	bool	 reads = !ws->ws_held && ws->ws_state != WS_CLOSED;

	if (reads)
		event_add(&ws->ws_readable, NULL);
	else
		event_del(&ws->ws_readable);
	if (ws->ws_out != NULL)
		event_add(&ws->ws_writable, NULL);
	else
		event_del(&ws->ws_writable);
}

static void
ws_run(struct https_ws *ws)
{
	bool	 gone = false;

	/* Whoever frees it says so, and nobody looks there after us. */
	/* cppcheck-suppress autoVariables */
	ws->ws_gone = &gone;
	ws_write(ws);
	if (!gone && ws->ws_state <= WS_REFUSED)
		ws_read_answer(ws, &gone);
	if (!gone && (ws->ws_state == WS_OPEN || ws->ws_state == WS_CLOSING))
		ws_read_frames(ws, &gone);
	if (!gone)
		ws_write(ws);
	if (!gone && ws->ws_state == WS_CLOSED && ws->ws_out == NULL)
		ws_end_closed(ws);
	if (gone)
		return;
	ws->ws_gone = NULL;
	ws_wait(ws);
}

static void
ws_on_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	ws_run(arg);
}

/* Silence of theirs does not count while nobody listens. */
static void
ws_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct https_ws	*ws = arg;

	(void)fd, (void)what;
	if (ws->ws_state != WS_OPEN) {
		ws_end_closed(ws);
		return;
	}
	if (ws->ws_held)
		ws->ws_silences = 0;
	else if (++ws->ws_silences > 2) {
		ws_fail(ws, "it has been silent for %llu s",
		    (unsigned long long)ws->ws_idle_ms * 2 / 1000);
		return;
	} else if (ws_has_room(ws))
		ws_put_frame(ws, WSLAY_PING, "", 0);
	ws_arm(ws, ws->ws_idle_ms);
	ws_run(ws);
}

static void
ws_connected(struct https_call *ca)
{
	struct https_ws	*ws = ca->ca_arg;
	unsigned char	 chance[16];
	curl_socket_t	 fd = CURL_SOCKET_BAD;

	calls_open(1);
	curl_easy_getinfo(ca->ca_easy, CURLINFO_ACTIVESOCKET, &fd);
	event_assign(&ws->ws_readable, child_base, fd, EV_READ | EV_PERSIST,
	    ws_on_ready, ws);
	event_assign(&ws->ws_writable, child_base, fd, EV_WRITE | EV_PERSIST,
	    ws_on_ready, ws);
	event_assign(&ws->ws_timer, child_base, -1, 0, ws_on_timer, ws);
	ws->ws_state = WS_ASKING;
	arc4random_buf(chance, sizeof(chance));
	EVP_EncodeBlock((unsigned char *)ws->ws_key, chance, sizeof(chance));
	if (fd == CURL_SOCKET_BAD || put_request(ws) == -1)
		ws_fail(ws, "the request cannot be sent");
	else
		ws_run(ws);
}

/* ---- the user's side ---- */

struct https_ws *
https_upgrade(struct https_server *sv, const struct https_request *hr,
    const char *const *protocols, const struct https_ws_calls *calls,
    void *arg)
{
	struct https_request	 request = *hr;
	struct https_ws		*ws;

	if ((ws = calloc(1, sizeof(*ws))) == NULL)
		fatal("%s", __func__);
	ws->ws_calls = calls;
	ws->ws_arg = arg;
	ws->ws_protocols = protocols;
	ws->ws_idle_ms = hr->hr_idle_ms;
	request.hr_idle_ms = 0;
	ws->ws_call = call_begin(sv, &request, ws_done, ws, ws_connected);
	return ws;
}

size_t
https_ws_room(const struct https_ws *ws)
{
	size_t	 used = ws->ws_out_len + OUT_KEPT + FRAME_HEAD;

	return ws->ws_state == WS_OPEN && used < OUT_LEN ? OUT_LEN - used : 0;
}

void
https_ws_send(struct https_ws *ws, const void *data, size_t len)
{
	if (len > https_ws_room(ws))
		fatalx("%s: %zu bytes", __func__, len);
	ws_put_frame(ws, WSLAY_BINARY_FRAME, data, len);
	event_active(&ws->ws_writable, EV_WRITE, 0);
}

void
https_ws_hold(struct https_ws *ws, bool held)
{
	if (ws->ws_held == held || ws->ws_state != WS_OPEN)
		return;
	ws->ws_held = held;
	if (!held)
		event_active(&ws->ws_readable, EV_READ, 0);
	else
		event_del(&ws->ws_readable);
}
