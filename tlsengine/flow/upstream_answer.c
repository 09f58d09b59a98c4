/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: answers of origins, as hostile as anything.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tlsengine.h"
#include "upstream.h"

/* 1: more came, 0: nothing now, -1: end of file or broken. */
static int
up_fill(struct upstream *up)
{
	ssize_t	 n;

	if (up->up_in == NULL && (up->up_in = blocks_get(&in_blocks)) == NULL)
		return -1;
	if (up->up_inpos > 0) {
		up->up_inlen -= up->up_inpos;
		memmove(up->up_in, up->up_in + up->up_inpos, up->up_inlen);
		up->up_inpos = 0;
	}
	if (up->up_inlen == IN_SIZE)
		return -1;
	n = io_take(&up->up_io, up->up_in + up->up_inlen,
	    IN_SIZE - up->up_inlen);
	if (n > 0) {
		up->up_inlen += n;
		up->up_ex->ex_heard = true;
		return 1;
	}
	return n == -1 && errno == EAGAIN ? 0 : -1;
}

static bool
up_final_head(struct upstream *up, size_t len)
{
	struct exchange	*ex = up->up_ex;
	struct h1_head	*hd = up->up_head;
	struct h1_str	 fields = { NULL, 0 };

	if (hd->hd_nfields > 0) {
		fields.s = hd->hd_fields[0].hf_name;
		fields.len = up->up_in + up->up_inpos + len - 4 - fields.s;
	}
	up->up_framing = hd->hd_status == 101 ? H1_UNTIL_CLOSE :
	    hd->hd_framing;
	up->up_left = hd->hd_length;
	up->up_keep = hd->hd_keep_alive;
	if (up->up_framing == H1_CHUNKED)
		chunks_begin(&up->up_chunk);
	up->up_in_body = true;
	timer_set(&up->up_timer, hd->hd_status == 101 ?
	    settings.st_tunnel_ms : settings.st_idle_ms);
	if (!exchange_answer_head(ex, hd, &fields))
		return false;
	up->up_inpos += len;
	return true;
}

enum progress { PROGRESS, WAITS, COMPLETE, BROKEN, ENDED };

/* The head: WAITS for more, is COMPLETE, or BROKEN; or the exchange ENDED. */
static enum progress
up_read_head(struct upstream *up)
{
	struct exchange	*ex = up->up_ex;
	struct h1_error	 he;
	int		 len, more;

	for (;;) {
		len = 0;
		if (up->up_inlen > up->up_inpos)
			len = h1_scan(&up->up_scan, up->up_in + up->up_inpos,
			    up->up_inlen - up->up_inpos, &he);
		if (len == -1)
			return BROKEN;
		if (len == 0) {
			if ((more = up_fill(up)) != 1)
				return more == 0 ? WAITS : BROKEN;
			continue;
		}
		memset(&up->up_scan, 0, sizeof(up->up_scan));
		if (up->up_head == NULL && (up->up_head =
		    malloc(sizeof(*up->up_head))) == NULL)
			return BROKEN;
		if (h1_parse_response(up->up_in + up->up_inpos, len,
		    ex->ex_request.hd_method,
		    ex->ex_request.hd_upgrade.s != NULL, up->up_head,
		    &he) == -1)
			return BROKEN;
		if (up->up_head->hd_status == 101 && ex->ex_key[0] != '\0' &&
		    websocket_proven(up->up_head, ex->ex_key) == -1)
			return BROKEN;
		if (up->up_head->hd_status >= 200 ||
		    up->up_head->hd_status == 101)
			return up_final_head(up, len) ? COMPLETE : ENDED;
		if (++up->up_interim > INTERIM_MAX)
			return BROKEN;
		if (!exchange_interim(ex, up->up_head))
			return ENDED;
		up->up_inpos += len;
	}
}

static ssize_t
up_body_read(struct upstream *up, void *to, size_t want)
{
	size_t	 have = up->up_inlen - up->up_inpos;

	if (have == 0)
		return io_take(&up->up_io, to, want);
	if (have > want)
		have = want;
	memcpy(to, up->up_in + up->up_inpos, have);
	up->up_inpos += have;
	return have;
}

