/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: a follower that is served from the audit file, in
 * order and without a hole, with what was there before it came and what is
 * written since.  A line reaches it when it is in the file.  It may be as slow
 * as it likes: what it has not read costs nothing but its place.  Only what a
 * spool has forgotten meanwhile it cannot have any more.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "codes.h"
#include "jsonw.h"
#include "log.h"
#include "recorder.h"

#define QUEUE_MAX	(128 * 1024)	/* bytes read ahead, but for a line */

static char	 chunk[LINE_LEN_MAX];

/* How a line about the session goes on; see line_open(). */
static void
match_session(struct follower *fo, const char *session)
{
	struct jsonw	 w;
	size_t		 len;

	if (*session == '\0')
		return;
	jsonw_place(&w, fo->fo_match, sizeof(fo->fo_match));
	jsonw_object(&w);
	jsonw_key(&w, "session_id");
	jsonw_str(&w, session);
	jsonw_end(&w);
	if (jsonw_finish(&w, &len) == NULL)
		fatalx("%s: %s", __func__, jsonw_error(&w));
	/* In a record it is preceded by others, and followed. */
	fo->fo_match[0] = fo->fo_match[len - 1] = ',';
	fo->fo_match_len = len;
}

static const char *
begin_acknowledged(struct follower *fo, const struct msg_follow *m, char *why,
    size_t size)
{
	if (!spool_is()) {
		strlcpy(why, "the audit file is no spool", size);
		return CODE_NOT_SUPPORTED;
	}
	if (!spool_term(m->term)) {
		snprintf(why, size, "there was a follower with a higher term "
		    "than %llu", (unsigned long long)m->term);
		return CODE_TAKEN_OVER;
	}
	fo->fo_at = spool_begin();
	fo->fo_seq = spool_acknowledged();
	fo->fo_window = (off_t)m->window;
	return NULL;
}

static const char *
begin_number(struct follower *fo, uint64_t seq, char *why, size_t size)
{
	off_t		 end = audit_end();
	uint64_t	 first = tail_number(audit_fd(), spool_begin(), end);
	uint64_t	 next = chain_tip()->li_seq + 1;

	fo->fo_seq = seq - 1;
	if (first == 0)
		first = next;
	if (seq < first || seq > next) {
		snprintf(why, size, "the audit file has no record %llu: its "
		    "first is %llu, the next will be %llu",
		    (unsigned long long)seq, (unsigned long long)first,
		    (unsigned long long)next);
		return CODE_OUT_OF_RANGE;
	}
	if ((fo->fo_at = tail_find(audit_fd(), spool_begin(), end, seq)) != -1)
		return NULL;
	strlcpy(why, "the audit file is not as it was written", size);
	return CODE_INTERNAL;
}

/* NULL, or the code of an error and why. */
const char *
history_begin(struct follower *fo, const struct msg_follow *m, char *why,
    size_t size)
{
	if (audit_fd() == -1) {
		strlcpy(why, "there is no audit file", size);
		return CODE_NOT_SUPPORTED;
	}
	audit_flush();
	fo->fo_history = true;
	match_session(fo, m->session);
	if (m->from == FOLLOW_ACKNOWLEDGED)
		return begin_acknowledged(fo, m, why, size);
	return begin_number(fo, m->first, why, size);
}

/* Whether the follower asked for this line, which goes on behind its number. */
static bool
history_wants(const struct follower *fo, const char *text, size_t len)
{
	static const char	 kind[] = ",\"kind\":\"", at[] = ",\"at\":\"";
	static const char	 all[] = ",\"session_id\":null,";
	const size_t		 time_len = sizeof("2026-01-02T03:04:05.678Z\"")
				    - 1;
	const char		*word = text + sizeof(kind) - 1, *p;
	size_t			 n;
	int			 k;

	if ((p = memchr(word, '"', (size_t)(text + len - word))) == NULL)
		return false;
	n = (size_t)(p - word);
	for (k = 0; k < RECORD_KIND_MAX; k++)
		if (strlen(record_kind_name(k)) == n &&
		    memcmp(record_kind_name(k), word, n) == 0)
			break;
	if (k < RECORD_KIND_MAX && !(fo->fo_kinds & (1U << k)))
		return false;
	if (fo->fo_match_len == 0)
		return true;
	p += 1 + sizeof(at) - 1 + time_len;
	n = p < text + len ? (size_t)(text + len - p) : 0;
	return (n >= sizeof(all) - 1 && memcmp(p, all, sizeof(all) - 1) == 0) ||
	    (n >= fo->fo_match_len &&
	    memcmp(p, fo->fo_match, fo->fo_match_len) == 0);
}

/* One line, of len bytes with its newline; 0 if the follower has to wait. */
static int
history_line(struct follower *fo, const char *text, size_t len)
{
	uint64_t	 seq;
	size_t		 n;

	if (fo->fo_window > 0 && fo->fo_at + (off_t)len >
	    spool_begin() + fo->fo_window)
		return 0;
	if ((seq = chain_number(text, len, &n)) == 0)
		return -1;
	fo->fo_at += (off_t)len;
	fo->fo_seq = seq;
	if (history_wants(fo, text + n, len - n) &&
	    evbuffer_add(fo->fo_queue, text, len) == -1)
		fatal("%s", __func__);
	if (fo->fo_window > 0)
		spool_sent(seq);
	return 1;
}

/* As many lines as have come with a chunk; 0 if there is no more for now. */
static int
history_chunk(struct follower *fo, off_t end)
{
	const char	*line = chunk, *nl;
	size_t		 want = sizeof(chunk);
	ssize_t		 got;
	int		 rv = 1;

	if (end - fo->fo_at < (off_t)want)
		want = (size_t)(end - fo->fo_at);
	if ((got = pread(audit_fd(), chunk, want, fo->fo_at)) <= 0)
		return got == -1 && errno == EINTR ? 1 : -1;
	while (rv == 1 && (nl = memchr(line, '\n',
	    (size_t)(chunk + got - line))) != NULL) {
		rv = history_line(fo, line, (size_t)(nl - line) + 1);
		line = nl + 1;
	}
	/* Half a line: the rest may be written later, or it will be cut. */
	if (line == chunk && (size_t)got == sizeof(chunk))
		return -1;
	return line == chunk ? 0 : rv;
}

/*
 * Read on while the follower takes it.  -1: its place is gone, or the file has
 * been changed by another program.
 */
int
history_fill(struct follower *fo)
{
	off_t	 end = audit_end();
	int	 rv = 1;

	if (fo->fo_at < spool_begin() || fo->fo_at > end)
		return -1;
	while (rv == 1 && fo->fo_at < end &&
	    evbuffer_get_length(fo->fo_queue) < QUEUE_MAX)
		rv = history_chunk(fo, end);
	return rv;
}
