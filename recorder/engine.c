/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: records about requests.  An engine opens a request
 * and tells it piece by piece; we keep what it said and write a record at each
 * station, the last one with everything.  Engines are hostile: they may open
 * no more requests than they have credit for, each piece is bounded, and when
 * one dies every request that it left open is closed as failed (promise P6).
 */

#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "clock.h"
#include "log.h"
#include "recorder.h"

#define CREDIT_LOW	256	/* more is given when this is left */
#define CREDIT_STEP	512	/* up to so much */
#define CREDIT_HELD	4	/* for requests that are refused on hold */
#define PATH_KEPT	512	/* bytes of a path in any case */
#define KEPT_MAX	(32 * 1024 * 1024)	/* of an engine's requests */

_Static_assert(CREDIT_HELD <= CREDIT_LOW && CREDIT_LOW < CREDIT_STEP &&
    CREDIT_STEP <= CREDIT_MAX, "credit is given before it is used up");

static TAILQ_HEAD(, engine)	 engines = TAILQ_HEAD_INITIALIZER(engines);
static int			 losing;	/* the audit file is broken */

/* ---- credit -------------------------------------------------------------- */

static bool
may_lose(const struct engine *en)
{
	return redact_may_lose(en->en_session, en->en_policy);
}

static void
credit_send(struct engine *en, uint32_t count)
{
	en->en_credit += count;
	ipc_send(en->en_ipc, -1, CREDIT, credit, .count = count,
	    .hold = en->en_hold);
}

/*
 * As many requests more as may be open at once and have room for their
 * records.  When there is room for none and the engine can open none, it is
 * put on hold, with a little credit to record what it then refuses: it cannot
 * have that before it knows.
 */
static void
credit_give(struct engine *en)
{
	uint32_t	 open = en->en_requests.rs_count + en->en_credit;
	uint32_t	 count, backed = 0;

	if (en->en_credit > CREDIT_LOW || open >= CREDIT_MAX)
		return;
	count = CREDIT_STEP - en->en_credit;
	if (count > CREDIT_MAX - open)
		count = CREDIT_MAX - open;
	if (!may_lose(en)) {
		if (!en->en_hold)
			backed = room_take(count);
		if (backed == 0 && en->en_credit > 0)
			return;
		if (backed == 0 && !en->en_hold)
			log_warnx("session %s: refuses requests, their "
			    "records have no room", en->en_session);
		en->en_hold = backed == 0;
		if (backed > 0)
			count = backed;
		else if (count > CREDIT_HELD)
			count = CREDIT_HELD;
	}
	en->en_backed += backed;
	credit_send(en, count);
}

/* File, room or policy have changed: hold the engine, or go on. */
static void
credit_review(struct engine *en)
{
	bool	 hold = false;

	if (!may_lose(en)) {
		en->en_backed += room_take(en->en_credit - en->en_backed);
		hold = losing || en->en_backed < en->en_credit ||
		    !room_sound();
	}
	if (hold != en->en_hold) {
		if (!hold)
			log_info("session %s: refuses requests no more",
			    en->en_session);
		en->en_hold = hold;
		credit_send(en, 0);
	}
	credit_give(en);
}

/* A request uses a credit and takes over the room behind it. */
static void
credit_spend(struct engine *en, struct request *rq)
{
	en->en_credit--;
	if (en->en_backed == 0)
		return;
	en->en_backed--;
	rq->rq_room = ROOM_REQUEST;
}

/* ---- what is kept -------------------------------------------------------- */

/* Counts a piece; false if the engine's share is used up. */
static bool
keep(struct engine *en, struct request *rq, size_t len)
{
	if (len > KEPT_MAX - en->en_kept)
		return false;
	en->en_kept += len;
	rq->rq_kept += len;
	return true;
}

static void
keep_fields(struct engine *en, struct request *rq, int of_answer,
    const struct msg_bytes *fields)
{
	if (keep(en, rq, fields->len))
		blob_add(&rq->rq_fields[of_answer], fields->data, fields->len);
	else
		rq->rq_head_cut[of_answer] = true;
}

