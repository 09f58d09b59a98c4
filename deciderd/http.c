/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * deciderd runs this: questions over HTTP, by way of libcurl's multi
 * interface on our event loop.  Nothing here waits for anybody, connections
 * are kept for the next question, and the other end is a stranger: it is
 * verified, nothing of it is followed, and what it may send is bounded.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "deciderd.h"

#define CONNECTIONS_MAX	1024
#define IDLE_MAX	64	/* connections kept for the next question */
#define HEAD_LEN	(64 * 1024)
#define REST_MAX_S	60	/* whatever a server asks for */
#define FAULT_LEN	256	/* bytes of what it says of a failure */

/* A question on its way through libcurl. */
struct call {
	struct question		*ca_question;
	CURL			*ca_easy;
	struct curl_slist	*ca_resolve;
	struct jsonw		 ca_body;	/* of an agent */
	enum decider_form	 ca_form;	/* how it was asked */
	struct text		 ca_answer;
	size_t			 ca_head;	/* bytes of it seen */
	bool			 ca_huge;
	char			 ca_error[CURL_ERROR_SIZE];
};

static CURLM		*multi;
static struct event	 on_timeout;

static void	 call_done(struct call *, CURLcode);

/* ---- the event loop ---- */

static void
http_reap(void)
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
http_on_timeout(evutil_socket_t fd, short what, void *arg)
{
	int	 running;

	(void)fd, (void)what, (void)arg;
	curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
	http_reap();
}

static void
http_on_socket(evutil_socket_t fd, short what, void *arg)
{
	int	 running;

	(void)arg;
	curl_multi_socket_action(multi, fd,
	    (what & EV_READ ? CURL_CSELECT_IN : 0) |
	    (what & EV_WRITE ? CURL_CSELECT_OUT : 0), &running);
	http_reap();
}

static int
http_set_timer(CURLM *cm, long ms, void *arg)
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
http_set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *old)
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
	if ((ev = event_new(child_base, fd, events, http_on_socket, NULL)) ==
	    NULL || event_add(ev, NULL) == -1)
		fatalx("%s: event", __func__);
	curl_multi_assign(multi, fd, ev);
	return 0;
}

/*
 * Before confinement.  libcurl reads the configuration of its TLS library
 * here, and makes the pair of sockets by which it would wake itself.
 */
void
http_warm(void)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    (multi = curl_multi_init()) == NULL)
		fatalx("libcurl cannot be used");
	event_assign(&on_timeout, child_base, -1, 0, http_on_timeout, NULL);
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, http_set_socket);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, http_set_timer);
	curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
	    (long)CONNECTIONS_MAX);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)IDLE_MAX);
}

/* ---- what comes back ---- */

/* A later answer to an earlier question does not cut a rest short. */
static void
decider_rest(struct decider *de, curl_off_t wait)
{
	uint64_t	 until = clock_ms() + 1000 *
	    (uint64_t)(wait < REST_MAX_S ? wait : REST_MAX_S);

	if (until > de->de_rest_until_ms)
		de->de_rest_until_ms = until;
}

static size_t
take_head(char *data, size_t size, size_t n, void *arg)
{
	struct call	*ca = arg;

	(void)data;
	ca->ca_head += size * n;
	ca->ca_huge = ca->ca_head > HEAD_LEN;
	return ca->ca_huge ? 0 : size * n;
}

static size_t
take_body(char *data, size_t size, size_t n, void *arg)
{
	struct call	*ca = arg;
	struct text	*tx = &ca->ca_answer;
	size_t		 len = size * n;
	char		*p;

	ca->ca_huge = len > REPLY_LEN - tx->tx_len;
	if (ca->ca_huge || len == 0)
		return 0;
	if ((p = realloc(tx->tx_data, tx->tx_len + len)) == NULL)
		return 0;
	memcpy(p + tx->tx_len, data, len);
	tx->tx_data = p;
	tx->tx_len += len;
	return len;
}

