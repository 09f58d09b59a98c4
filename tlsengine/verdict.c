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
 * tlsengine runs this: questions to policyd and the verdicts that may be used
 * again.  A verdict that depends on nothing but session, host, port and scheme
 * is marked so and kept until the generation changes.
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "tlsengine.h"

#define KNOWN_SIZE	1024	/* slots; a newer verdict displaces an older */
#define ASKS_SIZE	4096	/* buckets */

struct known {
	struct place	 kn_place;
	struct ruling	 kn_ruling;
	bool		 kn_set;
};

static struct known	 known[KNOWN_SIZE];

/* Those that wait, found by the number of their question. */
static struct exchange	*asked[ASKS_SIZE];
static uint32_t		 last_ask;

/* A reload has every request asked about again, more than policyd reads. */
static struct exchanges	 unsent = TAILQ_HEAD_INITIALIZER(unsent);

static unsigned int
place_hash(const struct place *pc)
{
	const char	*p;
	uint32_t	 h = 2166136261U;

	for (p = pc->pc_host; *p != '\0'; p++)
		h = (h ^ (unsigned char)*p) * 16777619U;
	h = (h ^ pc->pc_port) * 16777619U;
	return (h ^ pc->pc_scheme) % KNOWN_SIZE;
}

bool
place_same(const struct place *a, const struct place *b)
{
	return a->pc_port == b->pc_port && a->pc_scheme == b->pc_scheme &&
	    strcmp(a->pc_host, b->pc_host) == 0;
}

const struct ruling *
verdict_known(const struct place *pc)
{
	struct known	*kn = &known[place_hash(pc)];

	return kn->kn_set && place_same(&kn->kn_place, pc) ?
	    &kn->kn_ruling : NULL;
}

static void
verdict_keep(const struct place *pc, const struct ruling *rl)
{
	struct known	*kn = &known[place_hash(pc)];

	kn->kn_place = *pc;
	kn->kn_ruling = *rl;
	kn->kn_set = true;
}

/* A new generation is being prepared. */
void
verdict_forget(void)
{
	memset(known, 0, sizeof(known));
}

/* Bytes that will be sent; nobody knows how many go through a tunnel. */
static uint64_t
body_length(const struct exchange *ex)
{
	const struct h1_head	*hd = &ex->ex_request;

	if (ex->ex_raw || hd->hd_upgrade.s != NULL)
		return UINT64_MAX;
	return hd->hd_framing == H1_NONE ? 0 :
	    hd->hd_framing == H1_LENGTH ? hd->hd_length : UINT64_MAX;
}

static void
ask_send(const struct exchange *ex)
{
	ipc_send(policyd, -1, ASK, ask, .id = ex->ex_ask, .dial = ex->ex_dial,
	    .again = ex->ex_again,
	    .about = ex->ex_raw ? ABOUT_CONNECTION : ABOUT_REQUEST,
	    .scheme = ex->ex_place.pc_scheme,
	    .port = ex->ex_place.pc_port,
	    .length = body_length(ex),
	    .host = ex->ex_place.pc_host, .method = ex->ex_method,
	    .path = ex->ex_path);
}

void
verdict_ask(struct exchange *ex, uint32_t dial)
{
	/* No decider is to answer twice for one request. */
	uint32_t	 again = ex->ex_state == EX_CONNECT ? ex->ex_ask : 0;

	verdict_unask(ex);
	do
		ex->ex_ask = ++last_ask;
	while (ex->ex_ask == 0 || asked[ex->ex_ask % ASKS_SIZE] != NULL);
	asked[ex->ex_ask % ASKS_SIZE] = ex;
	ex->ex_dial = dial;
	ex->ex_again = again;
	if (policyd->ip_congested) {
		TAILQ_INSERT_TAIL(&unsent, ex, ex_unsent);
		ex->ex_asking = true;
	} else
		ask_send(ex);
}

static void
ask_unqueue(struct exchange *ex)
{
	TAILQ_REMOVE(&unsent, ex, ex_unsent);
	ex->ex_asking = false;
}

/* policyd reads again. */
void
verdict_ask_rest(void)
{
	struct exchange	*ex;

	while ((ex = TAILQ_FIRST(&unsent)) != NULL && !policyd->ip_congested) {
		ask_unqueue(ex);
		ask_send(ex);
	}
}

/* Nobody waits for its verdict any more, which may take a person minutes. */
void
verdict_unask(struct exchange *ex)
{
	if (ex->ex_ask == 0 || asked[ex->ex_ask % ASKS_SIZE] != ex)
		return;
	asked[ex->ex_ask % ASKS_SIZE] = NULL;
	if (ex->ex_asking)
		ask_unqueue(ex);
	else
		ipc_send(policyd, -1, ASK_DROP, cookie, ex->ex_ask);
}

int
tlsengine_policyd_verdict(struct ipc *ip, const union msg *m)
{
	const struct msg_verdict	*mv = &m->verdict;
	struct exchange			*ex = asked[mv->id % ASKS_SIZE];
	struct ruling			 rl;

	if (mv->verdict >= VERDICT_MAX || mv->scope >= VERDICT_SCOPE_MAX)
		return ipc_bad(ip, "verdict %u of scope %u", mv->verdict,
		    mv->scope);
	/* The client may be gone; the answer to its question is not missed. */
	if (ex == NULL || ex->ex_ask != mv->id)
		return 0;
	asked[mv->id % ASKS_SIZE] = NULL;
	if (mv->generation < generation) {
		exchange_ask_again(ex);
		return 0;
	}
	rl.rl_verdict = mv->verdict;
	rl.rl_scope = mv->scope;
	rl.rl_rule_kind = mv->rule_kind;
	rl.rl_rule = mv->rule;
	rl.rl_body = mv->body;
	rl.rl_waited_ms = mv->waited_ms;
	rl.rl_cached = mv->cached != 0;
	strlcpy(rl.rl_decider, mv->decider, sizeof(rl.rl_decider));
	strlcpy(rl.rl_reason, mv->reason, sizeof(rl.rl_reason));
	if (rl.rl_scope == VERDICT_HOST && mv->generation == generation)
		verdict_keep(&ex->ex_place, &rl);
	exchange_ruled(ex, &rl);
	return 0;
}