/* A preview is a prefix of the body: after a cut nothing is added. */
static void
keep_body(struct engine *en, struct request *rq, int of_answer,
    const struct msg_bytes *data)
{
	struct blob	*bl = &rq->rq_body[of_answer];
	size_t		 room = CAPTURE_MAX - bl->bl_len;
	size_t		 len = data->len < room ? data->len : room;

	if (rq->rq_body_cut[of_answer])
		return;
	if (keep(en, rq, len))
		blob_add(bl, data->data, len);
	else
		rq->rq_body_cut[of_answer] = true;
}

static void
keep_names(struct engine *en, struct request *rq,
    const struct msg_record_opened *mo)
{
	size_t	 len = strlen(mo->path);

	blob_add(&rq->rq_names, mo->host, strlen(mo->host) + 1);
	blob_add(&rq->rq_names, mo->method, strlen(mo->method) + 1);
	if (len > PATH_KEPT && !keep(en, rq, len)) {
		rq->rq_path_cut = true;
		len = PATH_KEPT;
	}
	blob_add(&rq->rq_names, mo->path, len);
	blob_add(&rq->rq_names, "", 1);
}

static void
engine_forget(struct engine *en, struct request *rq)
{
	room_put(rq->rq_room);
	en->en_kept -= rq->rq_kept;
	request_free(&en->en_requests, rq);
}

/* The final record is written: room and credit come back. */
static void
engine_free_request(struct engine *en, struct request *rq)
{
	engine_forget(en, rq);
	credit_give(en);
}

/* ---- what engines say ---------------------------------------------------- */

static int
check_opened(struct ipc *ip, const struct msg_record_opened *mo)
{
	const struct engine	*en = ip->ip_arg;

	if (mo->scheme >= URL_SCHEME_MAX || mo->protocol >= PROTOCOL_MAX)
		return ipc_bad(ip, "scheme %u, protocol %u", mo->scheme,
		    mo->protocol);
	if (en->en_credit == 0)
		return ipc_bad(ip, "a request without credit");
	if (request_find(&en->en_requests, mo->request) != NULL)
		return ipc_bad(ip, "request %llu is open already",
		    (unsigned long long)mo->request);
	return 0;
}

static void
request_allow(struct engine *en, struct request *rq, uint8_t rule_kind,
    uint32_t rule, uint64_t at)
{
	rq->rq_allowed = true;
	rq->rq_rule_kind = rule_kind;
	rq->rq_rule = rule;
	record_station(en, rq, RECORD_REQUEST_ALLOWED, at);
}

static int
recorder_engine_record_opened(struct ipc *ip, const union msg *m)
{
	const struct msg_record_opened	*mo = &m->record_opened;
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if (check_opened(ip, mo) == -1)
		return -1;
	rq = request_new(&en->en_requests, mo->request);
	credit_spend(en, rq);
	rq->rq_started = mo->at;
	rq->rq_scheme = mo->scheme;
	rq->rq_protocol = mo->protocol;
	rq->rq_port = mo->port;
	rq->rq_inspected = mo->inspected != 0;
	keep_names(en, rq, mo);
	keep_fields(en, rq, 0, &mo->fields);
	record_station(en, rq, RECORD_REQUEST_OPENED, mo->at);
	if (mo->allowed)
		request_allow(en, rq, mo->rule_kind, mo->rule, mo->at);
	credit_give(en);
	return 0;
}

static struct request *
open_request(struct ipc *ip, uint64_t id)
{
	const struct engine	*en = ip->ip_arg;
	struct request		*rq;

	if ((rq = request_find(&en->en_requests, id)) == NULL)
		ipc_bad(ip, "request %llu is not open",
		    (unsigned long long)id);
	return rq;
}

