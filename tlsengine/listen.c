/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the sockets on which the sandbox arrives.  They were
 * bound by the parent or, in a local sandbox, by box, which is not trusted: a
 * descriptor that is no listening socket costs its session and nothing else.
 */

#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <linux/netlink.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dns/names.h"
#include "flow/conn.h"
#include "log.h"
#include "tlsengine.h"

#define ACCEPT_BATCH	32	/* connections per turn */
#define ACCEPT_PAUSE_MS	100	/* when one more cannot be served */

#ifndef SO_ORIGINAL_DST
#define SO_ORIGINAL_DST	80	/* where a redirected client wanted to go */
#endif

struct listener {
	TAILQ_ENTRY(listener)	 li_entry;
	int			 li_fd;
	enum listen_kind	 li_kind;
	bool			 li_transparent;
	struct event		 li_ev;
	struct event		 li_pause;
};
TAILQ_HEAD(listeners, listener);

static struct listeners	 running = TAILQ_HEAD_INITIALIZER(running);
static struct listeners	 candidate = TAILQ_HEAD_INITIALIZER(candidate);
static struct listeners	 boxed = TAILQ_HEAD_INITIALIZER(boxed);
static bool		 serves;

/*
 * The address and port that the client dialled.  A redirect keeps it for us;
 * where every address is local there is no redirect and it is ours.  0 if it
 * is our own listening socket, reached directly: there is nothing behind it.
 */
static int
destination(const struct listener *li, int fd, struct addr *dest,
    uint16_t *port)
{
	struct sockaddr_storage	 ss, own;
	socklen_t		 len = sizeof(ss), ownlen = sizeof(own);
	int			 level;

	if (getsockname(fd, (struct sockaddr *)&own, &ownlen) == -1)
		return -1;
	level = own.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
	if (!li->li_transparent || getsockopt(fd, level, SO_ORIGINAL_DST, &ss,
	    &len) == -1) {
		ss = own;
		len = ownlen;
	}
	if (addr_from_sockaddr((struct sockaddr *)&ss, len, dest, port) == -1)
		return -1;
	return 0;
}

static void
accept_one(struct listener *li, int fd)
{
	struct addr	 dest;
	uint16_t	 port;
	int		 on = 1;

	if (li->li_kind == LISTEN_DNS_TCP) {
		dns_accept(fd);
		return;
	}
	if (destination(li, fd, &dest, &port) == -1) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn_new(fd, &dest, port, li->li_transparent);
}

static void
listener_resume(evutil_socket_t fd, short what, void *arg)
{
	struct listener	*li = arg;

	(void)fd, (void)what;
	event_add(&li->li_ev, NULL);
}

static void
listener_accept(evutil_socket_t fd, short what, void *arg)
{
	struct timeval	 tv = { 0, ACCEPT_PAUSE_MS * 1000 };
	struct listener	*li = arg;
	int		 i, s;

	(void)what;
	for (i = 0; i < ACCEPT_BATCH; i++) {
		errno = ENOBUFS;
		if (report_crowded())
			break;
		s = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (s == -1)
			break;
		accept_one(li, s);
	}
	if (i < ACCEPT_BATCH && (errno == EMFILE || errno == ENFILE ||
	    errno == ENOMEM || errno == ENOBUFS)) {
		event_del(&li->li_ev);
		event_add(&li->li_pause, &tv);
	}
}

static void
listeners_clear(struct listeners *list)
{
	struct listener	*li;

	while ((li = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, li, li_entry);
		event_del(&li->li_ev);
		event_del(&li->li_pause);
		close(li->li_fd);
		free(li);
	}
}

void
listen_begin(void)
{
	listeners_clear(&candidate);
}

/*
 * Whether a descriptor is what it is said to be.  Another kind of socket could
 * bring descriptors along, or be one that no byte of the sandbox comes by.
 */
