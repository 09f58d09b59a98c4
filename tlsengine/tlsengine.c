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
 * egressd-tlsengine: the gate of one session.
 */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log.h"
#include "tlsengine.h"

#define HEAP_KEEP	(4 * 1024 * 1024)	/* bytes */

struct settings		 settings;
uint64_t		 generation;
struct ipc		*policyd;
struct ipc		*recorder;
char			 request_prefix[REQUEST_PREFIX_LEN + 1];

static struct settings	 candidate;
static uint64_t		 candidate_generation;
static struct secret	*files[FILE_KIND_MAX];	/* in force */
static struct secret	*offered[FILE_KIND_MAX];
static char		 refusal[PATH_LEN];

void
set_timer(struct event *ev, uint64_t ms)
{
	struct timeval	 tv = { ms / 1000, ms % 1000 * 1000 };

	event_add(ev, &tv);
}

/* ---- configuration ------------------------------------------------------- */

static int
tlsengine_parent_conf_engine(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_engine	*me = &m->conf_engine;

	(void)ip;
	strlcpy(candidate.st_policy, me->policy, sizeof(candidate.st_policy));
	candidate.st_refuse = me->refuse;
	candidate.st_asks = me->asks;
	candidate.st_capture = me->capture;
	candidate.st_capture_hash = me->capture_hash;
	candidate.st_connections = me->connections;
	candidate.st_quota_out = me->quota_out;
	candidate.st_handshake_ms = me->handshake_ms;
	candidate.st_head_ms = me->head_ms;
	candidate.st_response_ms = me->response_ms;
	candidate.st_idle_ms = me->idle_ms;
	candidate.st_tunnel_ms = me->tunnel_ms;
	candidate.st_total_ms = me->total_ms;
	return 0;
}

static int
tlsengine_parent_conf_file(struct ipc *ip, const union msg *m)
{
	return child_read_file(ip, m, offered, child_session, refusal,
	    sizeof(refusal));
}

static void
tlsengine_begin(uint64_t gen)
{
	size_t	 i;

	candidate_generation = gen;
	memset(&candidate, 0, sizeof(candidate));
	for (i = 0; i < FILE_KIND_MAX; i++) {
		secret_free(offered[i]);
		offered[i] = NULL;
	}
	refusal[0] = '\0';
	listen_begin();
	/* From here on every request is put to policyd again. */
	verdict_forget();
}

/* What origins are verified against. */
const struct secret *
trust_bundle(void)
{
	return files[FILE_TRUST];
}

/* A file that is offered is the one in force, or there is neither. */
static bool
same_file(enum file_kind kind)
{
	const struct secret	*a = files[kind], *b = offered[kind];

	if (a == NULL || b == NULL)
		return a == b;
	return a->sc_len == b->sc_len &&
	    memcmp(a->sc_data, b->sc_data, a->sc_len) == 0;
}

static void
take_files(void)
{
	static const char	 mark[] = "-----BEGIN CERTIFICATE-----";
	const struct secret	*trust = offered[FILE_TRUST];
	bool			 same = same_file(FILE_TRUST);
	size_t			 i;

	if (trust == NULL || memmem(trust->sc_data, trust->sc_len, mark,
	    sizeof(mark) - 1) == NULL)
		fatalx("session %s: upstream trust: there is none",
		    child_session);
	for (i = 0; i < FILE_KIND_MAX; i++) {
		secret_free(files[i]);
		files[i] = offered[i];
		offered[i] = NULL;
	}
	if (!same)
		upstream_trust_changed();
}