static void
call_status(struct call *ca, long status)
{
	struct decider	*de = ca->ca_question->qu_decider;
	curl_off_t	 wait = 0;
	char		 after[48] = "", said[FAULT_LEN + 1];

	curl_easy_getinfo(ca->ca_easy, CURLINFO_RETRY_AFTER, &wait);
	if ((status == 429 || status == 503) && wait > 0) {
		decider_rest(de, wait);
		snprintf(after, sizeof(after), ", retry after %lld s",
		    (long long)wait);
	}
	fault_text(de, &ca->ca_answer, said, sizeof(said));
	question_finish(ca->ca_question, ANSWER_ERROR, "status %ld%s%s%s",
	    status, after, said[0] != '\0' ? ": " : "", said);
}

/* As if nothing had been asked yet; the deadline stays. */
static void
call_clear(struct call *ca)
{
	if (ca->ca_easy != NULL) {
		curl_multi_remove_handle(multi, ca->ca_easy);
		curl_easy_cleanup(ca->ca_easy);
		ca->ca_easy = NULL;
	}
	curl_slist_free_all(ca->ca_resolve);
	ca->ca_resolve = NULL;
	jsonw_free(&ca->ca_body);
	free(ca->ca_answer.tx_data);
	ca->ca_answer = (struct text){ NULL, 0 };
	ca->ca_head = 0;
}

static void
call_again(struct call *ca)
{
	call_clear(ca);
	http_found(ca->ca_question);
}

