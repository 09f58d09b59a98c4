/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: a configuration comes into force as one transaction.
 * Everything that can fail is tried first, aside; then each process gets its
 * slice and says yes or no; then all change over, or none.  The first
 * configuration takes the same way.  Engines have no vote: one that is silent
 * for a second is killed, its session starts again under what is in force.
 * The CAs that a configuration gives to sessions are weighed by an engine that
 * serves none and lives for one vote: yes, no, or death, which is no.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parent.h"

/*
 * Those who change over last: policyd gives verdicts, and controld has
 * sessions started under them.
 */
#define R_JUDGING	(R_POLICYD | R_CONTROLD)

static struct {
	bool		 tx_active;
	bool		 tx_committed;
	bool		 tx_judged;	/* R_JUDGING and engines follow it */
	bool		 tx_weighing;	/* CAs: whoever does is still there */
	bool		 tx_asked;	/* by a control client: tx_cookie */
	uint32_t	 tx_cookie;
	uint64_t	 tx_generation;
	struct config	*tx_conf;
	struct runtime	*tx_runtime;
	struct why	 tx_refusal;
	struct event	 tx_vote;	/* voters are overdue */
	struct event	 tx_engines;	/* engines are overdue */
} tx;

static void	 reload_overdue(evutil_socket_t, short, void *);
static void	 reload_engines_overdue(evutil_socket_t, short, void *);

bool
reload_running(void)
{
	return tx.tx_active;
}

static void
reload_answer(const uint32_t *cookie, enum reload_result result,
    const char *text)
{
	struct proc	*controld = proc_find(ROLE_CONTROLD);

	if (result == RELOAD_OK)
		log_info("configuration %s is in force, generation %llu",
		    d.d_conf_path, (unsigned long long)d.d_generation);
	else
		log_warnx("reload: %s", text);
	if (cookie == NULL || controld == NULL || controld->pr_ipc == NULL)
		return;
	ipc_send(controld->pr_ipc, -1, RELOAD_DONE, reload_done,
	    .cookie = *cookie, .result = result,
	    .generation = d.d_generation, .text = text);
}

static void
reload_send(struct proc *pr, uint64_t generation, const struct config *conf,
    struct runtime *rt)
{
	ipc_send(pr->pr_ipc, -1, CONF_BEGIN, generation, generation);
	slice_send(pr, conf, rt);
	if (pr->pr_ipc == NULL)
		return;		/* it had to be killed */
	ipc_send(pr->pr_ipc, -1, CONF_END, generation, generation);
	pr->pr_ipc->ip_state = S_PREPARE;
	pr->pr_generation = generation;
	pr->pr_voted = false;
}

/* A new engine, outside of any transaction: what is in force. */
void
reload_engine(struct proc *pr)
{
	reload_send(pr, d.d_generation, d.d_conf, d.d_runtime);
}

static bool
in_transaction(const struct proc *pr)
{
	return tx.tx_active && pr->pr_ipc != NULL &&
	    pr->pr_generation == tx.tx_generation;
}

void
reload_start(struct config *conf, struct runtime *rt)
{
	struct timeval	 vote = { VOTE_TIMEOUT_MS / 1000, 0 };
	struct timeval	 engines = { ENGINE_TIMEOUT_MS / 1000, 0 };
	struct proc	*pr;

	tx.tx_active = true;
	tx.tx_committed = tx.tx_judged = false;
	tx.tx_generation = d.d_generation + 1;
	tx.tx_conf = conf;
	tx.tx_runtime = rt;
	tx.tx_refusal.text[0] = '\0';
	tx.tx_weighing = trust_is_given(conf);
	if (tx.tx_weighing && proc_start_weigher() == NULL)
		reload_weigher_gone(false);
	TAILQ_FOREACH(pr, &procs, pr_entry) {
		if (pr->pr_ipc == NULL)
			continue;
		if (pr->pr_role == ROLE_ENGINE && !pr->pr_weighs &&
		    (pr->pr_ipc->ip_state != S_RUN || pr->pr_session == NULL ||
		    session_policy(conf, pr->pr_session) == NULL))
			continue;
		reload_send(pr, tx.tx_generation, conf, rt);
	}
	event_assign(&tx.tx_vote, d.d_base, -1, 0, reload_overdue, NULL);
	event_assign(&tx.tx_engines, d.d_base, -1, 0, reload_engines_overdue,
	    NULL);
	event_add(&tx.tx_vote, &vote);
	event_add(&tx.tx_engines, &engines);
}

static char *
join_errors(const struct conf_errors *errs, struct why *why)
{
	size_t	 i, len;

	why->text[0] = '\0';
	for (i = 0; i < errs->ce_count; i++) {
		if (i > 0)
			strlcat(why->text, "\n", sizeof(why->text));
		strlcat(why->text, errs->ce_msg[i], sizeof(why->text));
	}
	len = strlen(why->text);
	if (errs->ce_dropped > 0)
		snprintf(why->text + len, sizeof(why->text) - len,
		    "\n%s: %zu more errors", d.d_conf_path, errs->ce_dropped);
	return why->text;
}