static int
recorder_engine_record_verdict(struct ipc *ip, const union msg *m)
{
	const struct msg_record_verdict	*mv = &m->record_verdict;
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if ((rq = open_request(ip, mv->request)) == NULL)
		return -1;
	if (rq->rq_allowed || (mv->verdict != VERDICT_ALLOW &&
	    mv->verdict != VERDICT_DENY))
		return ipc_bad(ip, "verdict %u on request %llu", mv->verdict,
		    (unsigned long long)mv->request);
	strlcpy(rq->rq_decider, mv->decider, sizeof(rq->rq_decider));
	rq->rq_waited_ms = mv->waited_ms;
	rq->rq_cached = mv->cached != 0;
	if (mv->verdict == VERDICT_ALLOW) {
		strlcpy(rq->rq_said, mv->reason, sizeof(rq->rq_said));
		request_allow(en, rq, mv->rule_kind, mv->rule, mv->at);
		return 0;
	}
	rq->rq_rule_kind = mv->rule_kind;
	rq->rq_rule = mv->rule;
	record_final(en, rq, RECORD_REQUEST_DENIED,
	    &(const struct msg_record_closed){ .at = mv->at,
	    .reason = mv->reason }, NULL);
	engine_free_request(en, rq);
	return 0;
}

/* An allowed request that has no answer yet. */
static struct request *
answer_request(struct ipc *ip, uint64_t id)
{
	struct request	*rq;

	if ((rq = open_request(ip, id)) == NULL)
		return NULL;
	if (!rq->rq_allowed || rq->rq_answered) {
		ipc_bad(ip, "a second answer to request %llu",
		    (unsigned long long)id);
		return NULL;
	}
	rq->rq_answered = true;
	return rq;
}

static int
recorder_engine_record_head(struct ipc *ip, const union msg *m)
{
	const struct msg_record_head	*mh = &m->record_head;
	struct request			*rq;

	if ((rq = answer_request(ip, mh->request)) == NULL)
		return -1;
	rq->rq_status = mh->status;
	strlcpy(rq->rq_address, mh->address, sizeof(rq->rq_address));
	keep_fields(ip->ip_arg, rq, 1, &mh->fields);
	return 0;
}

static int
recorder_engine_record_body(struct ipc *ip, const union msg *m)
{
	const struct msg_record_body	*mb = &m->record_body;
	struct request			*rq;

	if ((rq = open_request(ip, mb->request)) == NULL)
		return -1;
	if (mb->answer > 1)
		return ipc_bad(ip, "body %u of a request", mb->answer);
	keep_body(ip->ip_arg, rq, mb->answer, &mb->data);
	return 0;
}

static int
recorder_engine_record_closed(struct ipc *ip, const union msg *m)
{
	const struct msg_record_closed	*mc = &m->record_closed;
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if ((rq = open_request(ip, mc->request)) == NULL)
		return -1;
	if (!rq->rq_allowed && !mc->failed)
		return ipc_bad(ip, "request %llu ends before its verdict",
		    (unsigned long long)mc->request);
	record_final(en, rq, mc->failed ? RECORD_REQUEST_FAILED :
	    RECORD_REQUEST_CLOSED, mc, NULL);
	engine_free_request(en, rq);
	return 0;
}

/* Answer and end in one message: nothing has to be kept. */
static int
recorder_engine_record_done(struct ipc *ip, const union msg *m)
{
	const struct msg_record_done	*md = &m->record_done;
	const struct msg_record_closed	 mc = {
		.at = md->at, .bytes_in = md->bytes_in,
		.bytes_out = md->bytes_out, .request_body = md->request_body,
		.answer_body = md->answer_body, .reason = ""
	};
	const struct answer		 an = {
		.an_status = md->status, .an_address = md->address,
		.an_fields = md->fields, .an_body = md->data
	};
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if ((rq = answer_request(ip, md->request)) == NULL)
		return -1;
	record_final(en, rq, RECORD_REQUEST_CLOSED, &mc, &an);
	engine_free_request(en, rq);
	return 0;
}

