/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this.  The file and its path come from the parent.
 *
 * Lines are collected and written when a turn of the event loop ends; after a
 * write the next one waits a little for company, for a file system takes large
 * pieces at half the price.  The file is a whole number of lines that verify,
 * also after an outage: what was half written is cut off, and a gap record
 * that follows the last line in the file says which numbers are missing.
 * Until the gap is written nothing else is.
 *
 * An empty file goes on from the line that the tip names; see tip.c.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "recorder.h"

#define LOST	"%s: records are lost until it can be written"

static struct {
	int		 au_fd;
	char		 au_path[PATH_LEN + 1];
	struct link	 au_end;	/* the last line in the file */
	off_t		 au_torn;	/* bytes of half a line after it */
	off_t		 au_size;	/* what it had when we last wrote */
	int		 au_broken;	/* a gap is due before anything else */
	int		 au_skipped;	/* so it is, but there is room for it */
	int		 au_told;	/* that there was none, a moment ago */
	struct gap	 au_gap;
	int		 au_unsynced;
	int		 au_due;	/* a flush, soon */
	uint64_t	 au_flushed;	/* the last one, ms */
	size_t		 au_len;
	char		 au_buf[AUDIT_BATCH + LINE_LEN_MAX];
} audit;

/* Of the generation that is being prepared. */
enum change { CHANGE_NONE, CHANGE_KEEP, CHANGE_NEW };

static struct {
	enum change	 nx_change;
	int		 nx_fd;
	char		 nx_path[PATH_LEN + 1];
} next;

static struct event	*turn, *tick;
static void		(*audit_changed)(int broken);

static void	 audit_on_turn(evutil_socket_t, short, void *);
static void	 audit_on_tick(evutil_socket_t, short, void *);
static void	 audit_on_room(void);

void
audit_init(struct event_base *base, void (*changed)(int))
{
	/* A limit of file size is an outage like a full disk. */
	if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		fatal("signal SIGXFSZ");
	audit_changed = changed;
	audit.au_fd = next.nx_fd = -1;
	room_init(base, audit_on_room);
	if ((turn = event_new(base, -1, 0, audit_on_turn, NULL)) == NULL ||
	    (tick = event_new(base, -1, 0, audit_on_tick, NULL)) == NULL)
		fatalx("audit file: event_new");
}

int
audit_listens(void)
{
	return audit.au_fd != -1 && !audit.au_broken && !audit.au_skipped;
}

/* 1 while the file cannot be written and records are lost. */
int
audit_full(void)
{
	return audit.au_fd != -1 && (audit.au_broken || audit.au_skipped);
}

int
audit_fd(void)
{
	return audit.au_fd;
}

/* Where the file ended when we last wrote. */
off_t
audit_end(void)
{
	return audit.au_fd != -1 ? audit.au_size : 0;
}

const char *
audit_path(void)
{
	return audit.au_fd != -1 ? audit.au_path : "";
}

static void
after(struct event *ev, time_t s)
{
	struct timeval	 tv = { .tv_sec = s };

	if (!event_pending(ev, EV_TIMEOUT, NULL))
		event_add(ev, &tv);
}

/* How many bytes went; fewer than len only with an error in errno. */
static size_t
write_all(const char *buf, size_t len)
{
	size_t	 done = 0;
	ssize_t	 n;

	while (done < len) {
		n = write(audit.au_fd, buf + done, len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0) {
			errno = ENOSPC;
			break;
		} else if (errno != EINTR)
			break;
	}
	if (done > 0) {
		audit.au_unsynced = 1;
		after(tick, AUDIT_TICK_S);
	}
	return done;
}

/* A torn line can only be our own, at the very end: cut it. */
static int
cut_torn(void)
{
	off_t	 size;

	if (audit.au_torn == 0)
		return 0;
	if ((size = lseek(audit.au_fd, 0, SEEK_END)) == -1 ||
	    ftruncate(audit.au_fd, size > audit.au_torn ?
	    size - audit.au_torn : 0) == -1)
		return -1;
	audit.au_torn = 0;
	room_open(audit.au_fd);
	return 0;
}

/* Tell the owner that records are being lost, or no longer. */
static void
audit_tell(int broken)
{
	audit.au_broken = broken;
	if (audit_changed != NULL)
		audit_changed(broken);
}

