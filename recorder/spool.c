/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: an audit file that is a spool.  It keeps records for
 * another host, which asks for them, writes them down and acknowledges them by
 * number; only then they go.  Whoever acknowledges is believed in that alone:
 * it cannot name a record that it was not sent.
 *
 *	0 ... sp_freed		a hole: given back to the file system
 *	  ... sp_begin		acknowledged; the hole follows in larger steps
 *	  ... the end		kept, sp_max bytes at most
 *
 * The acknowledged number rests in a small file beside the audit file, from
 * where it is looked up after a restart.  It is written before anything is
 * given back, and if it is lost the file still begins with a line that was not
 * acknowledged: then a record may come twice, but none is missing.
 *
 * Of several hosts the one with the highest term has the say.  A term that was
 * seen is kept with the number, so that it also holds after a restart.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "recorder.h"

/* "number term sum\n", each of fixed length; the sum is of what precedes. */
#define NUMBER_LEN	20
#define NAMED_LEN	(2 * NUMBER_LEN + 1)
#define ACK_LEN		(NAMED_LEN + 1 + HASH_HEX + 1)

#define FREE_STEP	(64 * 1024)	/* bytes; a multiple of any block */
#define EMPTY_STEP	(1024 * 1024)	/* as long a file is not cut */

struct ack {
	uint64_t	 ak_seq;
	uint64_t	 ak_term;
};

static struct {
	int		 sp_fd;		/* the audit file's */
	int		 sp_file;	/* beside it; -1: it is no spool */
	uint64_t	 sp_max;	/* bytes */
	int		 sp_next;	/* of the next generation */
	uint64_t	 sp_next_max;
	off_t		 sp_begin;
	off_t		 sp_freed;
	bool		 sp_fixed;	/* nothing can be given back */
	bool		 sp_failed;	/* to write sp_file: said */
	struct ack	 sp_acked;
	uint64_t	 sp_sent;	/* to who acknowledges */
} spool = { .sp_fd = -1, .sp_file = -1, .sp_next = -1 };

bool
spool_is(void)
{
	return spool.sp_file != -1;
}

/* The same, of the generation that is being prepared. */
bool
spool_will(void)
{
	return spool.sp_next != -1;
}

/* Where the first line is that is kept, of any audit file. */
off_t
spool_begin(void)
{
	return spool.sp_begin;
}

uint64_t
spool_acknowledged(void)
{
	return spool.sp_acked.ak_seq;
}

uint64_t
spool_max(void)
{
	return spool_is() ? spool.sp_max : 0;
}

/* Bytes that are not acknowledged. */
uint64_t
spool_waiting(void)
{
	off_t	 end = audit_end();

	return spool_is() && end > spool.sp_begin ?
	    (uint64_t)(end - spool.sp_begin) : 0;
}

/* ---- the file beside it ---- */

static void
ack_format(const struct ack *ak, char text[ACK_LEN + 1])
{
	struct link	 sum;

	snprintf(text, ACK_LEN + 1, "%0*" PRIu64 " %0*" PRIu64, NUMBER_LEN,
	    ak->ak_seq, NUMBER_LEN, ak->ak_term);
	chain_hash(&sum, text, NAMED_LEN);
	snprintf(text + NAMED_LEN, ACK_LEN + 1 - NAMED_LEN, " %s\n",
	    sum.li_hash);
}

/* False if nothing is known; the content is not trusted. */
static bool
ack_read(struct ack *ak)
{
	char	 text[ACK_LEN + 1], again[ACK_LEN + 1];
	ssize_t	 n;

	memset(ak, 0, sizeof(*ak));
	if ((n = pread(spool.sp_file, text, sizeof(text), 0)) == 0)
		return false;
	if (n == ACK_LEN) {
		text[ACK_LEN] = '\0';
		if (sscanf(text, "%20" SCNu64 " %20" SCNu64, &ak->ak_seq,
		    &ak->ak_term) == 2 && ak->ak_seq < SEQ_MAX &&
		    ak->ak_term <= SEQ_MAX) {
			ack_format(ak, again);
			if (memcmp(text, again, ACK_LEN) == 0)
				return true;
		}
	}
	log_warnx("%s.ack: not as it was left; records that were acknowledged "
	    "may be sent again", audit_path());
	memset(ak, 0, sizeof(*ak));
	return false;
}

