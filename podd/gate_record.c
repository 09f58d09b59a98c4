/* SPDX-License-Identifier: ISC */

/*
 * podd: a gate's records on their way to the recorder, and back the word that
 * they are written, so that the gate may forget them.  Whose they are is what
 * controld has said and not what they say.  Their numbers have no hole: what
 * is left out is recorded as such, and what comes twice is a lie.
 */

#include <stdlib.h>

#include "jsonput.h"
#include "podd.h"

void
gate_forget_records(struct gate *ga)
{
	struct kept_line	*kl;

	while ((kl = TAILQ_FIRST(&ga->ga_kept)) != NULL) {
		TAILQ_REMOVE(&ga->ga_kept, kl, kl_entry);
		free(kl);
	}
}

static void
keep_line(struct gate *ga, uint64_t seq, size_t len)
{
	struct kept_line	*kl;

	if ((kl = calloc(1, sizeof(*kl))) == NULL)
		fatal("%s", __func__);
	kl->kl_seq = seq;
	kl->kl_len = len;
	ga->ga_kept_len += len;
	TAILQ_INSERT_TAIL(&ga->ga_kept, kl, kl_entry);
}

static void
pass_on(struct gate *ga, const struct said_record *sr)
{
	const char	*p = sr->sr_members;
	size_t		 left = sr->sr_len, n;

	for (; left > 0; p += n, left -= n) {
		n = left < MEMBERS_LEN ? left : MEMBERS_LEN;
		ipc_send(podd_recorder, -1, POD_MEMBERS, pod_members,
		    .text = { p, n });
	}
	ipc_send(podd_recorder, -1, POD_RECORD, pod_record,
	    .channel = ga->ga_channel, .kind = sr->sr_kind, .at = sr->sr_at,
	    .origin_seq = sr->sr_seq, .session = ga->ga_session,
	    .pod = ga->ga_pod, .uid = ga->ga_uid, .node = ga->ga_node);
}

/* The first one of a channel may have any number: others had those before. */
static void
pass_on_gap(struct gate *ga, const struct said_record *sr)
{
	uint64_t		 first = ga->ga_seq + 1;
	struct said_record	 gap = { .sr_at = sr->sr_at };

	if (ga->ga_seq == 0 || sr->sr_seq - sr->sr_lost <= first)
		return;
	said_gap(first, sr->sr_seq - sr->sr_lost - 1, &gap);
	pass_on(ga, &gap);
}

int
gate_record(struct gate *ga, const char *line, size_t len)
{
	struct said_record	 sr;
	const char		*why;

	if (said_record(line, len, &sr, &why) == -1)
		return gate_nonsense_end(ga, line, len, why);
	if (sr.sr_seq <= ga->ga_seq)
		return gate_fail_end(ga, PODD_HOSTILE,
		    "record %llu after %llu", (unsigned long long)sr.sr_seq,
		    (unsigned long long)ga->ga_seq);
	keep_line(ga, sr.sr_seq, len + 1);
	if (ga->ga_kept_len > GATE_WINDOW + SAID_RECORD_LEN)
		return gate_fail_end(ga, PODD_HOSTILE,
		    "more records than it may send before it is answered");
	pass_on_gap(ga, &sr);
	ga->ga_seq = sr.sr_seq;
	pass_on(ga, &sr);
	return 0;
}

/* One acknowledgement at a time, for all that is written by then. */
static void
send_ack(struct gate *ga)
{
	struct kept_line	*kl;
	struct jsonw		*w;

	if (ga->ga_acking || ga->ga_recorded <= ga->ga_acked)
		return;
	while ((kl = TAILQ_FIRST(&ga->ga_kept)) != NULL &&
	    kl->kl_seq <= ga->ga_recorded) {
		TAILQ_REMOVE(&ga->ga_kept, kl, kl_entry);
		ga->ga_kept_len -= kl->kl_len;
		free(kl);
	}
	ga->ga_acking = 1;
	ga->ga_acked = ga->ga_recorded;
	w = gate_ask_begin(ga, "events.ack");
	put_uint(w, "seq", ga->ga_acked);
	put_uint(w, "term", ga->ga_term);
	gate_ask_send(ga, 'd');
}

void
gate_ack(struct gate *ga, uint64_t seq)
{
	if (seq > ga->ga_recorded)
		ga->ga_recorded = seq;
	send_ack(ga);
}

int
gate_acked(struct gate *ga, const char *line, size_t len)
{
	struct said_answer	 sa;
	const char		*why;

	if (said_answer(line, len, &sa, &why) == -1)
		return gate_fail_end(ga, PODD_HOSTILE, "%s", why);
	if (!ga->ga_acking)
		return gate_fail_end(ga, PODD_HOSTILE,
		    "an answer to what was not asked");
	if (!sa.sa_ok)
		return gate_fail_end(ga, PODD_LOST,
		    "the gate does not forget records: %s: %s", sa.sa_code,
		    sa.sa_text);
	ga->ga_acking = 0;
	send_ack(ga);
	return 0;
}