static void
audit_break(const char *reason)
{
	audit_tell(1);
	memset(&audit.au_gap, 0, sizeof(audit.au_gap));
	audit.au_gap.ga_reason = reason;
}

/* Note the size that the file should have, and write the tip. */
static void
audit_ended(void)
{
	audit.au_size = lseek(audit.au_fd, 0, SEEK_END);
	tip_write(&audit.au_end);
	follower_wake();
}

/*
 * Begin a spool anew, all of which is acknowledged; -1 if not now.  The tip has
 * to name the line that the next one follows.
 */
int
audit_empty(void)
{
	bool	 was_short = room_short();

	if (audit.au_len > 0 || audit.au_torn > 0 ||
	    !tip_names(&audit.au_end) ||
	    lseek(audit.au_fd, 0, SEEK_END) != audit.au_size ||
	    ftruncate(audit.au_fd, 0) == -1)
		return -1;
	audit.au_size = 0;
	room_open(audit.au_fd);
	if (was_short)
		room_wake();
	return 0;
}

/*
 * The line that comes next has no room beside what is promised to others,
 * whose lines will follow all the same, after a gap.
 */
void
audit_skip(void)
{
	audit_flush();
	if (audit.au_broken)
		return;
	if (!audit.au_told)
		log_warnx(LOST, audit.au_path);
	audit.au_told = 1;
	audit.au_skipped = 1;
	memset(&audit.au_gap, 0, sizeof(audit.au_gap));
	audit.au_gap.ga_reason = REASON_AUDIT_FULL;
}

/*
 * Only done bytes of what was collected are in the file.  Whole lines among
 * them count; the numbers of collected lines have no holes.
 */
static void
audit_fail(size_t done)
{
	const char	*line = audit.au_buf, *nl, *stop = line + done;

	log_warn(LOST, audit.au_path);
	while ((nl = memchr(line, '\n', (size_t)(stop - line))) != NULL) {
		audit.au_end.li_seq++;
		chain_hash(&audit.au_end, line, (size_t)(nl - line));
		line = nl + 1;
	}
	audit.au_torn = stop - line;
	audit.au_len = 0;
	audit_break(REASON_AUDIT_FULL);
	room_open(audit.au_fd);
	/* Readers should not see a torn line; if this fails, a tick retries. */
	cut_torn();
	audit_ended();
	pods_written(0);
	after(tick, AUDIT_TICK_S);
}

static void
audit_write(void)
{
	size_t	 done;

	audit.au_flushed = clock_ms();
	if ((done = write_all(audit.au_buf, audit.au_len)) < audit.au_len) {
		audit_fail(done);
		return;
	}
	audit.au_len = 0;
	audit.au_end = *chain_tip();
	audit_ended();
	pods_written(1);
}

static void
flush_soon(void)
{
	struct timeval	 tv = { .tv_usec = AUDIT_PACE_MS * 1000 };

	audit.au_due = 1;
	if (clock_ms() - audit.au_flushed >= AUDIT_PACE_MS)
		event_active(turn, EV_TIMEOUT, 1);
	else if (event_add(turn, &tv) == -1)
		fatalx("audit file: event_add");
}

void
audit_append(const struct line *ln)
{
	if (!audit_listens())
		return;
	room_use(ln->ln_len + 1);
	audit.au_len += ln->ln_len + 1;
	if (audit.au_len >= AUDIT_BATCH)
		audit_flush();
	else if (!audit.au_due)
		flush_soon();
}

/* Where a line may be written; if it is appended it already is in place. */
char *
audit_room(void)
{
	return audit.au_buf + audit.au_len;
}

/* Cut what is torn, write the gap, and the file is whole again; or -1. */
static int
audit_mend(void)
{
	struct line	 ln;
	size_t		 done;

	if (cut_torn() == -1)
		return -1;
	audit.au_gap.ga_end = audit.au_end;
	chain_gap(&audit.au_gap, &ln);
	done = write_all(ln.ln_text, ln.ln_len + 1);
	if (done < ln.ln_len + 1) {
		audit.au_torn = (off_t)done;
		cut_torn();
		return -1;
	}
	room_use(ln.ln_len + 1);
	if (!audit.au_told)
		log_info("%s: goes on with record %llu after a gap: %s",
		    audit.au_path, (unsigned long long)ln.ln_link.li_seq,
		    audit.au_gap.ga_reason);
	audit.au_skipped = 0;
	if (audit.au_broken)
		audit_tell(0);
	audit.au_end = ln.ln_link;
	audit_ended();
	chain_join(&ln.ln_link);
	follower_send(&ln);
	printer_send(&ln);
	return 0;
}