static int
ack_write(const struct ack *ak)
{
	char	 text[ACK_LEN + 1];
	ssize_t	 n;

	ack_format(ak, text);
	if ((n = pwrite(spool.sp_file, text, ACK_LEN, 0)) == ACK_LEN) {
		spool.sp_failed = false;
		return 0;
	}
	if (n != -1)
		errno = ENOSPC;
	if (!spool.sp_failed)
		log_warn("%s.ack: nothing is acknowledged until it can be "
		    "written", audit_path());
	spool.sp_failed = true;
	return -1;
}

/* ---- room ---- */

/*
 * A spool that was full takes records again when an eighth of it is free, not
 * with each that is acknowledged: else every other record would be a gap.
 */
static void
spool_bound(void)
{
	if (!spool_is())
		room_bound(INT64_MAX);
	else if (spool.sp_fixed)
		room_bound((int64_t)spool.sp_max);
	else if (!room_short() ||
	    spool_waiting() <= spool.sp_max - spool.sp_max / 8)
		room_bound(spool.sp_begin + (int64_t)spool.sp_max);
}

/*
 * A block goes when all of it is in one hole, and the last hole may have ended
 * within one.
 */
static void
spool_punch(void)
{
	off_t	 from = spool.sp_freed - spool.sp_freed % FREE_STEP;

	if (spool.sp_fixed || spool.sp_begin - spool.sp_freed < FREE_STEP)
		return;
	if (fallocate(spool.sp_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	    from, spool.sp_begin - from) == 0) {
		spool.sp_freed = spool.sp_begin;
		return;
	}
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return;
	spool.sp_fixed = true;
	log_warnx("%s: the file system takes nothing back; the spool begins "
	    "anew when all of it is acknowledged", audit_path());
}

/* All is acknowledged: the file may begin anew, unless it has just done so. */
static void
spool_empty(void)
{
	off_t	 step = EMPTY_STEP;

	if (step > (off_t)spool.sp_max / 4)
		step = (off_t)spool.sp_max / 4;
	if (spool.sp_begin < step || spool.sp_begin != audit_end() ||
	    audit_empty() == -1)
		return;
	follower_begin_anew(spool.sp_begin);
	spool.sp_begin = spool.sp_freed = 0;
}

static void
spool_forget(void)
{
	spool_punch();
	spool_empty();
	spool_bound();
}

/* ---- a generation ---- */

/* -1 if the generation has one already.  An fd of -1 was lost. */
int
spool_offer(int fd, uint64_t max)
{
	if (spool.sp_next != -1) {
		if (fd != -1)
			close(fd);
		return -1;
	}
	spool.sp_next = fd;
	spool.sp_next_max = max;
	return 0;
}

void
spool_abort(void)
{
	if (spool.sp_next != -1)
		close(spool.sp_next);
	spool.sp_next = -1;
}

/*
 * What is offered comes into force, or nothing: the audit file is another one,
 * or none, or whether it is a spool has changed.
 */
void
spool_commit(void)
{
	if (spool.sp_file != -1)
		close(spool.sp_file);
	spool.sp_file = spool.sp_next;
	spool.sp_max = spool.sp_next_max;
	spool.sp_next = -1;
	spool.sp_fd = -1;
	spool.sp_begin = spool.sp_freed = 0;
	spool.sp_fixed = spool.sp_failed = false;
	memset(&spool.sp_acked, 0, sizeof(spool.sp_acked));
	spool.sp_sent = 0;
	spool_bound();
	follower_file_gone();
}