static bool
is_of_kind(int fd, enum listen_kind kind)
{
	struct sockaddr_storage	 ss;
	socklen_t		 len = sizeof(ss), intlen = sizeof(int);
	int			 type, listens, protocol;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) == -1 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &intlen) == -1 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens,
	    &intlen) == -1 || getsockopt(fd, SOL_SOCKET, SO_PROTOCOL,
	    &protocol, &intlen) == -1)
		return false;
	if (kind == LISTEN_NFLOG)
		return ss.ss_family == AF_NETLINK &&
		    protocol == NETLINK_NETFILTER;
	if (ss.ss_family != AF_INET && ss.ss_family != AF_INET6)
		return false;
	return kind == LISTEN_DNS_UDP ? type == SOCK_DGRAM :
	    type == SOCK_STREAM && listens;
}

static struct listener *
listener_new(int fd, enum listen_kind kind, bool transparent)
{
	static const event_callback_fn	 readers[LISTEN_KIND_MAX] = {
		[LISTEN_TCP] = listener_accept,
		[LISTEN_DNS_UDP] = dns_read,
		[LISTEN_DNS_TCP] = listener_accept,
		[LISTEN_NFLOG] = nflog_read,
	};
	struct listener			*li;

	if (!is_of_kind(fd, kind))
		fatalx("session %s: a listener is of another kind than %u",
		    child_session, kind);
	if (kind == LISTEN_DNS_UDP)
		dns_prepare(fd);
	if ((li = calloc(1, sizeof(*li))) == NULL)
		fatal("%s", __func__);
	li->li_fd = fd;
	li->li_kind = kind;
	li->li_transparent = transparent;
	event_assign(&li->li_ev, child_base, fd, EV_READ | EV_PERSIST,
	    readers[kind], li);
	event_assign(&li->li_pause, child_base, -1, 0, listener_resume, li);
	event_priority_set(&li->li_ev, 1);
	event_priority_set(&li->li_pause, 1);
	return li;
}

static bool
has_dns(const struct listeners *list)
{
	const struct listener	*li;

	TAILQ_FOREACH(li, list, li_entry)
		if (li->li_kind == LISTEN_DNS_UDP ||
		    li->li_kind == LISTEN_DNS_TCP)
			return true;
	return false;
}

int
tlsengine_parent_conf_listen(struct ipc *ip, const union msg *m)
{
	struct listener	*li;
	int		 fd = ipc_take_fd(ip);

	if (fd == -1)
		fatalx("no free descriptor for a listener");
	if (m->conf_listen.kind >= LISTEN_KIND_MAX) {
		close(fd);
		return ipc_bad(ip, "listener of kind %u", m->conf_listen.kind);
	}
	li = listener_new(fd, m->conf_listen.kind,
	    m->conf_listen.transparent != 0);
	TAILQ_INSERT_TAIL(&candidate, li, li_entry);
	return 0;
}

bool
listen_serves(void)
{
	return serves;
}

/* From here on; who has connected before waits in the kernel's queue. */
void
listen_serve(void)
{
	struct listener	*li;

	serves = true;
	TAILQ_FOREACH(li, &running, li_entry)
		event_add(&li->li_ev, NULL);
}

void
listen_commit(void)
{
	struct listener	*li;

	listeners_clear(&running);
	TAILQ_CONCAT(&running, &candidate, li_entry);
	TAILQ_FOREACH(li, &running, li_entry)
		if (serves)
			event_add(&li->li_ev, NULL);
	names_enable(has_dns(&running) || has_dns(&boxed));
}

/* Listeners from box, which come while the engine runs. */
void
listen_add(enum listen_kind kind, int fd)
{
	struct listener	*li = listener_new(fd, kind, true);

	TAILQ_INSERT_TAIL(&boxed, li, li_entry);
	event_add(&li->li_ev, NULL);
	names_enable(has_dns(&running) || has_dns(&boxed));
}
