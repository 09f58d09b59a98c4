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
 * The dialer runs this: the engines that get connections.  An engine is
 * hostile: it has nothing to say here, and what it does not take off its
 * channel must not fill our table of descriptors.
 */

#include <stdlib.h>

#include "dialer.h"
#include "log.h"

/* Room for the answers to all dials of one turn; more is not being read. */
#define UNREAD_MAX	(DIALS_ENGINE_MAX * 64)

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

/* Another attempt beside the one that each dial may make in any case? */
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