/* By a control client, or by SIGHUP: then there is no cookie. */
void
reload_ask(const uint32_t *cookie)
{
	struct conf_errors	 errs = { .ce_count = 0 };
	struct config		*conf;
	struct runtime		*rt;
	struct why		 why;

	if (tx.tx_active || !d.d_ready) {
		reload_answer(cookie, RELOAD_BUSY,
		    "a configuration is being loaded already");
		return;
	}
	if ((conf = parent_parse(&errs)) == NULL) {
		reload_answer(cookie, RELOAD_BAD_CONF,
		    join_errors(&errs, &why));
		conf_errors_free(&errs);
		return;
	}
	if ((rt = runtime_open(conf, d.d_runtime, &why)) == NULL) {
		reload_answer(cookie, RELOAD_BAD_CONF, why.text);
		conf_free(conf);
		return;
	}
	tx.tx_asked = cookie != NULL;
	if (cookie != NULL)
		tx.tx_cookie = *cookie;
	reload_start(conf, rt);
}

/*
 * An engine has taken what it was sent and runs.  One that started meanwhile
 * has missed a transaction: it takes what is in force before anybody is told.
 */
static void
engine_settle(struct proc *pr)
{
	if (pr->pr_generation != d.d_generation) {
		reload_engine(pr);
		return;
	}
	proc_started(pr);
	if (pr->pr_session != NULL)
		session_engine_runs(pr->pr_session);
}

/* The transaction is over: sessions that were to wait for its end start. */
static void
engines_settle(void)
{
	struct proc	*pr, *next;

	TAILQ_FOREACH_SAFE(pr, &procs, pr_entry, next)
		if (pr->pr_role == ROLE_ENGINE && pr->pr_ipc != NULL &&
		    pr->pr_session != NULL && pr->pr_ipc->ip_state == S_RUN)
			engine_settle(pr);
	sessions_start();
}

static void
reload_abort(void)
{
	struct proc	*pr;

	if (d.d_generation == 0) {
		log_errorx("%s", tx.tx_refusal.text);
		parent_stop(1);
		return;
	}
	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (in_transaction(pr)) {
			ipc_send(pr->pr_ipc, -1, CONF_ABORT, generation,
			    tx.tx_generation);
			pr->pr_ipc->ip_state = S_RUN;
			pr->pr_generation = d.d_generation;
		}
	event_del(&tx.tx_vote);
	event_del(&tx.tx_engines);
	tx.tx_active = false;
	runtime_abort(tx.tx_runtime);
	conf_free(tx.tx_conf);
	reload_answer(tx.tx_asked ? &tx.tx_cookie : NULL, RELOAD_REFUSED,
	    tx.tx_refusal.text);
	engines_settle();
}

/* All ends: what only the configuration on its way has goes too. */
void
reload_drop(void)
{
	if (!tx.tx_active || tx.tx_committed)
		return;
	tx.tx_active = false;
	runtime_abort(tx.tx_runtime);
	conf_free(tx.tx_conf);
}

static void
commit_send(uint32_t roles)
{
	struct proc	*pr;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (in_transaction(pr) && (roles & (1U << pr->pr_role))) {
			ipc_send(pr->pr_ipc, -1, CONF_COMMIT, generation,
			    tx.tx_generation);
			pr->pr_ipc->ip_state = S_COMMIT;
		}
}

/*
 * Those who carry out verdicts go first: by the time that one is given under
 * the new rules, nobody dials or asks by the old ones.
 */
static void
reload_commit(void)
{
	tx.tx_committed = true;
	commit_send(R_VOTERS & ~R_JUDGING);
	runtime_commit(tx.tx_runtime, d.d_runtime);
	/* A level that an operator has set stays until the file's changes. */
	if (d.d_conf != NULL && d.d_conf->cf_log != tx.tx_conf->cf_log)
		procs_log_level(parent_log_level(tx.tx_conf));
	conf_free(d.d_conf);
	d.d_conf = tx.tx_conf;
	d.d_runtime = tx.tx_runtime;
	d.d_generation = tx.tx_generation;
}

/* A sandbox's engine that was not asked because it is starting. */
static bool
engine_is_late(const struct proc *pr)
{
	return pr->pr_ipc != NULL && pr->pr_session != NULL &&
	    pr->pr_session->se_policy[0] != '\0' &&
	    session_policy(d.d_conf, pr->pr_session) != NULL;
}

/*
 * An engine that was not asked to take this generation has to go, and is
 * waited for: the next configuration may want its addresses.  A sandbox's has
 * none; its session could not start again.
 */
static bool
stale_engines_gone(void)
{
	struct proc	*pr;
	bool		 gone = true;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (pr->pr_role == ROLE_ENGINE &&
		    pr->pr_generation != d.d_generation &&
		    !engine_is_late(pr)) {
			proc_end(pr);
			gone = false;
		}
	return gone;
}