static void
call_done(struct call *ca, CURLcode code)
{
	struct question	*qu = ca->ca_question;
	struct text	*tx = &ca->ca_answer;
	struct reply	 rp;
	long		 status = 0, version = CURL_HTTP_VERSION_NONE;

	curl_easy_getinfo(ca->ca_easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(ca->ca_easy, CURLINFO_HTTP_VERSION, &version);
	qu->qu_decider->de_shares = version == CURL_HTTP_VERSION_2_0;
	if (ca->ca_huge)
		question_finish(qu, ANSWER_BAD_RETURN,
		    "it sent more than %d bytes", REPLY_LEN);
	else if (code != CURLE_OK)
		question_finish(qu, ANSWER_ERROR, "%s",
		    ca->ca_error[0] != '\0' ? ca->ca_error :
		    curl_easy_strerror(code));
	else if (status == 400 && qu->qu_decider->de_kind == DECIDER_AGENT &&
	    tx->tx_len > 0 && agent_asks_else(qu->qu_decider, ca->ca_form,
	    tx->tx_data, tx->tx_len))
		call_again(ca);
	else if (status != 200)
		call_status(ca, status);
	else {
		if (tx->tx_len == 0)
			reply_bad(&rp, "it sent nothing");
		else if (qu->qu_decider->de_kind == DECIDER_AGENT)
			agent_reply(qu->qu_decider, tx->tx_data, tx->tx_len,
			    &rp);
		else
			reply_text(tx->tx_data, tx->tx_len, false, &rp);
		question_reply(qu, &rp);
	}
}

/* ---- what goes out ---- */

/*
 * Our own resolver and the decider's certificates, and nothing from the
 * environment: no proxy, no cookies, no other place that an answer names.
 */
static CURLcode
set_transport(struct call *ca, struct decider *de)
{
	CURLcode	 rv;

#define SET(option, value)						\
	if ((rv = curl_easy_setopt(ca->ca_easy, CURLOPT_##option,	\
	    value)) != CURLE_OK)					\
		return rv
	SET(NOSIGNAL, 1L);
	SET(PROTOCOLS_STR, "http,https");
	SET(FOLLOWLOCATION, 0L);
	SET(PROXY, "");
	SET(NOPROXY, "*");
	SET(NETRC, (long)CURL_NETRC_IGNORED);
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/* In libcurl 8.14 those that wait for HTTP/1 wait until it is over. */
	SET(PIPEWAIT, de->de_shares ? 1L : 0L);
	SET(FRESH_CONNECT, de->de_afresh ? 1L : 0L);
	de->de_afresh = false;
	SET(CAPATH, NULL);
	SET(CAINFO, NULL);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(SSL_VERIFYPEER, 1L);
	SET(SSL_VERIFYHOST, 2L);
	if (de->de_place.pc_tls &&
	    (rv = trust_set(de->de_trust, ca->ca_easy)) != CURLE_OK)
		return rv;
	if (de->de_place.pc_known != NULL) {
		ca->ca_resolve = curl_slist_append(NULL,
		    de->de_place.pc_known);
		SET(RESOLVE, ca->ca_resolve);
	}
	return CURLE_OK;
}

static CURLcode
set_request(struct call *ca, struct decider *de)
{
	struct text	*doc = &ca->ca_question->qu_document;
	const char	*body = doc->tx_data;
	size_t		 len = doc->tx_len;
	CURLcode	 rv;

	if (de->de_kind == DECIDER_AGENT) {
		ca->ca_form = de->de_form;
		if (agent_body(de, ca->ca_form, doc, &ca->ca_body) == -1)
			return CURLE_OUT_OF_MEMORY;
		body = jsonw_finish(&ca->ca_body, &len);
	}
	SET(URL, de->de_url);
	SET(HTTPHEADER, de->de_headers);
	SET(USERAGENT, "egressd/" EGRESSD_VERSION);
	SET(POST, 1L);
	SET(POSTFIELDS, body);
	SET(POSTFIELDSIZE_LARGE, (curl_off_t)len);
	SET(PRIVATE, ca);
	SET(ERRORBUFFER, ca->ca_error);
	SET(HEADERFUNCTION, take_head);
	SET(HEADERDATA, ca);
	SET(WRITEFUNCTION, take_body);
	SET(WRITEDATA, ca);
	return CURLE_OK;
#undef SET
}

void
http_found(struct question *qu)
{
	struct decider	*de = qu->qu_decider;
	struct call	*ca = qu->qu_call;
	CURLcode	 rv;

	if (de->de_place.pc_tls && de->de_trust == NULL) {
		question_finish(qu, ANSWER_ERROR, "there are no certificates "
		    "to verify it with");
		return;
	}
	if ((ca->ca_easy = curl_easy_init()) == NULL)
		fatalx("%s: no memory", __func__);
	if ((rv = set_transport(ca, de)) != CURLE_OK ||
	    (rv = set_request(ca, de)) != CURLE_OK) {
		question_finish(qu, ANSWER_ERROR, "%s",
		    curl_easy_strerror(rv));
		return;
	}
	if (curl_multi_add_handle(multi, ca->ca_easy) != CURLM_OK)
		fatalx("%s: curl_multi_add_handle", __func__);
}

static void
http_begin(struct question *qu)
{
	struct call	*ca;
	uint64_t	 now = clock_ms();
	uint64_t	 rest = qu->qu_decider->de_rest_until_ms;

	if ((ca = calloc(1, sizeof(*ca))) == NULL)
		fatal("%s", __func__);
	ca->ca_question = qu;
	qu->qu_call = ca;
	if (now < rest)
		question_finish(qu, ANSWER_ERROR, "not asked, as it wants to "
		    "be left alone for another %llu s",
		    (unsigned long long)(rest - now + 999) / 1000);
	else
		place_want(qu);
}

/*
 * Its connection may be mute, and would be that of all further questions: it
 * goes with the last that uses it, and the next question gets another.
 */
static void
http_late(struct question *qu)
{
	struct call	*ca = qu->qu_call;

	if (ca->ca_easy == NULL)
		return;
	curl_easy_setopt(ca->ca_easy, CURLOPT_FORBID_REUSE, 1L);
	qu->qu_decider->de_afresh = true;
}

/* Never within a call of libcurl's: deadlines and answers have their turn. */
static void
http_forget(struct question *qu)
{
	struct call	*ca = qu->qu_call;

	place_forget(qu);
	call_clear(ca);
	free(ca);
}

const struct asker http_asker = {
	.as_begin = http_begin,
	.as_late = http_late,
	.as_forget = http_forget,
};