static enum progress
up_body_plain(struct upstream *up)
{
	struct exchange	*ex = up->up_ex;
	size_t		 room;
	ssize_t		 n;
	void		*p;

	if (up->up_framing == H1_NONE ||
	    (up->up_framing == H1_LENGTH && up->up_left == 0))
		return COMPLETE;
	if ((p = ex->ex_client->reserve(ex, &room)) == NULL) {
		io_pause(&up->up_io);
		return WAITS;
	}
	if (up->up_framing == H1_LENGTH && room > up->up_left)
		room = up->up_left;
	n = up_body_read(up, p, room);
	if (n > 0) {
		if (up->up_framing == H1_LENGTH)
			up->up_left -= n;
		exchange_answer_data(ex, p, n);
		if (!ex->ex_client->commit(ex, n))
			return ENDED;
		/* Not in another turn: the client has it all and may leave. */
		return up->up_framing == H1_LENGTH && up->up_left == 0 ?
		    COMPLETE : PROGRESS;
	}
	if (n == -1 && errno == EAGAIN)
		return WAITS;
	/* RFC 9112, 9.8: only close_notify tells the end from a cut. */
	return n == 0 && up->up_framing == H1_UNTIL_CLOSE &&
	    (up->up_io.io_closed || ex->ex_upgraded) ? COMPLETE : BROKEN;
}

static enum progress
up_body_chunked(struct upstream *up)
{
	struct exchange	*ex = up->up_ex;
	const char	*data;
	size_t		 room, len;
	ssize_t		 n;
	void		*p;
	int		 more;

	if (h1_chunk_done(&up->up_chunk))
		return COMPLETE;
	if ((p = ex->ex_client->reserve(ex, &room)) == NULL) {
		io_pause(&up->up_io);
		return WAITS;
	}
	if (up->up_inpos == up->up_inlen && (more = up_fill(up)) != 1)
		return more == 0 ? WAITS : BROKEN;
	len = up->up_inlen - up->up_inpos;
	n = h1_chunk_decode(&up->up_chunk, up->up_in + up->up_inpos,
	    len < room ? len : room, &data, &len);
	if (n == -1)
		return BROKEN;
	up->up_inpos += n;
	if (len > 0) {
		memcpy(p, data, len);
		exchange_answer_data(ex, p, len);
		if (!ex->ex_client->commit(ex, len))
			return ENDED;
	}
	return PROGRESS;
}

static void
up_read_body(struct upstream *up)
{
	struct exchange	*ex = up->up_ex;
	enum progress	 how;
	int		 i = 0;

	do {
		how = up->up_framing == H1_CHUNKED ? up_body_chunked(up) :
		    up_body_plain(up);
	} while (how == PROGRESS && ++i < IO_SHARE);
	switch (how) {
	case ENDED:
		break;
	case COMPLETE:
		exchange_answer_end(ex, up->up_framing == H1_CHUNKED ?
		    chunks_trailers(&up->up_chunk) : NULL);
		break;
	case BROKEN:
		exchange_up_lost(ex, REASON_STREAM_BROKEN);
		break;
	case PROGRESS:
		io_again(&up->up_io);
		/* FALLTHROUGH */
	case WAITS:
		timer_set(&up->up_timer, ex->ex_upgraded ?
		    settings.st_tunnel_ms : settings.st_idle_ms);
		ex->ex_client->flush(ex);
	}
}

void
upstream_answer(struct upstream *up)
{
	enum progress	 how;

	if (!up->up_in_body) {
		how = up_read_head(up);
		if (how == BROKEN)
			exchange_up_lost(up->up_ex, up->up_inlen == 0 ?
			    REASON_UPSTREAM_UNREACHABLE
			    ": closed without an answer" :
			    REASON_STREAM_BROKEN);
		if (how != COMPLETE)
			return;
	}
	up_read_body(up);
}