/* The same file; 0 if it has to be looked at again all the same. */
bool
spool_keep(void)
{
	if ((spool.sp_next == -1) != (spool.sp_file == -1))
		return false;
	if (spool.sp_next == -1)
		return true;
	close(spool.sp_file);
	spool.sp_file = spool.sp_next;
	spool.sp_max = spool.sp_next_max;
	spool.sp_next = -1;
	ack_write(&spool.sp_acked);
	spool_bound();
	return true;
}

/*
 * The audit file, up to the end of its last whole line.  True if the number
 * that was acknowledged is known.
 */
bool
spool_open(int fd, const struct tail *ta, off_t end)
{
	struct ack	 ak;
	off_t		 at;
	bool		 known;

	spool.sp_fd = fd;
	spool.sp_begin = spool.sp_freed = ta->ta_begin;
	if (!spool_is())
		return false;
	if (!(known = ack_read(&ak)))
		ak.ak_seq = ta->ta_empty ? ta->ta_end.li_seq :
		    tail_number(fd, ta->ta_begin, end) - 1;
	if (ta->ta_empty || ak.ak_seq >= ta->ta_end.li_seq)
		spool.sp_begin = end;
	else if ((at = tail_find(fd, ta->ta_begin, end, ak.ak_seq + 1)) != -1)
		spool.sp_begin = at;
	spool.sp_acked = ak;
	spool.sp_sent = ak.ak_seq;
	spool_bound();
	return known;
}

/* Another program has made the file shorter. */
void
spool_cut(void)
{
	if (spool.sp_begin > audit_end())
		spool.sp_begin = spool.sp_freed = audit_end();
	if (spool_is())
		spool_bound();
}

/* The chain goes on: give back what need not be kept, and note the number. */
void
spool_begun(void)
{
	if (!spool_is())
		return;
	/* Without a number the file was empty and its end is known by now. */
	if (spool.sp_begin == audit_end() && spool.sp_acked.ak_seq == 0)
		spool.sp_acked.ak_seq = spool.sp_sent = chain_tip()->li_seq;
	ack_write(&spool.sp_acked);
	spool_forget();
}

/* ---- who acknowledges ---- */

/* A host takes over; false if another has a higher term. */
bool
spool_term(uint64_t term)
{
	if (term < spool.sp_acked.ak_term)
		return false;
	spool.sp_sent = spool.sp_acked.ak_seq;
	if (term == spool.sp_acked.ak_term)
		return true;
	spool.sp_acked.ak_term = term;
	ack_write(&spool.sp_acked);
	return true;
}

void
spool_sent(uint64_t seq)
{
	spool.sp_sent = seq;
}

static enum ack_result
spool_judge(const struct msg_ack_ask *m)
{
	if (!spool_is())
		return ACK_NO_SPOOL;
	if (m->term < spool.sp_acked.ak_term)
		return ACK_OLD_TERM;
	if (m->seq < spool.sp_acked.ak_seq)
		return ACK_LOW;
	return m->seq > spool.sp_sent ? ACK_HIGH : ACK_OK;
}

enum ack_result
spool_take(const struct msg_ack_ask *m)
{
	enum ack_result	 result = spool_judge(m);
	struct ack	 ak = spool.sp_acked;
	off_t		 at;

	if (result != ACK_OK || m->seq == ak.ak_seq)
		return result;
	ak.ak_seq = m->seq;
	if ((at = tail_find(spool.sp_fd, spool.sp_begin, audit_end(),
	    m->seq + 1)) == -1 || ack_write(&ak) == -1)
		return ACK_FAILED;
	spool.sp_acked = ak;
	spool.sp_begin = at;
	spool_forget();
	follower_wake();
	return ACK_OK;
}

int
recorder_controld_ack_ask(struct ipc *ip, const union msg *m)
{
	enum ack_result	 result = spool_take(&m->ack_ask);

	ipc_send(ip, -1, ACK_DONE, ack_done, .cookie = m->ack_ask.cookie,
	    .result = result, .acknowledged = spool.sp_acked.ak_seq,
	    .sent = spool.sp_sent);
	return 0;
}
