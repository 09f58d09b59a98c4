/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * tlsengine runs this: answers of origins, as hostile as anything.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tlsengine.h"

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
	if (up->up_inlen == UP_IN_SIZE)
		return -1;
	n = io_take(&up->up_io, up->up_in + up->up_inlen,
	    UP_IN_SIZE - up->up_inlen);
	if (n > 0) {
		up->up_inlen += n;
		up->up_ex->ex_heard = true;
		return 1;
	}
	return n == -1 && errno == EAGAIN ? 0 : -1;
}

static void
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
	exchange_answer_head(ex, hd, &fields);
	up->up_inpos += len;
}

/* 1: the body is next, 0: more is needed, -1: it is over. */
static int
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
			return -1;
		if (len == 0) {
			if ((more = up_fill(up)) != 1)
				return more;
			continue;
		}
		memset(&up->up_scan, 0, sizeof(up->up_scan));
		if (up->up_head == NULL && (up->up_head =
		    malloc(sizeof(*up->up_head))) == NULL)
			return -1;
		if (h1_parse_response(up->up_in + up->up_inpos, len,
		    ex->ex_request.hd_method,
		    ex->ex_request.hd_upgrade.s != NULL, up->up_head,
		    &he) == -1)
			return -1;
		if (up->up_head->hd_status == 101 && ex->ex_key[0] != '\0' &&
		    websocket_proven(up->up_head, ex->ex_key) == -1)
			return -1;
		if (up->up_head->hd_status >= 200 ||
		    up->up_head->hd_status == 101) {
			up_final_head(up, len);
			return 1;
		}
		if (++up->up_interim > INTERIM_MAX)
			return -1;
		exchange_interim(ex, up->up_head);
		if (up->up_dead)
			return 0;
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

enum progress { BODY_MORE, BODY_WAIT, BODY_END, BODY_BROKEN };

static enum progress
up_body_plain(struct upstream *up)
{
	struct exchange	*ex = up->up_ex;
	size_t		 room;
	ssize_t		 n;
	void		*p;

	if (up->up_framing == H1_NONE ||
	    (up->up_framing == H1_LENGTH && up->up_left == 0))
		return BODY_END;
	if ((p = ex->ex_client->reserve(ex, &room)) == NULL) {
		io_pause(&up->up_io);
		return BODY_WAIT;
	}
	if (up->up_framing == H1_LENGTH && room > up->up_left)
		room = up->up_left;
	n = up_body_read(up, p, room);
	if (n > 0) {
		if (up->up_framing == H1_LENGTH)
			up->up_left -= n;
		exchange_answer_data(ex, p, n);
		ex->ex_client->commit(ex, n);
		return BODY_MORE;
	}
	if (n == -1 && errno == EAGAIN)
		return BODY_WAIT;
	/* RFC 9112, 9.8: only close_notify tells the end from a cut. */
	return n == 0 && up->up_framing == H1_UNTIL_CLOSE &&
	    (up->up_io.io_closed || ex->ex_upgraded) ? BODY_END : BODY_BROKEN;
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
		return BODY_END;
	if ((p = ex->ex_client->reserve(ex, &room)) == NULL) {
		io_pause(&up->up_io);
		return BODY_WAIT;
	}
	if (up->up_inpos == up->up_inlen && (more = up_fill(up)) != 1)
		return more == 0 ? BODY_WAIT : BODY_BROKEN;
	len = up->up_inlen - up->up_inpos;
	n = h1_chunk_decode(&up->up_chunk, up->up_in + up->up_inpos,
	    len < room ? len : room, &data, &len);
	if (n == -1)
		return BODY_BROKEN;
	up->up_inpos += n;
	if (len > 0) {
		memcpy(p, data, len);
		exchange_answer_data(ex, p, len);
		ex->ex_client->commit(ex, len);
	}
	return BODY_MORE;
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
	} while (how == BODY_MORE && ++i < IO_SHARE && !up->up_dead);
	if (up->up_dead)
		return;
	switch (how) {
	case BODY_END:
		exchange_answer_end(ex, up->up_framing == H1_CHUNKED ?
		    chunks_trailers(&up->up_chunk) : NULL);
		break;
	case BODY_BROKEN:
		exchange_up_lost(ex, "stream_broken");
		break;
	case BODY_MORE:
		io_again(&up->up_io);
		/* FALLTHROUGH */
	case BODY_WAIT:
		timer_set(&up->up_timer, ex->ex_upgraded ?
		    settings.st_tunnel_ms : settings.st_idle_ms);
		ex->ex_client->flush(ex);
	}
}

void
upstream_answer(struct upstream *up)
{
	int	 n;

	if (!up->up_in_body) {
		n = up_read_head(up);
		if (up->up_dead || n == 0)
			return;
		if (n == -1) {
			exchange_up_lost(up->up_ex, up->up_inlen == 0 ?
			    "upstream_unreachable: closed without an answer" :
			    "stream_broken");
			return;
		}
	}
	if (!up->up_dead && up->up_ex != NULL)
		up_read_body(up);
}