static void
reload_finish(void)
{
	event_del(&tx.tx_vote);
	event_del(&tx.tx_engines);
	tx.tx_active = false;
	if (d.d_ready)
		reload_answer(tx.tx_asked ? &tx.tx_cookie : NULL, RELOAD_OK,
		    "");
	sessions_follow(d.d_conf);
	engines_settle();
	parent_progress();
}

/* An engine that is late now would miss the next transaction, and end. */
static bool
engines_run(void)
{
	struct proc	*pr;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (pr->pr_role == ROLE_ENGINE && in_transaction(pr) &&
		    pr->pr_ipc->ip_state != S_RUN)
			return false;
	return true;
}

/* Has everybody said what there is to wait for? */
void
reload_weigh(void)
{
	struct timeval	 engines = { ENGINE_TIMEOUT_MS / 1000, 0 };
	struct proc	*pr;

	if (!tx.tx_active)
		return;
	if (tx.tx_committed && !tx.tx_judged) {
		if (!procs_all_run(R_VOTERS & ~R_JUDGING))
			return;
		tx.tx_judged = true;
		commit_send(R_JUDGING | R_ENGINE);
		event_add(&tx.tx_engines, &engines);
		return;
	}
	if (tx.tx_committed) {
		if (procs_all_run(R_VOTERS) && engines_run() &&
		    stale_engines_gone())
			reload_finish();
		return;
	}
	if (tx.tx_weighing)
		return;
	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (in_transaction(pr) && !pr->pr_voted)
			return;
	if (tx.tx_refusal.text[0] != '\0')
		reload_abort();
	else
		reload_commit();
}

static void
reload_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct proc	*pr;

	(void)fd, (void)what, (void)arg;
	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (in_transaction(pr) && (tx.tx_committed ?
		    pr->pr_ipc->ip_state != S_RUN : !pr->pr_voted))
			proc_kill(pr, "it does not answer to a configuration");
}

static void
reload_engines_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct proc	*pr, *next;

	(void)fd, (void)what, (void)arg;
	TAILQ_FOREACH_SAFE(pr, &procs, pr_entry, next)
		if (pr->pr_role == ROLE_ENGINE && in_transaction(pr) &&
		    !pr->pr_weighs && pr->pr_ipc->ip_state != S_RUN &&
		    (tx.tx_judged || !pr->pr_voted))
			proc_kill(pr, "it does not answer to a configuration");
	reload_weigh();
}

static int
wrong_generation(struct ipc *ip, uint64_t generation)
{
	struct proc	*pr = ip->ip_arg;

	if (generation == pr->pr_generation)
		return 0;
	return ipc_bad(ip, "generation %llu, it was sent %llu",
	    (unsigned long long)generation,
	    (unsigned long long)pr->pr_generation);
}

static void
reload_refuse(const char *who, const char *why)
{
	if (tx.tx_refusal.text[0] == '\0')
		why_set(&tx.tx_refusal, "%s: %s", who, why);
}

/* It is waited for, so that a reload leaves nothing behind. */
void
reload_weigher_gone(bool voted)
{
	tx.tx_weighing = false;
	if (!voted)
		reload_refuse("CAs of sessions", "they could not be weighed");
}

int
parent_child_conf_ack(struct ipc *ip, const union msg *m)
{
	struct proc	*pr = ip->ip_arg;

	if (wrong_generation(ip, m->generation.generation) == -1)
		return -1;
	if (pr->pr_voted)
		return ipc_bad(ip, "second vote on a generation");
	pr->pr_voted = true;
	if (pr->pr_weighs) {
		proc_end(pr);
		return 0;
	}
	if (in_transaction(pr)) {
		reload_weigh();
		return 0;
	}
	ipc_send(ip, -1, CONF_COMMIT, generation, pr->pr_generation);
	ip->ip_state = S_COMMIT;
	return 0;
}

int
parent_child_conf_nak(struct ipc *ip, const union msg *m)
{
	struct proc	*pr = ip->ip_arg;

	if (wrong_generation(ip, m->conf_nak.generation) == -1)
		return -1;
	if (pr->pr_role == ROLE_ENGINE && !pr->pr_weighs)
		return ipc_bad(ip, "an engine has no vote");
	if (pr->pr_voted)
		return ipc_bad(ip, "second vote on a generation");
	pr->pr_voted = true;
	reload_refuse(pr->pr_weighs ? d.d_conf_path : pr->pr_name,
	    m->conf_nak.why);
	if (pr->pr_weighs)
		proc_end(pr);
	else
		reload_weigh();
	return 0;
}

int
parent_child_conf_done(struct ipc *ip, const union msg *m)
{
	struct proc	*pr = ip->ip_arg;

	if (wrong_generation(ip, m->generation.generation) == -1)
		return -1;
	ip->ip_state = S_RUN;
	/* An engine that started into a transaction waits for its end. */
	if (!tx.tx_active || in_transaction(pr))
		engine_settle(pr);
	reload_weigh();
	parent_progress();
	return 0;
}