/*
 * Another program has made the file shorter.  What was collected follows what
 * we wrote last, which may be in a copy: it is written unless another line
 * would stand before it.  A gap says what happened.
 */
static void
audit_was_cut(off_t bytes)
{
	struct tail	 ta = { .ta_empty = 1 };
	const char	*why;

	log_warnx("%s: another program has cut off %lld bytes", audit.au_path,
	    (long long)bytes);
	if (tail_read(audit.au_fd, spool_is(), &ta, &why) == -1)
		log_warnx("%s: %s", audit.au_path, why);
	room_open(audit.au_fd);
	if (ta.ta_torn == 0 && (ta.ta_empty ||
	    chain_same(&ta.ta_end, &audit.au_end))) {
		room_use(audit.au_len);
		audit_write();
	} else {
		audit.au_len = 0;
		audit.au_torn = ta.ta_torn;
		if (!ta.ta_empty)
			audit.au_end = ta.ta_end;
		pods_written(0);
	}
	if (!audit.au_broken)
		audit_break(REASON_FILE_CUT);
	audit.au_gap.ga_lost_bytes = (uint64_t)bytes;
	spool_cut();
	if (audit_mend() == -1)
		after(tick, AUDIT_TICK_S);
}

void
audit_flush(void)
{
	off_t	 size;

	if (audit.au_len == 0)
		return;
	size = lseek(audit.au_fd, 0, SEEK_END);
	if (size == -1 || size >= audit.au_size)
		audit_write();
	else
		audit_was_cut(audit.au_size - size);
}

/* A line that has room for itself has room for the gap before it. */
void
audit_catch_up(void)
{
	if (audit.au_skipped && audit_mend() == -1)
		audit_break(REASON_AUDIT_FULL);
}

/* The disk may have room again: write what waits. */
static void
audit_on_room(void)
{
	if (room_has(ROOM_GAP, 0)) {
		audit.au_told = 0;
		audit_catch_up();
	}
	if (audit_changed != NULL)
		audit_changed(audit.au_broken);
}

static void
audit_sync(void)
{
	if (!audit.au_unsynced)
		return;
	audit.au_unsynced = 0;
	/* EINVAL: a device, which has nothing to sync. */
	if (fdatasync(audit.au_fd) == -1 && errno != EINVAL)
		log_warn("%s: the last records may not be on disk",
		    audit.au_path);
	tip_sync();
}

static void
audit_on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	audit.au_due = 0;
	audit_flush();
}

static void
audit_on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (audit.au_broken)
		audit_mend();
	audit_sync();
	if (audit.au_broken)
		after(tick, AUDIT_TICK_S);
}

/* Before the process ends, and before the file is given up. */
void
audit_finish(void)
{
	audit_flush();
	if ((audit.au_broken || audit.au_skipped) && audit_mend() == -1)
		log_warnx("%s: ends without a record of what it lacks",
		    audit.au_path);
	audit_sync();
}

static void
audit_close(void)
{
	event_del(turn);
	audit.au_due = 0;
	event_del(tick);
	room_close();
	if (audit.au_fd != -1)
		close(audit.au_fd);
	audit.au_fd = -1;
	audit.au_torn = audit.au_size = 0;
	audit.au_skipped = 0;
	if (audit.au_broken)
		audit_tell(0);
}

void
audit_begin(void)
{
	next.nx_change = CHANGE_NONE;
	next.nx_fd = -1;
}

/* -1 if the generation has a file already.  An fd of -1 was lost. */
int
audit_offer(int fd, const char *path)
{
	if (next.nx_change != CHANGE_NONE) {
		if (fd != -1)
			close(fd);
		return -1;
	}
	next.nx_change = CHANGE_NEW;
	next.nx_fd = fd;
	strlcpy(next.nx_path, path, sizeof(next.nx_path));
	return 0;
}

int
audit_keep(void)
{
	if (next.nx_change != CHANGE_NONE || audit.au_fd == -1)
		return -1;
	next.nx_change = CHANGE_KEEP;
	return 0;
}

