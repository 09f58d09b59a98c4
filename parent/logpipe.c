/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this once it has no terminal.  A child writes its log to
 * standard error, which is then a pipe that ends here; its lines go to syslog
 * under the child's name.  A compromised child can write what it likes, so a
 * line is bounded, made visible and never says who wrote it: we do.  Until we
 * are ready somebody waits at standard error to hear why we are not.  With a
 * terminal it is so for programs of deciders, whose lines join our own.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>
#include <vis.h>

#include "parent.h"

struct logpipe {
	struct event	 lp_ev;
	char		 lp_name[SESSION_LEN + 16];
	char		 lp_line[LOG_LINE_MAX];
	size_t		 lp_len;
	unsigned int	 lp_left;	/* lines; 0: no limit, 1: no more */
	char		 lp_last[LOG_LINE_MAX];	/* what was said last */
};

static void
parent_sink(enum log_level level, const char *text)
{
	syslog(log_level_priority(level), "parent: %s", text);
	if (!d.d_ready && level <= LOG_LVL_WARN)
		dprintf(STDERR_FILENO, "egressd: %s\n", text);
}

void
log_to_syslog(void)
{
	openlog("egressd", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	log_set_sink(parent_sink);
}

/* "<4>dialer: text", as log.c writes it; anything else is an error. */
static void
logpipe_line(struct logpipe *lp)
{
	char		 safe[LOG_LINE_MAX * 4 + 1];
	const char	*text = lp->lp_line;
	int		 priority = LOG_ERR;

	lp->lp_line[lp->lp_len] = '\0';
	if (text[0] == '<' && text[1] >= '3' && text[1] <= '7' &&
	    text[2] == '>') {
		priority = text[1] - '0';
		text += 3;
	}
	lp->lp_len = 0;
	strlcpy(lp->lp_last, text, sizeof(lp->lp_last));
	if (lp->lp_left == 1)
		return;
	if (lp->lp_left > 0 && --lp->lp_left == 1)
		text = "(and more, which is not logged)";
	if (d.d_debug) {
		log_info("[%s] %s", lp->lp_name, text);
		return;
	}
	strvisx(safe, text, strlen(text), VIS_NL | VIS_TAB | VIS_CSTYLE |
	    VIS_NOSLASH);
	syslog(priority, "[%s] %s", lp->lp_name, safe);
	if (!d.d_ready && priority <= LOG_WARNING)
		dprintf(STDERR_FILENO, "egressd: [%s] %s\n", lp->lp_name,
		    safe);
}

static void
logpipe_read(evutil_socket_t fd, short what, void *arg)
{
	struct logpipe	*lp = arg;
	char		 buf[4096];
	ssize_t		 i, n;

	(void)what;
	if ((n = read(fd, buf, sizeof(buf))) == -1) {
		if (errno != EAGAIN && errno != EINTR)
			event_del(&lp->lp_ev);
		return;
	}
	if (n == 0)
		event_del(&lp->lp_ev);
	for (i = 0; i < n; i++) {
		if (buf[i] != '\n')
			lp->lp_line[lp->lp_len++] = buf[i];
		if (buf[i] == '\n' || lp->lp_len == sizeof(lp->lp_line) - 1)
			logpipe_line(lp);
	}
}

/* NULL if there is no descriptor for it; *child gets the writing end. */
struct logpipe *
logpipe_new(struct event_base *base, const char *name, int *child)
{
	struct logpipe	*lp;
	int		 fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return NULL;
	if ((lp = calloc(1, sizeof(*lp))) == NULL) {
		close(fds[0]);
		close(fds[1]);
		return NULL;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	strlcpy(lp->lp_name, name, sizeof(lp->lp_name));
	event_assign(&lp->lp_ev, base, fds[0], EV_READ | EV_PERSIST,
	    logpipe_read, lp);
	event_priority_set(&lp->lp_ev, 1);
	event_add(&lp->lp_ev, NULL);
	*child = fds[1];
	return lp;
}

/* Of a writer that may be anybody's: so many lines, and no more. */
void
logpipe_limit(struct logpipe *lp, unsigned int lines)
{
	lp->lp_left = lines + 1;
}

/* The last line is for the caller; "" if there was none. */
void
logpipe_finish(struct logpipe *lp, char *last, size_t size)
{
	/* What the child said last is still in the pipe. */
	logpipe_read(event_get_fd(&lp->lp_ev), EV_READ, lp);
	if (lp->lp_len > 0)
		logpipe_line(lp);
	if (last != NULL)
		strlcpy(last, lp->lp_last, size);
	event_del(&lp->lp_ev);
	close(event_get_fd(&lp->lp_ev));
	free(lp);
}

void
logpipe_free(struct logpipe *lp)
{
	if (lp != NULL)
		logpipe_finish(lp, NULL, 0);
}
