/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: the tip, a small file beside the audit file, which
 * holds the number and the hash of its last line.  Rotation leaves an empty
 * audit file behind; the tip tells where its chain goes on, also if the daemon
 * was stopped or killed meanwhile, and whether a file has lost its end.  It
 * comes from the parent, like the audit file, unless the parent cannot make it.
 *
 * It is written after the lines that it names, and before the next ones.  So
 * whoever kills us between the two finds an audit file that is ahead of its
 * tip, and only a disk that lost the file's end, or a person, makes one that
 * is behind.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "recorder.h"

/* "number hash sum\n", each of fixed length; the sum is of what precedes. */
#define NUMBER_LEN	20
#define NAMED_LEN	(NUMBER_LEN + 1 + HASH_HEX)
#define TIP_LEN		(NAMED_LEN + 1 + HASH_HEX + 1)

static struct {
	int		 tp_fd;
	int		 tp_next;	/* of the next generation */
	int		 tp_unsynced;
	int		 tp_failed;	/* and this was said */
	struct link	 tp_named;	/* what the file says */
} tip = { .tp_fd = -1, .tp_next = -1 };

static void
tip_format(const struct link *li, char text[TIP_LEN + 1])
{
	struct link	 sum;

	snprintf(text, TIP_LEN + 1, "%0*" PRIu64 " %s", NUMBER_LEN, li->li_seq,
	    li->li_hash);
	chain_hash(&sum, text, NAMED_LEN);
	snprintf(text + NAMED_LEN, TIP_LEN + 1 - NAMED_LEN, " %s\n",
	    sum.li_hash);
}

/* The last line as the tip names it; the content is not trusted. */
enum tip_state
tip_read(struct link *li)
{
	char	 text[TIP_LEN + 1], again[TIP_LEN + 1];
	ssize_t	 n;

	memset(li, 0, sizeof(*li));
	if (tip.tp_fd == -1 ||
	    (n = pread(tip.tp_fd, text, sizeof(text), 0)) == 0)
		return TIP_MISSING;
	if (n != TIP_LEN)
		return TIP_UNREADABLE;
	text[TIP_LEN] = '\0';
	if (sscanf(text, "%20" SCNu64 " %64[0-9a-f]", &li->li_seq,
	    li->li_hash) != 2 || li->li_seq == 0 || li->li_seq >= SEQ_MAX ||
	    strlen(li->li_hash) != HASH_HEX)
		return TIP_UNREADABLE;
	tip_format(li, again);
	if (memcmp(text, again, TIP_LEN) != 0)
		return TIP_UNREADABLE;
	li->li_hashed = 1;
	return TIP_KNOWN;
}

/* The audit file ends with this line. */
void
tip_write(const struct link *li)
{
	char	 text[TIP_LEN + 1];
	ssize_t	 n;

	if (tip.tp_fd == -1 || li->li_seq == 0 ||
	    chain_same(li, &tip.tp_named))
		return;
	tip_format(li, text);
	if ((n = pwrite(tip.tp_fd, text, TIP_LEN, 0)) != TIP_LEN) {
		if (n != -1)
			errno = ENOSPC;
		if (!tip.tp_failed)
			log_warn("%s.tip: rotation would break the chain until "
			    "it can be written", audit_path());
		tip.tp_failed = 1;
		return;
	}
	tip.tp_failed = 0;
	tip.tp_named = *li;
	tip.tp_unsynced = 1;
}

/* Whether the tip names this line. */
bool
tip_names(const struct link *li)
{
	return tip.tp_fd != -1 && chain_same(li, &tip.tp_named);
}

/* Called after the audit file's sync: a tip never runs ahead of it. */
void
tip_sync(void)
{
	if (!tip.tp_unsynced)
		return;
	tip.tp_unsynced = 0;
	if (fdatasync(tip.tp_fd) == -1)
		log_warn("%s.tip: it may not be on disk", audit_path());
}

/* -1 if the generation has one already.  An fd of -1 was lost. */
int
tip_offer(int fd)
{
	if (tip.tp_next != -1) {
		if (fd != -1)
			close(fd);
		return -1;
	}
	tip.tp_next = fd;
	return 0;
}

int
tip_offered(void)
{
	return tip.tp_next != -1;
}

/* The offered tip comes into force, or none. */
void
tip_commit(void)
{
	if (tip.tp_fd != -1)
		close(tip.tp_fd);
	tip.tp_fd = tip.tp_next;
	tip.tp_next = -1;
	tip.tp_unsynced = tip.tp_failed = 0;
	memset(&tip.tp_named, 0, sizeof(tip.tp_named));
}

void
tip_abort(void)
{
	if (tip.tp_next != -1)
		close(tip.tp_next);
	tip.tp_next = -1;
}

/*
 * An empty file goes on from the line that its tip names.  If we have been
 * writing all the time we know better where we are: a file of the same name
 * follows the one before it, and one that had a chain of its own has a gap.
 */
static const char *
join_empty(int same_name, struct link *end)
{
	struct link	 named;
	enum tip_state	 state = tip_read(&named);

	if (same_name || state == TIP_MISSING)
		return NULL;
	if (state == TIP_UNREADABLE)
		return REASON_TIP_UNREADABLE;
	*end = named;
	if (chain_tip()->li_seq == 0)
		chain_join(end);
	return chain_same(chain_tip(), end) ? NULL : REASON_AUDIT_SWITCHED;
}

/*
 * At the start, a file with records is followed, and the tip shows whether
 * they are those that we wrote.
 */
static const char *
join_tail(const struct link *end)
{
	struct link	 named;
	enum tip_state	 state = tip_read(&named);

	chain_join(end);
	if (state == TIP_MISSING)
		return REASON_TIP_MISSING;
	if (state == TIP_UNREADABLE)
		return REASON_TIP_UNREADABLE;
	if (named.li_seq < end->li_seq || chain_same(&named, end))
		return NULL;
	chain_join(&named);
	return named.li_seq > end->li_seq ? REASON_TAIL_LOST :
	    REASON_TAIL_CHANGED;
}

/*
 * Where the chain goes on in a file with this tail: *end is where we are
 * ourselves, and becomes the line that the file's next one follows.  Returns
 * why a gap is due there, or NULL.
 */
const char *
tip_join(const struct tail *ta, int same_name, struct link *end)
{
	if (ta->ta_empty)
		return join_empty(same_name, end);
	*end = ta->ta_end;
	if (chain_tip()->li_seq == 0)
		return join_tail(end);
	/* A gap, unless the chain ends exactly with this file. */
	return chain_same(chain_tip(), end) ? NULL : REASON_AUDIT_SWITCHED;
}
