/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: one attempt to connect to one vetted address.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>

#include "dialer.h"
#include "log.h"

static int	attempt_connect(struct attempt *);

void
attempt_free(struct attempt *at)
{
	TAILQ_REMOVE(&at->at_dial->di_attempts, at, at_entry);
	at->at_dial->di_engine->en_nattempts--;
	stock_unwait(&at->at_wait);
	if (at->at_fd != -1) {
		event_del(&at->at_event);
		stock_close(at->at_fd);
	}
	free(at);
}

static void
attempt_ready(evutil_socket_t fd, short what, void *arg)
{
	struct attempt	*at = arg;
	socklen_t	 len = sizeof(int);
	int		 error;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error != 0)
		dial_attempt_failed(at->at_dial, at, error);
	else
		dial_connected(at->at_dial, at);
}

/* A socket may have come: try again. */
static void
attempt_again(void *arg)
{
	struct attempt	*at = arg;
	int		 error;

	if ((error = attempt_connect(at)) != 0)
		dial_attempt_failed(at->at_dial, at, error);
}

/*
 * 0: under way, also when it has connected at once, so that nobody is called
 * back from here; else why not.
 */
static int
attempt_connect(struct attempt *at)
{
	enum socket_kind	 kind = SOCKET_TCP4;
	struct sockaddr_storage	 ss;
	socklen_t		 len;

	if (at->at_addr.ad_af == AF_INET6)
		kind = SOCKET_TCP6;
	if (stock_absent(kind))
		return EAFNOSUPPORT;
	if ((at->at_fd = stock_take(kind)) == -1) {
		stock_wait(&at->at_wait, kind);
		return 0;
	}
	event_assign(&at->at_event, child_base, at->at_fd, EV_WRITE,
	    attempt_ready, at);
	len = addr_to_sockaddr(&at->at_addr, at->at_dial->di_port, &ss);
	if (connect(at->at_fd, (struct sockaddr *)&ss, len) == -1 &&
	    errno != EINPROGRESS)
		return errno;
	if (event_add(&at->at_event, NULL) == -1)
		fatalx("%s: event_add", __func__);
	return 0;
}

/* Returns what attempt_connect() does. */
int
attempt_start(struct dial *di, const struct addr *ad)
{
	struct attempt	*at;
	int		 error;

	if ((at = calloc(1, sizeof(*at))) == NULL)
		fatal("%s", __func__);
	at->at_dial = di;
	at->at_addr = *ad;
	at->at_fd = -1;
	at->at_wait.sw_again = attempt_again;
	at->at_wait.sw_arg = at;
	TAILQ_INSERT_TAIL(&di->di_attempts, at, at_entry);
	di->di_engine->en_nattempts++;
	if ((error = attempt_connect(at)) != 0)
		attempt_free(at);
	return error;
}
