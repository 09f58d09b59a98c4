/* SPDX-License-Identifier: ISC */

/*
 * An engine that talks to the recorder over a real pair of sockets; what the
 * recorder makes of that is read from the audit file.
 */

#ifndef RECORD_PEER_H
#define RECORD_PEER_H

#include <sys/mman.h>
#include <sys/socket.h>

#include <fcntl.h>
#include <unistd.h>

#include "../../common/child.h"
#include "../../common/log.h"
#include "../../common/policy.h"
#include "../../recorder/recorder.h"
#include "test.h"

#define PASSES	200	/* of the loop */
#define AT	(UINT64_C(1767323045) * 1000000000 + 678999999)
#define LATER	(AT + UINT64_C(1322000000))
#define T_AT	"\"2026-01-02T03:04:05.678Z\""
#define T_LATER	"\"2026-01-02T03:04:07.000Z\""

#define IDENTITY(id)							\
	"\"id\":\"" id "\",\"host\":\"a.example\",\"port\":443,"	\
	"\"scheme\":\"https\",\"protocol\":\"h2\",\"method\":\"GET\","	\
	"\"path\":\"/x?taken=1\""
#define NO_BODY								\
	"{\"sha256\":null,\"bytes\":0,\"preview\":null,\"truncated\":false}"

static struct event_base	*base;
static struct ipc		*engine;	/* our end */
static struct ipc		*heard;		/* the recorder's */
static uint32_t			 credit;
static char			 gone_why[256];
static char			 text[1024 * 1024];
static char			*line;		/* of text, not yet seen */
static int			 file = -1;

/* Of common/child.c only these are needed, and no parent. */
struct ipc *
child_engine(const struct msg_channel *mc, int fd, const ipc_handler *handlers)
{
	return heard = ipc_new(base, fd, ROLE_RECORDER, ROLE_ENGINE,
	    mc->session, handlers);
}

void
child_engine_bad(const struct ipc *ip, const char *why)
{
	(void)ip;
	strlcpy(gone_why, why, sizeof(gone_why));
}

void
child_request_prefix(uint32_t instance, char out[REQUEST_PREFIX_LEN + 1])
{
	snprintf(out, REQUEST_PREFIX_LEN + 1, "%u-", instance);
}

static int
on_credit(struct ipc *ip, const union msg *m)
{
	(void)ip;
	credit += m->credit.count;
	return 0;
}

static const ipc_handler handlers[MSG_MAX] = {
	[MSG_CREDIT] = on_credit,
};

static void
on_gone(struct ipc *ip, const char *why)
{
	(void)why;
	ipc_free(ip);
	engine = NULL;
}

/* Until all is said and heard. */
static void
settle(void)
{
	int	 i;

	for (i = 0; i < PASSES; i++)
		CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
}

static void
hang_up(void)
{
	ipc_free(engine);
	engine = NULL;
	settle();
}

/* A fresh chain, a fresh file, an engine with the number 7. */
static void
setup(void)
{
	struct msg_channel	 mc = { .session = "edge", .policy = "",
	    .instance = 7 };
	char			 path[] = "/tmp/t_record.XXXXXX", why[64];
	int			 sv[2];

	if (base == NULL) {
		log_set_level(LOG_LVL_ERROR);
		CHECK((base = event_base_new()) != NULL);
		CHECK_INT(event_base_priority_init(base, 2), 0);
		audit_init(base, engines_hold);
		follower_init(base);
	}
	if (engine != NULL)
		hang_up();
	redact_begin();
	redact_commit();
	audit_begin();
	audit_commit();
	chain_init();
	if (file != -1)
		close(file);
	CHECK((file = mkstemp(path)) != -1);
	unlink(path);
	CHECK_INT(fcntl(file, F_SETFL, O_APPEND), 0);
	CHECK_INT(audit_offer(dup(file), "audit"), 0);
	CHECK_INT(tip_offer(memfd_create("tip", 0)), 0);
	CHECK_INT(audit_weigh(why, sizeof(why)), 0);
	audit_commit();

	credit = 0;
	gone_why[0] = '\0';
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	engine_new(&mc, sv[1]);
	heard->ip_pace_ms = 0;
	engine = ipc_new(base, sv[0], ROLE_ENGINE, ROLE_RECORDER, "recorder",
	    handlers);
	engine->ip_gone = on_gone;
}

/* Read all that is in the file. */
static void
look(void)
{
	ssize_t	 n;

	settle();
	/* A second one waits a little for company. */
	audit_flush();
	CHECK((n = pread(file, text, sizeof(text) - 1, 0)) != -1);
	text[n] = '\0';
	line = text;
}

#define OPEN(id, ...)							\
	ipc_send(engine, -1, RECORD_OPENED, record_opened, .request = id, \
	    .at = AT, .scheme = URL_HTTPS, .protocol = PROTOCOL_H2,	\
	    .port = 443, .host = "a.example", .method = "GET",		\
	    .path = "/x?taken=1", __VA_ARGS__)
#define ALLOW(id, ...)							\
	ipc_send(engine, -1, RECORD_VERDICT, record_verdict,		\
	    .request = id, .at = AT, .verdict = VERDICT_ALLOW, __VA_ARGS__)
#define CLOSE(id, ...)							\
	ipc_send(engine, -1, RECORD_CLOSED, record_closed, .request = id, \
	    .at = LATER, __VA_ARGS__)
#define FIELDS(s)	{ s, sizeof(s) - 1 }

#endif /* RECORD_PEER_H */
