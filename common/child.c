/* SPDX-License-Identifier: ISC */

/*
 * Every child runs this.  It trusts the parent and nobody else, so a bad
 * message from the parent is fatal: something is very wrong.
 */

#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "log.h"

struct event_base	*child_base;
struct ipc		*child_parent;
char			 child_session[SESSION_LEN + 1];

static const struct child	*self;
static uint64_t			 life;		/* of the daemon */
static uint64_t			 generation;	/* running */
static uint64_t			 candidate;	/* being prepared */

/*
 * The programs were replaced under a daemon that goes on: by an upgrade, most
 * likely.  Nothing that the two have to say to each other would be safe.
 */
static void
check_version(const char *version)
{
	if (strcmp(version, msg_version) == 0)
		return;
	log_errorx("this program is of %s, and who started it of %s: restart "
	    "the daemon", msg_version, version);
	exit(CHILD_OTHER_VERSION);
}

/* Who we are.  Everything after this message is read in confinement. */
int
child_parent_boot(struct ipc *ip, const union msg *m)
{
	const struct msg_boot	*mb = &m->boot;
	struct identity		 id = { mb->uid, mb->gid, mb->chroot };

	check_version(mb->version);
	if (mb->role != self->ch_role)
		return ipc_bad(ip, "role %u is not ours", mb->role);
	if (log_level_name(mb->log_level) == NULL)
		return ipc_bad(ip, "log level %u", mb->log_level);
	life = mb->life;
	strlcpy(child_session, mb->session, sizeof(child_session));
	log_init(role_name(self->ch_role), mb->log_level, mb->log_marks);

	if (self->ch_warm != NULL)
		self->ch_warm();
	sandbox_limit(self->ch_sandbox);
	sandbox_drop(&id);
	sandbox_enter(self->ch_sandbox);
	ip->ip_state = S_SETUP;
	return 0;
}

void
child_request_prefix(uint32_t instance, char out[REQUEST_PREFIX_LEN + 1])
{
	snprintf(out, REQUEST_PREFIX_LEN + 1, "%016llx-%u-",
	    (unsigned long long)life, instance);
}

int
child_parent_channel(struct ipc *ip, const union msg *m)
{
	int	 fd = ipc_take_fd(ip);

	if (fd == -1) {
		/* The lost end is closed: the peer sees it and gives up. */
		log_warnx("channel to %s: no free descriptor",
		    role_name(m->channel.peer));
		return 0;
	}
	if (self->ch_channel == NULL || self->ch_channel(&m->channel, fd) == -1)
		return ipc_bad(ip, "channel to role %u", m->channel.peer);
	return 0;
}

int
child_parent_log_level(struct ipc *ip, const union msg *m)
{
	if (log_level_name(m->log_level.level) == NULL)
		return ipc_bad(ip, "log level %u", m->log_level.level);
	log_set_level(m->log_level.level);
	return 0;
}

int
child_parent_conf_begin(struct ipc *ip, const union msg *m)
{
	if (m->generation.generation <= generation)
		return ipc_bad(ip, "generation %llu after %llu",
		    (unsigned long long)m->generation.generation,
		    (unsigned long long)generation);
	candidate = m->generation.generation;
	ip->ip_state = S_PREPARE;
	if (self->ch_begin != NULL)
		self->ch_begin(candidate);
	return 0;
}

static int
is_candidate(struct ipc *ip, const union msg *m)
{
	if (m->generation.generation == candidate)
		return 1;
	ipc_bad(ip, "generation %llu, %llu is being prepared",
	    (unsigned long long)m->generation.generation,
	    (unsigned long long)candidate);
	return 0;
}

int
child_parent_conf_end(struct ipc *ip, const union msg *m)
{
	char	 why[PATH_LEN] = "";

	if (!is_candidate(ip, m))
		return -1;
	if (self->ch_weigh != NULL && self->ch_weigh(why, sizeof(why)) == -1)
		ipc_send(ip, -1, CONF_NAK, conf_nak, .generation = candidate,
		    .why = why);
	else
		ipc_send(ip, -1, CONF_ACK, generation, candidate);
	return 0;
}

/* For a slice of the configuration, without which nothing can go on. */
void *
child_alloc(size_t size)
{
	void	*p;

	if ((p = calloc(1, size)) == NULL)
		fatal("configuration");
	return p;
}

