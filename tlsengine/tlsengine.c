/* SPDX-License-Identifier: ISC */

/*
 * egressd-tlsengine: the gate of one session.
 */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flow/conn.h"
#include "flow/upstream.h"
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
	candidate.st_asks = me->asks;
	candidate.st_waits = me->waits;
	candidate.st_connections = me->connections;
	candidate.st_handshake_ms = me->handshake_ms;
	candidate.st_head_ms = me->head_ms;
	candidate.st_response_ms = me->response_ms;
	candidate.st_idle_ms = me->idle_ms;
	candidate.st_tunnel_ms = me->tunnel_ms;
	candidate.st_total_ms = me->total_ms;
	return 0;
}

static void
forget_offered(void)
{
	size_t	 i;

	for (i = 0; i < FILE_KIND_MAX; i++) {
		secret_free(offered[i]);
		offered[i] = NULL;
	}
}

/*
 * An engine without a session weighs the CAs of a configuration that is not in
 * force yet, as the engines that will use them would, votes and ends.
 */
static struct {
	char	 session[NAME_LEN + 1];	/* "": none yet */
	char	 files[2 * PATH_LEN + 3];
} weighed;

static void
weigh_offered(void)
{
	const struct secret	*cert = offered[FILE_CERTIFICATE];
	const struct secret	*key = offered[FILE_KEY];
	const char		*why = "a file is missing";
	struct mint		*mt = NULL;

	if (weighed.session[0] == '\0' || refusal[0] != '\0')
		return;
	if (cert != NULL && key != NULL)
		mt = mint_load(cert->sc_data, cert->sc_len, key->sc_data,
		    key->sc_len, &why);
	if (mt == NULL) {
		snprintf(refusal, sizeof(refusal), "session %s: CA: %s: ",
		    weighed.session, why);
		strlcat(refusal, weighed.files, sizeof(refusal));
	}
	mint_free(mt);
	forget_offered();
}

static int
tlsengine_parent_conf_weigh(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_weigh	*mw = &m->conf_weigh;

	if (child_session[0] != '\0')
		return ipc_bad(ip, "a CA to weigh");
	weigh_offered();
	forget_offered();
	strlcpy(weighed.session, mw->session, sizeof(weighed.session));
	snprintf(weighed.files, sizeof(weighed.files), "%s, %s",
	    mw->certificate, mw->key);
	return 0;
}

/* An engine with a session has no vote. */
static int
tlsengine_weigh(char *why, size_t len)
{
	if (child_session[0] != '\0')
		return 0;
	weigh_offered();
	strlcpy(why, refusal, len);
	return refusal[0] != '\0' ? -1 : 0;
}

static int
tlsengine_parent_conf_option(struct ipc *ip, const union msg *m)
{
	if (m->conf_option.of != OPTION_OF_POLICY)
		return ipc_bad(ip, "option of object %u", m->conf_option.of);
	return option_recv(ip, &m->conf_option, &candidate.st_options);
}

static int
tlsengine_parent_conf_file(struct ipc *ip, const union msg *m)
{
	return child_read_file(ip, m, offered, child_session[0] != '\0' ?
	    child_session : weighed.session, refusal, sizeof(refusal));
}

static void
tlsengine_begin(uint64_t gen)
{
	candidate_generation = gen;
	memset(&candidate, 0, sizeof(candidate));
	option_presets(policy_table, &candidate.st_options);
	forget_offered();
	refusal[0] = '\0';
	listen_begin();
	/* From here on every request is put to policyd again. */
	verdict_forget();
}

/* The certificates that origins are verified against. */
const struct secret *
trust_bundle(void)
{
	return files[FILE_TRUST];
}

/* Whether the offered file equals the one in force. */
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

static void
serve(void)
{
	listen_serve();
	box_hear();
	ipc_send(policyd, -1, ENGINE_HELLO, generation, generation);
}

/* Of the first CA: clients find it where they look. */
static int
tlsengine_parent_trust_written(struct ipc *ip, const union msg *m)
{
	(void)ip, (void)m;
	if (settings.st_waits && !listen_serves())
		serve();
	return 0;
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
	if (first && !settings.st_waits)
		serve();
	else if (!first)
		conns_recheck();
	log_debug("session %s: policy %s", child_session, settings.st_policy);
}

/* ---- channels ------------------------------------------------------------ */

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_ENGINE] = tlsengine_parent_conf_engine,
	[MSG_CONF_FILE] = tlsengine_parent_conf_file,
	[MSG_CONF_OPTION] = tlsengine_parent_conf_option,
	[MSG_CONF_LISTEN] = tlsengine_parent_conf_listen,
	[MSG_CONF_WEIGH] = tlsengine_parent_conf_weigh,
	[MSG_TRUST_WRITTEN] = tlsengine_parent_trust_written,
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

/* The recorder's channel is flushed before anything else is sent. */
static bool
tlsengine_barrier(void)
{
	if (recorder == NULL)
		return true;
	report_settle();
	return ipc_push(recorder);
}

/* Reading makes records: wait while the recorder is behind. */
static bool
tlsengine_may_take(void)
{
	return recorder == NULL || !recorder->ip_congested;
}

/* Requests unknown to the recorder are recorded now; it ends the rest. */
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
		.ch_weigh = tlsengine_weigh,
		.ch_commit = tlsengine_commit,
		.ch_stop = tlsengine_stop,
	};

	return child_main(&tlsengine, argc, argv);
}