/* Refusals and names asked: records without a request. */
static int
recorder_engine_record_other(struct ipc *ip, const union msg *m)
{
	const struct msg_record_other	*mo = &m->record_other;

	if ((mo->kind != RECORD_CONNECTION_REFUSED &&
	    mo->kind != RECORD_NAME_ASKED &&
	    mo->kind != RECORD_REQUEST_FAILED &&
	    mo->kind != RECORD_REQUEST_DENIED) ||
	    mo->protocol >= PROTOCOL_MAX)
		return ipc_bad(ip, "record of kind %u, protocol %u", mo->kind,
		    mo->protocol);
	record_other(ip->ip_arg, mo);
	return 0;
}

/* ---- engines ------------------------------------------------------------- */

static const ipc_handler engine_handlers[MSG_MAX] = {
	[MSG_RECORD_OPENED] = recorder_engine_record_opened,
	[MSG_RECORD_VERDICT] = recorder_engine_record_verdict,
	[MSG_RECORD_HEAD] = recorder_engine_record_head,
	[MSG_RECORD_BODY] = recorder_engine_record_body,
	[MSG_RECORD_CLOSED] = recorder_engine_record_closed,
	[MSG_RECORD_DONE] = recorder_engine_record_done,
	[MSG_RECORD_OTHER] = recorder_engine_record_other,
};

/* The engine died: close its open requests in its place. */
static void
recorder_engine_gone(struct ipc *ip, const char *why)
{
	const struct msg_record_closed	 mc = {
		.at = clock_wall_ns(), .reason = REASON_NO_ENGINE
	};
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if (why != NULL)
		child_engine_bad(ip, why);
	while ((rq = TAILQ_FIRST(&en->en_requests.rs_all)) != NULL) {
		record_final(en, rq, rq->rq_allowed ? RECORD_REQUEST_FAILED :
		    RECORD_REQUEST_DENIED, &mc, NULL);
		engine_forget(en, rq);
	}
	room_put((size_t)en->en_backed * ROOM_REQUEST);
	TAILQ_REMOVE(&engines, en, en_entry);
	free(en);
	ipc_free(ip);
}

/* The daemon stops: read engines to the end, close what is open. */
void
engines_finish(void)
{
	struct engine	*en;

	while ((en = TAILQ_FIRST(&engines)) != NULL) {
		ipc_read_rest(en->en_ipc);
		recorder_engine_gone(en->en_ipc, NULL);
	}
}

void
engines_review(void)
{
	struct engine	*en;

	TAILQ_FOREACH(en, &engines, en_entry)
		credit_review(en);
}

/* Read all that engines of this session have sent. */
void
engines_hear(const char *session)
{
	struct engine	*en, *next;

	TAILQ_FOREACH_SAFE(en, &engines, en_entry, next)
		if (strcmp(en->en_session, session) == 0 &&
		    ipc_read_rest(en->en_ipc) == -1)
			recorder_engine_gone(en->en_ipc, en->en_ipc->ip_why);
}

/*
 * The audit file cannot be written, or can again.  A policy that says nothing
 * else wants no request that nobody can account for.
 */
void
engines_hold(int broken)
{
	losing = broken;
	engines_review();
}

bool
engines_held(void)
{
	const struct engine	*en;

	TAILQ_FOREACH(en, &engines, en_entry)
		if (en->en_hold)
			return true;
	return false;
}

void
engine_new(const struct msg_channel *mc, int fd)
{
	struct engine	*en;
	struct ipc	*ip;

	if ((en = calloc(1, sizeof(*en))) == NULL)
		fatal("%s", __func__);
	strlcpy(en->en_session, mc->session, sizeof(en->en_session));
	strlcpy(en->en_policy, mc->policy, sizeof(en->en_policy));
	en->en_instance = mc->instance;
	child_request_prefix(mc->instance, en->en_prefix);
	request_set_init(&en->en_requests);
	ip = child_engine(mc, fd, engine_handlers);
	ip->ip_arg = en;
	ip->ip_pace_ms = ENGINE_PACE_MS;
	ip->ip_gone = recorder_engine_gone;
	en->en_ipc = ip;
	TAILQ_INSERT_TAIL(&engines, en, en_entry);
	en->en_hold = losing && !may_lose(en);
	credit_give(en);
}
