/* SPDX-License-Identifier: ISC */

/*
 * What the tests of common/ipc.c share: ends of channels, handlers that note
 * what they see, and turns of the loop.
 */

#ifndef IPC_PAIR_H
#define IPC_PAIR_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "ipc.h"
#include "test.h"

#define PASSES		2000	/* of the loop, until nothing is left */
#define FLOOD		2500	/* messages that fill a good part of a buffer */
#define SEEN_MAX	(4 * FLOOD)

static struct event_base	*base;

/* What the handlers saw, in order. */
static struct {
	struct ipc	*ip;
	uint64_t	 number;
	int		 fd;
} seen[SEEN_MAX];
static size_t		 nseen;
static struct ipc	*gone;
static char		 gone_why[256];
static int		 ngone, ndrained;
static struct ipc	*live[4];		/* what stop() frees */
static void		(*act)(struct ipc *);	/* within the next handler */

static inline void
note(struct ipc *ip, uint64_t number, int fd)
{
	void	(*now)(struct ipc *) = act;

	if (nseen < SEEN_MAX) {
		seen[nseen].ip = ip;
		seen[nseen].number = number;
		seen[nseen++].fd = fd;
	}
	act = NULL;
	if (now != NULL)
		now(ip);
}

static inline int
on_number(struct ipc *ip, const union msg *m)
{
	note(ip, m->generation.generation, -1);
	return 0;
}

static inline int
on_level(struct ipc *ip, const union msg *m)
{
	if (m->log_level.level == 99)
		return ipc_bad(ip, "level %u", m->log_level.level);
	note(ip, m->log_level.level, -1);
	return 0;
}

static inline int
on_follow(struct ipc *ip, const union msg *m)
{
	/* One in two takes its descriptor. */
	note(ip, m->follow.kinds, m->follow.kinds % 2 ? ipc_take_fd(ip) : -1);
	return 0;
}

static inline int
on_record(struct ipc *ip, const union msg *m)
{
	note(ip, m->record_session.at, -1);
	return 0;
}

static const ipc_handler handlers[MSG_MAX] = {
	[MSG_ENGINE_HELLO] = on_number,
	[MSG_LOG_LEVEL] = on_level,
	[MSG_FOLLOW] = on_follow,
	[MSG_RECORD_SESSION] = on_record,
};

static inline void
end(struct ipc *ip)
{
	size_t	 i;

	for (i = 0; i < 4; i++)
		if (live[i] == ip)
			live[i] = NULL;
	ipc_free(ip);
}

/* The first to go is the one of interest; the other end follows it. */
static inline void
on_gone(struct ipc *ip, const char *why)
{
	if (ngone++ == 0) {
		gone = ip;
		strlcpy(gone_why, why == NULL ? "" : why, sizeof(gone_why));
	}
	end(ip);
}

static inline void
on_drained(struct ipc *ip)
{
	(void)ip;
	ndrained++;
}

static inline void
stop(void)
{
	size_t	 i;

	for (i = 0; i < 4; i++) {
		ipc_free(live[i]);
		live[i] = NULL;
	}
}

static inline void
start(void)
{
	if (base == NULL) {
		CHECK((base = event_base_new()) != NULL);
		CHECK_INT(event_base_priority_init(base, 2), 0);
	}
	stop();
	nseen = 0;
	gone = NULL;
	gone_why[0] = '\0';
	ngone = ndrained = 0;
	act = NULL;
}

static inline struct ipc *
channel(int fd, enum role me, enum role peer, uint32_t state)
{
	struct ipc	*ip = ipc_new(base, fd, me, peer, "peer", handlers);
	size_t		 i;

	for (i = 0; live[i] != NULL; i++)
		continue;
	live[i] = ip;
	ip->ip_state = state;
	ip->ip_gone = on_gone;
	ip->ip_drained = on_drained;
	return ip;
}

static inline void
channels(enum role from, enum role to, uint32_t state, struct ipc *ips[2])
{
	int	 sv[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	ips[0] = channel(sv[0], from, to, state);
	ips[1] = channel(sv[1], to, from, state);
}

static inline void
settle(void)
{
	int	 i;

	for (i = 0; i < PASSES; i++)
		CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
}

static inline int
count_fds(void)
{
	int	 fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static inline int
new_file(ino_t *inode)
{
	struct stat	 st;
	int		 fds[2];

	CHECK_INT(pipe(fds), 0);
	close(fds[1]);
	CHECK_INT(fstat(fds[0], &st), 0);
	*inode = st.st_ino;
	return fds[0];
}

static inline void
flood(struct ipc *ip, int count)
{
	int	 i;

	for (i = 0; i < count; i++)
		ipc_send(ip, -1, ENGINE_HELLO, generation, i);
	CHECK_INT(ipc_flush(ip), 0);
}

#endif /* IPC_PAIR_H */
