/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: the sockets of fixed sessions, and those on which the
 * kernel tells them what its rules have refused.  They are bound when a
 * configuration is weighed, so that an address in use refuses it, and kept
 * here, so that an engine that starts again finds them.
 */

#include <sys/socket.h>

#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "netlink.h"
#include "parent.h"

#define LISTEN_BACKLOG	1024
#define LOG_TRIES	40
#define LOG_PAUSE_MS	50

struct bound {
	TAILQ_ENTRY(bound)	 bo_entry;
	char			 bo_session[NAME_LEN + 1];
	enum listen_kind	 bo_kind;
	struct conf_endpoint	 bo_where;
	int			 bo_fd;
};

static const struct bound *
bound_find(const struct bounds *list, const struct bound *bo)
{
	const struct bound	*old;

	if (list == NULL)
		return NULL;
	TAILQ_FOREACH(old, list, bo_entry)
		if (old->bo_kind == bo->bo_kind &&
		    old->bo_where.ep_port == bo->bo_where.ep_port &&
		    addr_cmp(&old->bo_where.ep_addr,
		    &bo->bo_where.ep_addr) == 0)
			return old;
	return NULL;
}

/*
 * The group of a daemon that was killed a moment ago may not be free yet: the
 * kernel collects descriptors that were on their way between its processes.
 * So a start, which nobody is served before, waits for it.
 */
static int
log_open(uint16_t group)
{
	static const struct timespec	 pause = { 0, LOG_PAUSE_MS * 1000000L };
	int				 fd, tries = 0;

	while ((fd = netlink_log(group)) == -1 &&
	    (errno == EPERM || errno == EBUSY) && !needs_net_admin() &&
	    d.d_generation == 0 && tries++ < LOG_TRIES)
		nanosleep(&pause, NULL);
	return fd;
}