/* Engines have no vote: one that cannot work under this ends. */
static void
tlsengine_commit(void)
{
	bool	 first = mint == NULL, renewed;

	if (refusal[0] != '\0')
		fatalx("session %s: %s", child_session, refusal);
	if (policyd == NULL || recorder == NULL)
		fatalx("session %s: a channel is missing", child_session);
	renewed = !same_file(FILE_CERTIFICATE) || !same_file(FILE_KEY);
	take_files();
	settings = candidate;
	generation = candidate_generation;
	verdict_forget();
	upstream_forget_idle();
	listen_commit();
	if (first || renewed)
		ca_commit(files[FILE_CERTIFICATE], files[FILE_KEY]);
	if (first) {
		box_hear();
		ipc_send(policyd, -1, ENGINE_HELLO, generation, generation);
	} else
		conns_recheck();
	log_debug("session %s: policy %s", child_session, settings.st_policy);
}

/* ---- channels ------------------------------------------------------------ */

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_ENGINE] = tlsengine_parent_conf_engine,
	[MSG_CONF_FILE] = tlsengine_parent_conf_file,
	[MSG_CONF_LISTEN] = tlsengine_parent_conf_listen,
};

static const ipc_handler policyd_handlers[MSG_MAX] = {
	[MSG_VERDICT] = tlsengine_policyd_verdict,
};

static const ipc_handler recorder_handlers[MSG_MAX] = {
	[MSG_CREDIT] = tlsengine_recorder_credit,
};

static const ipc_handler dialer_handlers[MSG_MAX] = {
	[MSG_DIALED] = tlsengine_dialer_dialed,
	[MSG_DIAL_FAILED] = tlsengine_dialer_dial_failed,
};

static void
tlsengine_policyd_drained(struct ipc *ip)
{
	(void)ip;
	verdict_ask_rest();
	credit_spend();
}

static void
tlsengine_recorder_drained(struct ipc *ip)
{
	(void)ip;
	io_take_on();
	credit_spend();
}

static int
tlsengine_channel(const struct msg_channel *mc, int fd)
{
	switch (mc->peer) {
	case ROLE_POLICYD:
		policyd = child_peer(ROLE_POLICYD, fd, policyd_handlers);
		policyd->ip_drained = tlsengine_policyd_drained;
		return 0;
	case ROLE_RECORDER:
		child_request_prefix(mc->instance, request_prefix);
		recorder = child_peer(ROLE_RECORDER, fd, recorder_handlers);
		recorder->ip_drained = tlsengine_recorder_drained;
		return 0;
	case ROLE_DIALER:
		child_peer(ROLE_DIALER, fd, dialer_handlers);
		return 0;
	case ROLE_BOX:
		box_attach(fd);
		return 0;
	default:
		return -1;
	}
}

/* Nothing is sent to anybody before the recorder has what it is told. */
static bool
tlsengine_barrier(void)
{
	if (recorder == NULL)
		return true;
	report_settle();
	return ipc_push(recorder);
}

/* What is read becomes records: not more than the recorder takes. */
static bool
tlsengine_may_take(void)
{
	return recorder == NULL || !recorder->ip_congested;
}

/* What the recorder knows of, it says the end of; the rest is ours to say. */
static void
tlsengine_stop(void)
{
	if (recorder == NULL)
		return;
	credit_end();
	ipc_flush(recorder);
}

/*
 * Buffers come and go with each request.  Freed memory that libc gives back
 * to the kernel at once is faulted in again with the next, page by page.
 */
static void
tlsengine_warm(void)
{
	sslmem_init();
#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEP);
	mallopt(M_MMAP_THRESHOLD, HEAP_KEEP);
#endif
	if (mint_warm() == -1 ||
	    io_library_init(tlsengine_barrier, tlsengine_may_take) == -1)
		fatalx("libssl cannot do what we need");
	upstream_init();
}

int
main(int argc, char *argv[])
{
	static const struct child tlsengine = {
		.ch_role = ROLE_ENGINE,
		.ch_sandbox = &tlsengine_sandbox,
		.ch_handlers = parent_handlers,
		.ch_warm = tlsengine_warm,
		.ch_channel = tlsengine_channel,
		.ch_begin = tlsengine_begin,
		.ch_commit = tlsengine_commit,
		.ch_stop = tlsengine_stop,
	};

	return child_main(&tlsengine, argc, argv);
}
