/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the recorder's credit, and the requests that wait for
 * it: no record, no request.  One whose client leaves meanwhile was read all
 * the same, and has its final record (promise P6) once there is credit.  What
 * is kept of it till then is bounded, as an agent may come and leave as often
 * as it likes; of those beyond one record says how many they were.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "flow.h"
#include "tlsengine.h"

#define LEAVERS_SIZE	(1024 * 1024)	/* bytes, of all of them */

static uint32_t		 credits;
static bool		 held;		/* records would be lost */
static struct event	 turn;

static struct flows	 waiting = TAILQ_HEAD_INITIALIZER(waiting);
static STAILQ_HEAD(, leaver) leavers = STAILQ_HEAD_INITIALIZER(leavers);
static size_t		 leavers_size;
static uint64_t		 nlost;		/* there was no room for them */

bool
credit_held(void)
{
	return held;
}

/*
 * A request's head goes to the recorder and its path to policyd: as long as
 * either has not taken what it was told before, clients wait.
 */
static bool
credit_take(void)
{
	if (credits == 0 || recorder->ip_congested || policyd->ip_congested)
		return false;
	credits--;
	return true;
}

/* ---- those that left ----------------------------------------------------- */

/* Keep place, method and path; fields go with the connection. */
static void
leaver_add(const struct flow *fl, const struct exchange *ex)
{
	size_t		 pathlen = ex != NULL ? ex->ex_pathlen : 0;
	size_t		 size = sizeof(struct leaver) + pathlen + 1;
	struct leaver	*lv;

	if (size > LEAVERS_SIZE - leavers_size ||
	    (lv = malloc(size)) == NULL) {
		nlost++;
		return;
	}
	lv->lv_size = size;
	lv->lv_at = clock_wall_ns();
	lv->lv_place = fl->fl_place;
	lv->lv_protocol = fl->fl_protocol;
	lv->lv_inspected = ex != NULL;
	strlcpy(lv->lv_method, ex != NULL ? ex->ex_method : "",
	    sizeof(lv->lv_method));
	memcpy(lv->lv_path, ex != NULL ? ex->ex_path : "", pathlen + 1);
	STAILQ_INSERT_TAIL(&leavers, lv, lv_entry);
	leavers_size += size;
}

static void
leaver_remove(struct leaver *lv)
{
	STAILQ_REMOVE_HEAD(&leavers, lv_entry);
	leavers_size -= lv->lv_size;
	free(lv);
}

static void
leavers_tell_lost(void)
{
	char	 why[80];

	if (nlost == 0)
		return;
	snprintf(why, sizeof(why), REASON_AUDIT_FULL ": requests that left "
	    "unrecorded: %llu", (unsigned long long)nlost);
	report_other(RECORD_REQUEST_DENIED, PROTOCOL_OTHER, "", 0, why);
	nlost = 0;
}

/* ---- those that wait ----------------------------------------------------- */

static void
credit_unwait(struct flow *fl)
{
	TAILQ_REMOVE(&waiting, fl, fl_entry);
	fl->fl_entry.tqe_prev = NULL;
}

/* Requests that left are recorded first, then waiting flows begin. */
void
credit_spend(void)
{
	struct leaver	*lv;
	struct flow	*fl;

	while ((lv = STAILQ_FIRST(&leavers)) != NULL && credit_take()) {
		report_leaver(lv);
		leaver_remove(lv);
	}
	if (lv == NULL)
		leavers_tell_lost();
	while ((fl = TAILQ_FIRST(&waiting)) != NULL && credit_take()) {
		credit_unwait(fl);
		fl->fl_ops->begin(fl);
	}
}

int
tlsengine_recorder_credit(struct ipc *ip, const union msg *m)
{
	if (m->credit.count > UINT32_MAX - credits)
		return ipc_bad(ip, "credit %u", m->credit.count);
	credits += m->credit.count;
	held = m->credit.hold != 0;
	credit_spend();
	return 0;
}

static void
credit_on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	credit_spend();
}

/* Credit is spent in a turn of its own: a flow that begins may end others. */
static void
credit_wake(void)
{
	if (credits == 0 || (TAILQ_EMPTY(&waiting) && STAILQ_EMPTY(&leavers)))
		return;
	if (!event_initialized(&turn))
		event_assign(&turn, child_base, -1, 0, credit_on_turn, NULL);
	event_active(&turn, EV_TIMEOUT, 1);
}

/* An unused credit: the connection needs no record of its own. */
void
credit_return(void)
{
	credits++;
	credit_wake();
}

/* Begin at once if there is credit, else wait for it. */
bool
credit_await(struct flow *fl)
{
	if (TAILQ_EMPTY(&waiting) && STAILQ_EMPTY(&leavers) && credit_take())
		return fl->fl_ops->begin(fl);
	TAILQ_INSERT_TAIL(&waiting, fl, fl_entry);
	return true;
}

/* The client is gone; the flow may be one that waits here.  ex: NULL if raw. */
void
credit_left(struct flow *fl, const struct exchange *ex)
{
	if (fl->fl_entry.tqe_prev == NULL)
		return;
	leaver_add(fl, ex);
	credit_unwait(fl);
	credit_wake();
}

/* The engine stops: records that need no credit, and say less. */
void
credit_end(void)
{
	struct flow	*fl;
	struct leaver	*lv;

	while ((lv = STAILQ_FIRST(&leavers)) != NULL) {
		report_other(RECORD_REQUEST_FAILED, lv->lv_protocol,
		    lv->lv_place.pc_host, lv->lv_place.pc_port,
		    REASON_CLIENT_LEFT);
		leaver_remove(lv);
	}
	while ((fl = TAILQ_FIRST(&waiting)) != NULL) {
		report_other(RECORD_REQUEST_DENIED, fl->fl_protocol,
		    fl->fl_place.pc_host, fl->fl_place.pc_port,
		    REASON_NO_ENGINE);
		credit_unwait(fl);
	}
	leavers_tell_lost();
}
