/* SPDX-License-Identifier: ISC */


/*
 * The parent runs this: sockets for the dialer, which may connect them but
 * not make them, and the addresses of this machine, which it must not dial.
 * A dialer that asks for more than it takes must not fill our table of
 * descriptors: what it is owed waits, and has a bound.
 */

#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define OWED_MAX	1024		/* of one kind */
#define UNREAD_MAX	4096		/* bytes in the dialer's channel */
#define RETRY_MS	100

static const struct {
	int	 family;
	int	 type;
} kinds[SOCKET_KIND_MAX] = {
	[SOCKET_TCP4] = { AF_INET, SOCK_STREAM },
	[SOCKET_TCP6] = { AF_INET6, SOCK_STREAM },
	[SOCKET_UDP4] = { AF_INET, SOCK_DGRAM },
	[SOCKET_UDP6] = { AF_INET6, SOCK_DGRAM },
};

static unsigned int	 owed[SOCKET_KIND_MAX];
static struct event	 retry;
static bool		 is_short;	/* of descriptors, and has said so */

static int
socket_mark(int fd, uint32_t mark)
{
	return mark == 0 ? 0 : setsockopt(fd, SOL_SOCKET, SO_MARK, &mark,
	    sizeof(mark));
}

/* Whether sockets can have the mark that a configuration gives them. */
int
sockets_check(const struct config *conf, struct why *why)
{
	int	 fd, error = 0;

	if ((fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1)
		return why_set(why, "socket: %s", strerror(errno));
	if (socket_mark(fd, conf->cf_dial_mark) == -1)
		error = errno;
	close(fd);
	return error == 0 ? 0 : why_set(why, "dial mark %u: %s%s",
	    conf->cf_dial_mark, strerror(error), error != EPERM ? "" :
	    ": the daemon lacks the capability NET_ADMIN");
}

/*
 * A socket without the mark would be led back to the gate by the rules that
 * the mark is for: better none at all.
 */
static int
socket_make(enum socket_kind kind)
{
	int	 fd, on = 1;

	if ((fd = socket(kinds[kind].family, kinds[kind].type |
	    SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) == -1)
		return -1;
	if (socket_mark(fd, d.d_conf->cf_dial_mark) == -1)
		fatal("dial mark %u", d.d_conf->cf_dial_mark);
	/* Set here, so that the dialer needs no way to set options. */
	if (kinds[kind].type == SOCK_STREAM &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1)
		log_warn("TCP_NODELAY");
	return fd;
}

/* False if the rest must wait. */
static bool
give_kind(struct ipc *ip, enum socket_kind kind)
{
	int	 fd;

	for (; owed[kind] > 0; owed[kind]--) {
		if (imsgbuf_queuelen(&ip->ip_buf) > UNREAD_MAX)
			return false;
		if ((fd = socket_make(kind)) == -1) {
			/* Without that family here, none is owed. */
			if (errno == EAFNOSUPPORT) {
				owed[kind] = 0;
				return true;
			}
			if (!is_short)
				log_warn("a socket for the dialer");
			is_short = true;
			return false;
		}
		is_short = false;
		ipc_send(ip, fd, SOCKET, socket_kind, .kind = kind);
	}
	return true;
}

static void	 sockets_retry(evutil_socket_t, short, void *);

static void
sockets_give(struct ipc *ip)
{
	static const struct timeval	 tv = { 0, RETRY_MS * 1000 };
	enum socket_kind		 kind;
	bool				 done = true;

	for (kind = 0; kind < SOCKET_KIND_MAX; kind++)
		done &= give_kind(ip, kind);
	if (done)
		return;
	if (!event_initialized(&retry))
		event_assign(&retry, d.d_base, -1, 0, sockets_retry, NULL);
	event_add(&retry, &tv);
}

static void
sockets_retry(evutil_socket_t fd, short what, void *arg)
{
	struct proc	*dialer = proc_find(ROLE_DIALER);

	(void)fd, (void)what, (void)arg;
	if (dialer != NULL && dialer->pr_ipc != NULL)
		sockets_give(dialer->pr_ipc);
}

int
parent_dialer_socket_ask(struct ipc *ip, const union msg *m)
{
	uint8_t	 kind = m->socket_kind.kind;

	if (kind >= SOCKET_KIND_MAX || d.d_conf == NULL)
		return ipc_bad(ip, "kind %u", kind);
	if (++owed[kind] > OWED_MAX)
		return ipc_bad(ip, "more than %u sockets", OWED_MAX);
	if (!event_initialized(&retry) ||
	    !event_pending(&retry, EV_TIMEOUT, NULL))
		sockets_give(ip);
	return 0;
}

/*
 * The addresses that this machine has and that a rule or a global class would
 * otherwise open; returns how many.
 */
size_t
addresses_own(struct addr *own, size_t max)
{
	struct ifaddrs	*list, *ifa;
	socklen_t	 len;
	size_t		 n = 0;

	if (getifaddrs(&list) == -1) {
		log_warn("addresses of this machine");
		return 0;
	}
	for (ifa = list; ifa != NULL && n < max; ifa = ifa->ifa_next) {
		if (ifa->ifa_addr == NULL)
			continue;
		len = ifa->ifa_addr->sa_family == AF_INET6 ?
		    sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
		if (addr_from_sockaddr(ifa->ifa_addr, len, &own[n],
		    NULL) == -1)
			continue;
		if (addr_classify(&own[n]) == ADDR_GLOBAL ||
		    addr_class_openable(addr_classify(&own[n])))
			n++;
	}
	if (ifa != NULL)
		log_warnx("of this machine's addresses the dialer knows only "
		    "the first %zu", max);
	freeifaddrs(list);
	return n;
}