/* Why ch_weigh refuses a slice; -1. */
int
child_refuse(char *why, size_t len, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return -1;
}

int
child_parent_conf_commit(struct ipc *ip, const union msg *m)
{
	if (!is_candidate(ip, m))
		return -1;
	generation = candidate;
	ip->ip_state = S_RUN;
	if (self->ch_commit != NULL)
		self->ch_commit();
	ipc_send(ip, -1, CONF_DONE, generation, generation);
	log_debug("generation %llu", (unsigned long long)generation);
	return 0;
}

int
child_parent_conf_abort(struct ipc *ip, const union msg *m)
{
	if (!is_candidate(ip, m))
		return -1;
	ip->ip_state = generation == 0 ? S_SETUP : S_RUN;
	if (self->ch_abort != NULL)
		self->ch_abort();
	return 0;
}

static void
child_parent_gone(struct ipc *ip, const char *why)
{
	(void)ip;
	if (why != NULL)
		fatalx("bad message from parent: %s", why);
	log_debug("parent has closed");
	if (self->ch_stop != NULL)
		self->ch_stop();
	exit(0);
}

static void
child_peer_gone(struct ipc *ip, const char *why)
{
	if (why != NULL)
		fatalx("bad message from %s: %s", ip->ip_name, why);
	/* The peer has died, or the daemon ends: the parent knows. */
	log_debug("%s has closed", ip->ip_name);
	exit(0);
}

struct ipc *
child_peer(enum role peer, int fd, const ipc_handler *handlers)
{
	struct ipc	*ip;

	ip = ipc_new(child_base, fd, self->ch_role, peer, role_name(peer),
	    handlers);
	ip->ip_gone = child_peer_gone;
	return ip;
}

void
child_engine_bad(const struct ipc *ip, const char *why)
{
	ipc_send(child_parent, -1, ENGINE_BAD, engine_bad,
	    .instance = ip->ip_instance, .why = why);
}

static void
child_engine_gone(struct ipc *ip, const char *why)
{
	if (why != NULL)
		child_engine_bad(ip, why);
	ipc_free(ip);
}

struct ipc *
child_engine(const struct msg_channel *mc, int fd, const ipc_handler *handlers)
{
	struct ipc	*ip;

	ip = ipc_new(child_base, fd, self->ch_role, ROLE_ENGINE, mc->session,
	    handlers);
	ip->ip_instance = mc->instance;
	ip->ip_gone = child_engine_gone;
	return ip;
}

/* The parent's orders come by the channel, a terminal's signals do not. */
static void
ignore_signals(void)
{
	static const int	 sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE,
	    SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU };
	size_t			 i;

	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		if (signal(sigs[i], SIG_IGN) == SIG_ERR)
			fatal("signal %d", sigs[i]);
}

static void
log_event(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		log_warnx("libevent: %s", text);
	else
		log_debug("libevent: %s", text);
}

static struct event_base *
make_base(void)
{
	struct event_base	*base;

	event_set_log_callback(log_event);
	if ((base = event_base_new()) == NULL ||
	    event_base_priority_init(base, 2) == -1)
		fatalx("event_base_new");
	return base;
}

int
child_main(const struct child *ch, int argc, char *argv[])
{
	struct stat	 st;

	self = ch;
	log_init(role_name(ch->ch_role), LOG_LVL_INFO, 0);
	if (argc > 1 || fstat(CHILD_FD, &st) == -1 || !S_ISSOCK(st.st_mode))
		fatalx("%s is started by egressd, not by hand",
		    argc > 0 ? argv[0] : "it");
#ifdef __linux__
	if (close_range(CHILD_FD + 1, UINT_MAX, 0) == -1)
		fatal("close_range");
#else
	closefrom(CHILD_FD + 1);
#endif
	umask(077);
	ignore_signals();
	child_base = make_base();
	child_parent = ipc_new(child_base, CHILD_FD, ch->ch_role, ROLE_PARENT,
	    "parent", ch->ch_handlers);
	child_parent->ip_state = S_BOOT;
	child_parent->ip_gone = child_parent_gone;
	if (ipc_read_one(child_parent) == -1)
		fatalx("start: %s (this program is of %s)",
		    child_parent->ip_why, msg_version);
	event_base_dispatch(child_base);
	fatalx("event loop ended");
}
