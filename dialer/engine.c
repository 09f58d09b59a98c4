/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: the engines that get connections.  An engine is
 * hostile: it has nothing to say here, and what it does not take off its
 * channel must not fill our table of descriptors.
 */

#include <stdlib.h>

#include "dialer.h"
#include "log.h"

/* The answers to all dials of one turn: beyond, the engine does not read. */
#define UNREAD_MAX	(DIALS_ENGINE_MAX * 64)

_Static_assert(UNREAD_MAX + IMSG_MAX_SIZE <= IPC_QUEUE_MAX,
    "an engine that does not read is refused before it is cut off");
_Static_assert(DIALS_ENGINE_MAX < DIALS_MAX &&
    LOOKUPS_ENGINE_MAX < LOOKUPS_MAX && ATTEMPTS_ENGINE_MAX >=
    DIALS_ENGINE_MAX, "one engine leaves room for others");

static int
engine_cmp(const struct engine *a, const struct engine *b)
{
	return (a->en_instance > b->en_instance) -
	    (a->en_instance < b->en_instance);
}

static RB_HEAD(engines, engine)	 engines = RB_INITIALIZER(&engines);
RB_PROTOTYPE(engines, engine, en_entry, engine_cmp)
RB_GENERATE(engines, engine, en_entry, engine_cmp)

static const ipc_handler	 engine_handlers[MSG_MAX];

struct engine *
engine_find(uint32_t instance)
{
	struct engine	 key = { .en_instance = instance };

	return RB_FIND(engines, &engines, &key);
}

static void
engine_gone(struct ipc *ip, const char *why)
{
	struct engine	*en = ip->ip_arg;
	struct dial	*di;

	if (why != NULL)
		child_engine_bad(ip, why);
	while ((di = TAILQ_FIRST(&en->en_dials)) != NULL)
		dial_free(di);
	names_engine_gone(en);
	RB_REMOVE(engines, &engines, en);
	ipc_free(ip);
	free(en);
}

int
engine_new(const struct msg_channel *mc, int fd)
{
	struct engine	*en;

	if (engine_find(mc->instance) != NULL)
		return -1;
	if ((en = calloc(1, sizeof(*en))) == NULL)
		fatal("%s", __func__);
	TAILQ_INIT(&en->en_dials);
	en->en_instance = mc->instance;
	RB_INSERT(engines, &engines, en);
	en->en_ipc = child_engine(mc, fd, engine_handlers);
	en->en_ipc->ip_gone = engine_gone;
	en->en_ipc->ip_arg = en;
	return 0;
}

/* Whether a dial may try a second address at the same time. */
bool
engine_may_widen(const struct engine *en)
{
	return en->en_nattempts < ATTEMPTS_ENGINE_MAX && !stock_is_tight();
}

void
engine_dialed(struct engine *en, uint32_t number, const struct addr *ad,
    int fd)
{
	char	 text[ADDR_STRLEN];

	if (imsgbuf_queuelen(&en->en_ipc->ip_buf) > UNREAD_MAX) {
		stock_close(fd);
		engine_failed(en, number, DIAL_UNREACHABLE,
		    "the session does not take its connections");
		return;
	}
	stock_handed();
	ipc_send(en->en_ipc, fd, DIALED, dialed, .dial = number,
	    .address = addr_format(ad, text, sizeof(text)));
}

void
engine_failed(struct engine *en, uint32_t number, enum dial_failure failure,
    const char *why)
{
	log_debug("%s: dial %u: %s", en->en_ipc->ip_name, number, why);
	ipc_send(en->en_ipc, -1, DIAL_FAILED, dial_failed, .dial = number,
	    .failure = failure, .why = why);
}
