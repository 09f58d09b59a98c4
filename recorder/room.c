/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: room in the audit file for records that are still
 * to come.  Under `audit on full deny' a request begins only with a credit
 * for which there is room for all its records, in their shortest form: then
 * nothing that another program writes in between can leave it without them.
 *
 *	... ro_pos	lines, in the file or collected for it
 *	... ro_end	ours: set aside by the file system, and at least
 *			ro_promised bytes more than ro_pos
 *
 * fallocate(2) sets blocks aside behind the end of the file and leaves its
 * size alone; what is not used is given back when the file is closed.  A file
 * system that cannot do so is asked how much is free, and then another writer
 * may be faster than we are.
 */

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "log.h"
#include "recorder.h"

#define ROOM_CHUNK	(4 * 1024 * 1024)	/* more than is needed now */
#define ROOM_MARGIN	(1024 * 1024)	/* left free if it is not set aside */
#define ROOM_OTHERS	(16 * 1024)	/* for records that have no promise */
#define ROOM_RETRY_S	1
#define NO_LIMIT	INT64_MAX

static struct {
	int		 ro_fd;		/* -1: no file, and room for all */
	bool		 ro_unsure;	/* nothing can be set aside */
	bool		 ro_short;	/* there was too little a moment ago */
	int64_t		 ro_pos;
	int64_t		 ro_end;
	int64_t		 ro_limit;	/* of the size of any file */
	int64_t		 ro_bound;	/* where a spool is full */
	int64_t		 ro_promised;
} room = { .ro_fd = -1, .ro_limit = NO_LIMIT, .ro_bound = NO_LIMIT };

static struct event	*retry;
static void		(*room_changed)(void);

static void
room_on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	room.ro_short = false;
	room_changed();
}

/* ext4 and others do not look at the limit before bytes are written. */
void
room_init(struct event_base *base, void (*changed)(void))
{
	struct rlimit	 rl;

	room_changed = changed;
	if (getrlimit(RLIMIT_FSIZE, &rl) == -1)
		fatal("getrlimit");
	if (rl.rlim_cur < (rlim_t)NO_LIMIT)
		room.ro_limit = (int64_t)rl.rlim_cur;
	if ((retry = event_new(base, -1, 0, room_on_retry, NULL)) == NULL)
		fatalx("%s: event_new", __func__);
}

/* Free bytes of the file system, or no limit if it does not tell. */
static int64_t
room_free(void)
{
	struct statvfs	 vfs;

	if (fstatvfs(room.ro_fd, &vfs) == -1 || vfs.f_blocks == 0 ||
	    vfs.f_bavail > (uint64_t)NO_LIMIT / vfs.f_frsize)
		return NO_LIMIT;
	return (int64_t)(vfs.f_bavail * vfs.f_frsize);
}

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * Up to what is wanted and some more, but no large part of what is free; or
 * as far as it goes.  What is wanted may be there although nothing is free,
 * set aside in an earlier life.
 */
static void
room_grow(int64_t want)
{
	int64_t	 left = room_free(), len;
	int64_t	 to = want + least(left / 4, ROOM_CHUNK);

	to = least(to, least(room.ro_limit, room.ro_bound));
	if (room.ro_unsure) {
		room.ro_end = to;
		if (left != NO_LIMIT)
			room.ro_end = least(room.ro_end,
			    room.ro_pos + left - ROOM_MARGIN);
		return;
	}
	for (len = to - room.ro_end; len >= ROOM_GAP;
	    len = left < len ? left : len / 2) {
		if (fallocate(room.ro_fd, FALLOC_FL_KEEP_SIZE, room.ro_end,
		    len) == 0) {
			room.ro_end += len;
			return;
		}
		if (errno == EOPNOTSUPP || errno == ENOSYS) {
			room.ro_unsure = true;
			room_grow(want);
			return;
		}
		/* The file system is full, or a quota or limit is reached. */
		if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG &&
		    errno != EINTR)
			return;
	}
}

/* Whether there is room for so many bytes and for what is promised. */
static bool
room_extend(int64_t more)
{
	static const struct timeval	 later = { .tv_sec = ROOM_RETRY_S };
	int64_t				 want;

	want = room.ro_pos + room.ro_promised + more;
	if (room.ro_fd == -1 || want <= least(room.ro_end, room.ro_bound))
		return true;
	if (!room.ro_short)
		room_grow(want);
	if (want <= least(room.ro_end, room.ro_bound))
		return true;
	if (!room.ro_short && event_add(retry, &later) == -1)
		fatalx("%s: event_add", __func__);
	room.ro_short = true;
	return false;
}

/* A file is used from its end on; nothing is set aside behind it. */
void
room_open(int fd)
{
	room.ro_fd = fd;
	room.ro_unsure = room.ro_short = false;
	if ((room.ro_pos = lseek(fd, 0, SEEK_END)) == -1)
		fatal("%s: lseek", __func__);
	room.ro_end = room.ro_pos;
	room_extend(0);
}

/* Truncated where it ends, a file gives back what is set aside behind. */
void
room_close(void)
{
	off_t	 size;

	if (room.ro_fd != -1 && !room.ro_unsure && room.ro_end > room.ro_pos &&
	    (size = lseek(room.ro_fd, 0, SEEK_END)) != -1 &&
	    ftruncate(room.ro_fd, size) == -1)
		log_debug("audit file: room that it does not use stays its "
		    "own");
	room.ro_fd = -1;
	room.ro_short = false;
}

/* Whether promises hold: a new file may have less room. */
bool
room_sound(void)
{
	return room_extend(0);
}

/* Promise room for at most count requests; returns for how many. */
uint32_t
room_take(uint32_t count)
{
	int64_t	 left, len = (int64_t)count * ROOM_REQUEST;

	if (!room_extend(len + ROOM_OTHERS)) {
		left = room.ro_end - room.ro_pos - room.ro_promised -
		    ROOM_OTHERS;
		count = left > 0 ? (uint32_t)(left / ROOM_REQUEST) : 0;
		len = (int64_t)count * ROOM_REQUEST;
	}
	room.ro_promised += len;
	return count;
}

/* Give back promised room that was used or is not needed. */
void
room_put(size_t len)
{
	room.ro_promised -= (int64_t)len;
}

/* There may be room again. */
void
room_wake(void)
{
	event_active(retry, EV_TIMEOUT, 1);
}

/*
 * A spool ends here, and further on when records have been acknowledged: who
 * waits for room is told at once.
 */
void
room_bound(int64_t bound)
{
	bool	 more = bound > room.ro_bound;

	room.ro_bound = bound;
	if (more && room.ro_short)
		room_wake();
}

/* Whether there was too little a moment ago. */
bool
room_short(void)
{
	return room.ro_short;
}

/*
 * Whether a line has room, beside all that is promised to others.  While
 * nothing is, a line is written and fails or not, unless this is a spool.
 */
bool
room_has(size_t len, size_t promised)
{
	if (len <= promised ||
	    (room.ro_promised == 0 && room.ro_bound == NO_LIMIT))
		return true;
	return room_extend((int64_t)len - (int64_t)promised);
}

void
room_use(size_t len)
{
	room.ro_pos += (int64_t)len;
}
