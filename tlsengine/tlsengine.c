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
 * egressd-tlsengine: the gate of one session.  Until it is handed listeners it
 * only takes its settings and tells policyd that it is there.
 */

#include <string.h>

#include "log.h"
#include "tlsengine.h"

static struct settings	 running, candidate;
static uint64_t		 generation;
static struct ipc	*policyd;
static int		 announced;

static int
tlsengine_parent_conf_engine(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_engine	*me = &m->conf_engine;

	(void)ip;
	strlcpy(candidate.st_policy, me->policy, sizeof(candidate.st_policy));
	candidate.st_refuse = me->refuse;
	candidate.st_capture = me->capture;
	candidate.st_capture_hash = me->capture_hash;
	candidate.st_connections = me->connections;
	candidate.st_handshake_ms = me->handshake_ms;
	candidate.st_head_ms = me->head_ms;
	candidate.st_response_ms = me->response_ms;
	candidate.st_idle_ms = me->idle_ms;
	candidate.st_tunnel_ms = me->tunnel_ms;
	return 0;
}

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_ENGINE] = tlsengine_parent_conf_engine,
};

static const ipc_handler no_handlers[MSG_MAX];

static int
tlsengine_channel(const struct msg_channel *mc, int fd)
{
	switch (mc->peer) {
	case ROLE_POLICYD:
		policyd = child_peer(ROLE_POLICYD, fd, no_handlers);
		return 0;
	case ROLE_RECORDER:
	case ROLE_DIALER:
		child_peer(mc->peer, fd, no_handlers);
		return 0;
	default:
		return -1;
	}
}

static void
tlsengine_begin(uint64_t gen)
{
	generation = gen;
	memset(&candidate, 0, sizeof(candidate));
}

/* Without policyd there are no verdicts, so there is nothing to be here for. */
static void
tlsengine_commit(void)
{
	if (policyd == NULL)
		fatalx("no channel to policyd");
	running = candidate;
	if (!announced)
		ipc_send(policyd, -1, ENGINE_HELLO, generation, generation);
	announced = 1;
	log_debug("session %s: policy %s", child_session, running.st_policy);
}

int
main(int argc, char *argv[])
{
	static const struct child tlsengine = {
		.ch_role = ROLE_ENGINE,
		.ch_sandbox = &tlsengine_sandbox,
		.ch_handlers = parent_handlers,
		.ch_channel = tlsengine_channel,
		.ch_begin = tlsengine_begin,
		.ch_commit = tlsengine_commit,
	};

	return child_main(&tlsengine, argc, argv);
}