int
audit_weigh(char *why, size_t size)
{
	struct tail	 ta;
	const char	*reason = "no free descriptor";
	const char	*path = next.nx_path;
	int		 fd = next.nx_fd;

	/* The same file may have been a spool, and is none any more. */
	if (next.nx_change == CHANGE_KEEP && spool_is() && !spool_will()) {
		fd = audit.au_fd;
		path = audit.au_path;
	} else if (next.nx_change != CHANGE_NEW)
		return 0;
	if (fd != -1 && tail_read(fd, spool_will(), &ta, &reason) == 0)
		return 0;
	snprintf(why, size, "%s: %s", path, reason);
	return -1;
}

/* Where the chain goes on, now that the new file is known. */
static void
audit_join(const struct tail *ta, const struct link *old, int same_name)
{
	const char	*reason;

	audit.au_end = *old;
	reason = tip_join(ta, same_name, &audit.au_end);
	if (reason != NULL)
		audit_break(reason);
	if (ta->ta_torn > 0) {
		audit_break(REASON_TORN_LINE);
		audit.au_gap.ga_lost_bytes = (uint64_t)ta->ta_torn;
		audit.au_torn = ta->ta_torn;
	}
}

/*
 * A number that was acknowledged is never given again, and a spool that lacks
 * what was not is said to do so: the file may have lost its end, or all.
 */
static void
audit_follow_acked(int empty)
{
	struct link	 li = { .li_seq = spool_acknowledged() };
	bool		 behind = chain_tip()->li_seq < li.li_seq;

	if (!behind && (!empty || audit.au_end.li_seq <= li.li_seq))
		return;
	if (empty)
		audit.au_end = li;
	if (behind)
		chain_join(&li);
	if (!audit.au_broken)
		audit_break(REASON_TAIL_LOST);
}

/* The first line of a file that follows another. */
static void
audit_first(void)
{
	if (audit.au_broken && audit_mend() == -1) {
		log_warn(LOST, audit.au_path);
		after(tick, AUDIT_TICK_S);
		return;
	}
	if (audit.au_size == 0 && chain_tip()->li_seq > 0)
		chain_file();
	audit_flush();
	tip_write(&audit.au_end);
}

/* Read the tail again: it may be the old file, grown since. */
static bool
audit_look(struct tail *ta)
{
	const char	*why;

	if (tail_read(audit.au_fd, spool_is(), ta, &why) == -1)
		fatalx("%s: changed by another program: %s", audit.au_path,
		    why);
	audit.au_size = lseek(audit.au_fd, 0, SEEK_END);
	return spool_open(audit.au_fd, ta, audit.au_size - ta->ta_torn);
}

static void
audit_switch(void)
{
	struct tail	 ta;
	struct link	 old;
	int		 was_broken, same_name;
	bool		 known;

	was_broken = audit.au_broken || audit.au_skipped;
	old = audit.au_fd != -1 ? audit.au_end : *chain_tip();
	same_name = audit.au_fd != -1 &&
	    strcmp(audit.au_path, next.nx_path) == 0;
	audit_close();
	tip_commit();
	spool_commit();
	audit.au_fd = next.nx_fd;
	strlcpy(audit.au_path, next.nx_path, sizeof(audit.au_path));
	known = audit_look(&ta);
	room_open(audit.au_fd);
	audit_join(&ta, &old, same_name);
	if (ta.ta_empty && was_broken && !audit.au_broken)
		audit_break(REASON_AUDIT_FULL);
	if (known)
		audit_follow_acked(ta.ta_empty);
	if (!audit.au_broken)
		tip_write(&audit.au_end);
	spool_begun();
	audit_first();
	audit_sync();
}

/* Whether the same file is a spool may have changed, and how large. */
static void
audit_stay(void)
{
	struct tail	 ta;

	if (tip_offered()) {
		tip_commit();
		tip_write(&audit.au_end);
	}
	if (spool_keep())
		return;
	spool_commit();
	audit_look(&ta);
	spool_begun();
}

void
audit_commit(void)
{
	audit_finish();
	if (next.nx_change == CHANGE_NEW)
		audit_switch();
	else if (next.nx_change == CHANGE_NONE) {
		audit_close();
		tip_commit();
		spool_commit();
	} else
		audit_stay();
	audit_begin();
}

void
audit_abort(void)
{
	if (next.nx_fd != -1)
		close(next.nx_fd);
	tip_abort();
	spool_abort();
	audit_begin();
}
