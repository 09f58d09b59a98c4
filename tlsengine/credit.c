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
#include "tlsengine.h"

#define LEAVERS_SIZE	(1024 * 1024)	/* bytes, of all of them */

static uint32_t		 credits;
static bool		 held;		/* records would be lost */
static struct event	 turn;

static struct exchanges	 waiting = TAILQ_HEAD_INITIALIZER(waiting);
static STAILQ_HEAD(, leaver) leavers = STAILQ_HEAD_INITIALIZER(leavers);
static size_t		 leavers_size;
static uint64_t		 nlost;		/* there was no room for them */

bool
credit_held(void)
{
	return held;
}

/*
 * Its head goes to the recorder and its path to policyd: as long as either
 * has not taken what it was told before, clients wait.
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

/* Its head goes with the connection: no field is kept. */
static void
leaver_add(const struct exchange *ex)
{
	size_t		 size = sizeof(struct leaver) + ex->ex_pathlen + 1;
	struct leaver	*lv;

	if (size > LEAVERS_SIZE - leavers_size ||
	    (lv = malloc(size)) == NULL) {
		nlost++;
		return;
	}
	lv->lv_size = size;
	lv->lv_at = clock_wall_ns();
	lv->lv_place = ex->ex_place;
	lv->lv_protocol = ex->ex_protocol;
	lv->lv_raw = ex->ex_raw;
	strlcpy(lv->lv_method, ex->ex_method, sizeof(lv->lv_method));
	memcpy(lv->lv_path, ex->ex_path, ex->ex_pathlen + 1);
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
	snprintf(why, sizeof(why), "audit_full: requests that left "
	    "unrecorded: %llu", (unsigned long long)nlost);
	report_other(RECORD_REQUEST_DENIED, PROTOCOL_OTHER, "", 0, why);
	nlost = 0;
}

/* ---- those that wait ----------------------------------------------------- */

static void
credit_unwait(struct exchange *ex)
{
	TAILQ_REMOVE(&waiting, ex, ex_entry);
	ex->ex_entry.tqe_prev = NULL;
}

/* What left goes first: that it is told is only a matter of time. */
void
credit_spend(void)
{
	struct leaver	*lv;
	struct exchange	*ex;

	while ((lv = STAILQ_FIRST(&leavers)) != NULL && credit_take()) {
		report_leaver(lv);
		leaver_remove(lv);
	}
	if (lv == NULL)
		leavers_tell_lost();
	while ((ex = TAILQ_FIRST(&waiting)) != NULL && credit_take()) {
		credit_unwait(ex);
		exchange_begin(ex);
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

/* In a turn of its own: what begins may end, and other things with it. */
static void
credit_wake(void)
{
	if (credits == 0 || (TAILQ_EMPTY(&waiting) && STAILQ_EMPTY(&leavers)))
		return;
	if (!event_initialized(&turn))
		event_assign(&turn, child_base, -1, 0, credit_on_turn, NULL);
	event_active(&turn, EV_TIMEOUT, 1);
}

/* What it was taken for needs no record. */
void
credit_return(void)
{
	credits++;
	credit_wake();
}

/* It begins, now or later. */
void
credit_await(struct exchange *ex)
{
	if (TAILQ_EMPTY(&waiting) && STAILQ_EMPTY(&leavers) && credit_take())
		exchange_begin(ex);
	else
		TAILQ_INSERT_TAIL(&waiting, ex, ex_entry);
}

/* Its client is gone; it may be one that waits here. */
void
credit_left(struct exchange *ex)
{
	if (ex->ex_entry.tqe_prev == NULL)
		return;
	if (ex->ex_raw)
		raw_protocol(ex);
	leaver_add(ex);
	credit_unwait(ex);
	credit_wake();
}

/* No more credit will come; this needs none, and says less. */
void
credit_end(void)
{
	struct exchange	*ex;
	struct leaver	*lv;

	while ((lv = STAILQ_FIRST(&leavers)) != NULL) {
		report_other(RECORD_REQUEST_FAILED, lv->lv_protocol,
		    lv->lv_place.pc_host, lv->lv_place.pc_port, CLIENT_LEFT);
		leaver_remove(lv);
	}
	while ((ex = TAILQ_FIRST(&waiting)) != NULL) {
		if (ex->ex_raw)
			raw_protocol(ex);
		report_other(RECORD_REQUEST_DENIED, ex->ex_protocol,
		    ex->ex_place.pc_host, ex->ex_place.pc_port, "no_engine");
		credit_unwait(ex);
	}
	leavers_tell_lost();
}