static int
bound_make(struct bound *bo)
{
	struct sockaddr_storage	 ss;
	socklen_t		 len;
	int			 type, on = 1;

	if (bo->bo_kind == LISTEN_NFLOG) {
		bo->bo_fd = log_open(bo->bo_where.ep_port);
		return bo->bo_fd == -1 ? -1 : 0;
	}
	type = bo->bo_kind == LISTEN_DNS_UDP ? SOCK_DGRAM : SOCK_STREAM;
	len = addr_to_sockaddr(&bo->bo_where.ep_addr, bo->bo_where.ep_port,
	    &ss);
	bo->bo_fd = socket(ss.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (bo->bo_fd == -1)
		return -1;
	/* On UDP that option would let the gated bind the same port. */
	if (type == SOCK_STREAM && setsockopt(bo->bo_fd, SOL_SOCKET,
	    SO_REUSEADDR, &on, sizeof(on)) == -1)
		return -1;
	if (ss.ss_family == AF_INET6 && setsockopt(bo->bo_fd, IPPROTO_IPV6,
	    IPV6_V6ONLY, &on, sizeof(on)) == -1)
		return -1;
	if (bind(bo->bo_fd, (struct sockaddr *)&ss, len) == -1)
		return -1;
	if (type == SOCK_STREAM)
		return listen(bo->bo_fd, LISTEN_BACKLOG);
	/* An answer comes from the address that was asked. */
	return ss.ss_family == AF_INET6 ?
	    setsockopt(bo->bo_fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on,
	    sizeof(on)) :
	    setsockopt(bo->bo_fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
}

/* An address, or a family, that this machine does not have. */
static bool
is_missing(const struct conf_endpoint *ep, int error)
{
	return ep->ep_optional && (error == EADDRNOTAVAIL ||
	    error == EAFNOSUPPORT);
}

static int
bound_fail(const struct bound *bo, const char *session, int error,
    struct why *why)
{
	const struct conf_endpoint	*ep = &bo->bo_where;
	char				 text[ADDRESS_LEN];

	if (bo->bo_kind == LISTEN_NFLOG)
		return why_set(why, "%s:%u: session \"%s\": refused group "
		    "%u: %s", ep->ep_pos.p_file, ep->ep_pos.p_line, session,
		    ep->ep_port, needs_net_admin() ?
		    "the daemon lacks the capability NET_ADMIN" :
		    error == EPERM || error == EBUSY ?
		    "another program has it" : strerror(error));
	return why_set(why, "%s:%u: session \"%s\": %s port %u: %s",
	    ep->ep_pos.p_file, ep->ep_pos.p_line, session,
	    addr_format(&ep->ep_addr, text, sizeof(text)), ep->ep_port,
	    strerror(error));
}

static int
bound_open(struct bounds *list, const char *session, enum listen_kind kind,
    const struct conf_endpoint *ep, const struct bounds *had, struct why *why)
{
	const struct bound	*old;
	struct bound		*bo;
	char			 text[ADDRESS_LEN];
	int			 error;

	if ((bo = calloc(1, sizeof(*bo))) == NULL)
		return why_set(why, "%s", strerror(errno));
	TAILQ_INSERT_TAIL(list, bo, bo_entry);
	strlcpy(bo->bo_session, session, sizeof(bo->bo_session));
	bo->bo_kind = kind;
	bo->bo_where = *ep;
	bo->bo_fd = -1;
	if ((old = bound_find(had, bo)) != NULL)
		bo->bo_fd = fcntl(old->bo_fd, F_DUPFD_CLOEXEC, 0);
	else if (bound_make(bo) == -1 && bo->bo_fd != -1) {
		error = errno;
		close(bo->bo_fd);
		bo->bo_fd = -1;
		errno = error;
	}
	if (bo->bo_fd != -1)
		return 0;
	if (!is_missing(ep, error = errno))
		return bound_fail(bo, session, error, why);
	if (kind != LISTEN_DNS_TCP)
		log_info("session %s: %s port %u is left out: %s", session,
		    addr_format(&ep->ep_addr, text, sizeof(text)),
		    ep->ep_port, strerror(error));
	TAILQ_REMOVE(list, bo, bo_entry);
	free(bo);
	return 0;
}

/* The socket for packets that rules of the kernel refuse. */
static int
bound_open_log(struct bounds *list, const struct conf_session *ss,
    const struct bounds *had, struct why *why)
{
	struct conf_endpoint	 group = { .ep_pos = ss->ss_pos,
	    .ep_port = (uint16_t)ss->ss_refused_group };

	return ss->ss_refused_group == 0 ? 0 : bound_open(list, ss->ss_name,
	    LISTEN_NFLOG, &group, had, why);
}

int
bounds_open(struct bounds *list, const struct config *conf,
    const struct bounds *had, struct why *why)
{
	const struct conf_session	*ss;
	const struct conf_endpoint	*ep;

	TAILQ_FOREACH(ss, &conf->cf_sessions, ss_entry) {
		if (bound_open_log(list, ss, had, why) == -1)
			return -1;
		TAILQ_FOREACH(ep, &ss->ss_listen, ep_entry)
			if (bound_open(list, ss->ss_name, LISTEN_TCP, ep, had,
			    why) == -1)
				return -1;
		TAILQ_FOREACH(ep, &ss->ss_dns, ep_entry)
			if (bound_open(list, ss->ss_name, LISTEN_DNS_UDP, ep,
			    had, why) == -1 ||
			    bound_open(list, ss->ss_name, LISTEN_DNS_TCP, ep,
			    had, why) == -1)
				return -1;
	}
	return 0;
}

/* The engine gets copies; the originals wait for its successor. */
int
bounds_send(const struct bounds *list, struct proc *pr)
{
	const struct bound	*bo;
	int			 fd;

	TAILQ_FOREACH(bo, list, bo_entry) {
		if (strcmp(bo->bo_session, pr->pr_session->se_name) != 0)
			continue;
		if ((fd = fcntl(bo->bo_fd, F_DUPFD_CLOEXEC, 0)) == -1)
			return -1;
		ipc_send(pr->pr_ipc, fd, CONF_LISTEN, conf_listen,
		    .kind = bo->bo_kind,
		    .transparent = bo->bo_where.ep_transparent);
	}
	return 0;
}

void
bounds_close(struct bounds *list)
{
	struct bound	*bo;

	while ((bo = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, bo, bo_entry);
		if (bo->bo_fd != -1)
			close(bo->bo_fd);
		free(bo);
	}
}
