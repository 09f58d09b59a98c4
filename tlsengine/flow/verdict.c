/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: questions to policyd and the verdicts that may be used
 * again.  A verdict that depends on nothing but session, host, port and scheme
 * is marked so and kept until the generation changes.
 */

#include <stdlib.h>
#include <string.h>

#include "flow.h"
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

/* Flows that wait for a verdict, by the number of their question. */
static struct flow	*asked[ASKS_SIZE];
static uint32_t		 last_ask;

/* A flow that asks has a credit, so verdict_ask() always finds a bucket. */
_Static_assert(CREDIT_MAX < ASKS_SIZE, "a free bucket for each question");

/* A reload has every request asked about again, more than policyd reads. */
static struct flows	 unsent = TAILQ_HEAD_INITIALIZER(unsent);

/* FNV-1a. */
uint32_t
place_hash(const struct place *pc)
{
	const char	*p;
	uint32_t	 h = 2166136261U;

	for (p = pc->pc_host; *p != '\0'; p++)
		h = (h ^ (unsigned char)*p) * 16777619U;
	h = (h ^ pc->pc_port) * 16777619U;
	return (h ^ pc->pc_scheme) * 16777619U;
}

bool
place_same(const struct place *a, const struct place *b)
{
	return a->pc_port == b->pc_port && a->pc_scheme == b->pc_scheme &&
	    strcmp(a->pc_host, b->pc_host) == 0;
}

/* The port that is not written behind a host. */
uint16_t
place_usual_port(const struct place *pc)
{
	return pc->pc_scheme == URL_HTTPS ? 443 : 80;
}

const struct ruling *
verdict_known(const struct place *pc)
{
	struct known	*kn = &known[place_hash(pc) % KNOWN_SIZE];

	return kn->kn_set && place_same(&kn->kn_place, pc) ?
	    &kn->kn_ruling : NULL;
}

static void
verdict_keep(const struct place *pc, const struct ruling *rl)
{
	struct known	*kn = &known[place_hash(pc) % KNOWN_SIZE];

	kn->kn_place = *pc;
	kn->kn_ruling = *rl;
	kn->kn_set = true;
}

/* A new generation is being prepared: kept verdicts do not hold. */
void
verdict_forget(void)
{
	memset(known, 0, sizeof(known));
}

void
verdict_ask(struct flow *fl, uint32_t dial)
{
	/* No decider is to answer twice for one request. */
	uint32_t	 again = fl->fl_state == FLOW_CONNECT ? fl->fl_ask : 0;

	verdict_unask(fl);
	do
		fl->fl_ask = ++last_ask;
	while (fl->fl_ask == 0 || asked[fl->fl_ask % ASKS_SIZE] != NULL);
	asked[fl->fl_ask % ASKS_SIZE] = fl;
	fl->fl_dial = dial;
	fl->fl_again = again;
	if (policyd->ip_congested) {
		TAILQ_INSERT_TAIL(&unsent, fl, fl_unsent);
		fl->fl_asking = true;
	} else
		fl->fl_ops->ask(fl);
}

/* What an exchange or a raw connection asks, with what the flow knows. */
void
verdict_send(const struct flow *fl, enum about about, uint64_t length,
    const char *method, const char *path)
{
	ipc_send(policyd, -1, ASK, ask, .id = fl->fl_ask, .dial = fl->fl_dial,
	    .again = fl->fl_again, .about = about,
	    .scheme = fl->fl_place.pc_scheme, .port = fl->fl_place.pc_port,
	    .length = length, .host = fl->fl_place.pc_host, .method = method,
	    .path = path);
}

static void
ask_unqueue(struct flow *fl)
{
	TAILQ_REMOVE(&unsent, fl, fl_unsent);
	fl->fl_asking = false;
}

/* policyd reads again. */
void
verdict_ask_rest(void)
{
	struct flow	*fl;

	while ((fl = TAILQ_FIRST(&unsent)) != NULL && !policyd->ip_congested) {
		ask_unqueue(fl);
		fl->fl_ops->ask(fl);
	}
}

/* Withdraw a question: a person might spend minutes on it. */
void
verdict_unask(struct flow *fl)
{
	if (fl->fl_ask == 0 || asked[fl->fl_ask % ASKS_SIZE] != fl)
		return;
	asked[fl->fl_ask % ASKS_SIZE] = NULL;
	if (fl->fl_asking)
		ask_unqueue(fl);
	else
		ipc_send(policyd, -1, ASK_DROP, cookie, fl->fl_ask);
}

int
tlsengine_policyd_verdict(struct ipc *ip, const union msg *m)
{
	const struct msg_verdict	*mv = &m->verdict;
	struct flow			*fl = asked[mv->id % ASKS_SIZE];
	struct ruling			 rl;

	if (mv->verdict >= VERDICT_MAX || mv->scope >= VERDICT_SCOPE_MAX)
		return ipc_bad(ip, "verdict %u of scope %u", mv->verdict,
		    mv->scope);
	/* The client has left meanwhile: ignore the verdict. */
	if (fl == NULL || fl->fl_ask != mv->id)
		return 0;
	asked[mv->id % ASKS_SIZE] = NULL;
	if (mv->generation < generation) {
		fl->fl_ops->ask_again(fl);
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
		verdict_keep(&fl->fl_place, &rl);
	fl->fl_ops->ruled(fl, &rl);
	return 0;
}
