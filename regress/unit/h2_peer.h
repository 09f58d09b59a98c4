/* SPDX-License-Identifier: ISC */

/*
 * nghttp2 at the other end of a wire that is memory; see h2_pair.h.
 */

#ifndef H2_PEER_H
#define H2_PEER_H

#include "test.h"

#include <nghttp2/nghttp2.h>

#include "h1_parts.h"
#include "h2_io.h"

#define IDS		512
#define TURNS_MAX	200000
#define ECHO		SIZE_MAX
#define FOREVER		(SIZE_MAX - 1)
#define HELD		(SIZE_MAX - 2)	/* nothing comes, nor the end */
#define NO_CODE		(-1)

/* One end of a stream. */
struct end {
	struct h2_stream	*hs;		/* of ours, while it is there */
	size_t			 left;		/* to be sent */
	size_t			 sent;
	size_t			 got;
	size_t			 head_bytes;	/* that came */
	int			 heads;
	int			 status;
	int			 trailers;	/* fields of them that came */
	bool			 asked;		/* the request is whole */
	bool			 sends;		/* a head is out, no end yet */
	bool			 ended;		/* the end has come */
	int64_t			 code;		/* it was reset */
};

static struct io	 io;
static struct h2	*ours;
static nghttp2_session	*peer;
static struct end	 mine[IDS], theirs[IDS];
static struct h2_nv	 nv;
static const char	*fault;		/* the first that nghttp2 has found */
static const char	*broken;	/* what on_broken was told */
static unsigned int	 refused, pongs, acks;
static int64_t		 goaway;	/* code, of the last that came */
static int32_t		 goaway_last;

/* How both behave. */
static size_t	 answer_len;	/* of either; or ECHO */
static size_t	 budget;	/* bytes that we take in each turn */
static size_t	 chunk;		/* bytes that we read at once */
static size_t	 padding;	/* of frames of the peer */
static size_t	 frame_max;	/* bytes of them */
static bool	 trailing;	/* there are trailers after each body */
static bool	 late_end;	/* a turn after the last byte of ours */
static struct h1_field	 fields[H1_FIELDS_MAX];	/* of our heads */
static size_t	 nfields;

/* From the peer to us. */
static unsigned char	 in[4 * 1024 * 1024];
static size_t		 inpos, inlen;

static inline void
fail(const char *why)
{
	if (fault == NULL)
		fault = why;
}

static inline unsigned char
body_byte(int32_t id, size_t pos)
{
	return (unsigned char)((size_t)id + pos % 251);
}

static inline void
make_body(struct end *e, int32_t id, unsigned char *p, size_t len)
{
	for (; len > 0; len--)
		*p++ = body_byte(id, e->sent++);
}

static inline void
check_body(struct end *e, int32_t id, const unsigned char *p, size_t len)
{
	for (; len > 0; len--)
		if (*p++ != body_byte(id, e->got++))
			fail("a body is not as it was sent");
}

/* ---- the wire ------------------------------------------------------------ */

static ssize_t
wire_give(void *buf, size_t len)
{
	if (inlen == 0)
		return -1;
	if (len > chunk)
		len = chunk;
	if (len > inlen)
		len = inlen;
	memcpy(buf, in + inpos, len);
	inpos += len;
	inlen -= len;
	return (ssize_t)len;
}

static void
wire_got(const unsigned char *p, size_t len)
{
	ssize_t	 n = nghttp2_session_mem_recv(peer, p, len);

	if (n < 0)
		fail(nghttp2_strerror((int)n));
	else if ((size_t)n != len)
		fail("nghttp2 reads no more");
}

static inline void
inject(const void *data, size_t len)
{
	if (inpos > 0)
		memmove(in, in + inpos, inlen);
	inpos = 0;
	if (len > sizeof(in) - inlen)
		fail("too much at once");
	else {
		memcpy(in + inlen, data, len);
		inlen += len;
	}
}

/* A frame as it is sent; the payload may be shorter than it says. */
static inline void
raw(size_t len, int type, int flags, int32_t id, const void *data,
    size_t datalen)
{
	unsigned char	 frame[H2_FRAME_HEAD + 256] = { len >> 16, len >> 8,
	    len, type, flags, id >> 24, id >> 16, id >> 8, id };

	CHECK(datalen <= 256);
	memcpy(frame + H2_FRAME_HEAD, data, datalen);
	inject(frame, H2_FRAME_HEAD + datalen);
}

/* ---- nghttp2 ------------------------------------------------------------- */

static ssize_t
peer_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	static uint8_t	 name[] = "x-sum", value[] = "1";
	nghttp2_nv	 sum = { name, value, 5, 1, NGHTTP2_NV_FLAG_NONE };
	struct end	*e = &theirs[id];

	(void)source, (void)arg;
	if (e->left == HELD)
		return NGHTTP2_ERR_DEFERRED;
	if (len > e->left)
		len = e->left;
	if (len > frame_max)
		len = frame_max;
	make_body(e, id, buf, len);
	if (e->left != FOREVER)
		e->left -= len;
	if (e->left > 0)
		return (ssize_t)len;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (trailing) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(session, id, &sum, 1);
	}
	return (ssize_t)len;
}

static nghttp2_data_provider	 provider = { .read_callback = peer_read };

static inline nghttp2_nv
pair(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name,
	    (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
	    NGHTTP2_NV_FLAG_NONE };
}

/* A request of the peer; its body is of so many bytes, if it has one. */
static inline int32_t
peer_request(bool body, size_t len)
{
	static nghttp2_nv	 nva[4 + H1_FIELDS_MAX];
	size_t			 i;
	int32_t			 id;

	nva[0] = pair(":method", body ? "POST" : "GET");
	nva[1] = pair(":scheme", "https");
	nva[2] = pair(":authority", "a.test");
	nva[3] = pair(":path", "/");
	for (i = 0; i < nfields; i++)
		nva[4 + i] = pair(fields[i].hf_name, fields[i].hf_value);
	id = nghttp2_submit_request(peer, NULL, nva, 4 + nfields,
	    body ? &provider : NULL, NULL);
	CHECK(id > 0 && id < IDS);
	theirs[id].left = body ? len : 0;
	return id;
}

static inline void
peer_answer(int32_t id)
{
	struct end	*e = &theirs[id];
	nghttp2_nv	 ok[1 + H1_FIELDS_MAX] = { pair(":status", "200") };
	size_t		 i;

	for (i = 0; i < nfields; i++)
		ok[1 + i] = pair(fields[i].hf_name, fields[i].hf_value);
	e->left = answer_len == ECHO ? e->got : answer_len;
	if (nghttp2_submit_response(peer, id, ok, 1 + nfields,
	    &provider) != 0)
		fail("nghttp2 does not answer");
}

static int
peer_on_header(nghttp2_session *session, const nghttp2_frame *frame,
    const uint8_t *name, size_t nlen, const uint8_t *value, size_t vlen,
    uint8_t flags, void *arg)
{
	struct end	*e = &theirs[frame->hd.stream_id];

	(void)session, (void)flags, (void)arg;
	e->head_bytes += nlen + vlen;
	if (nlen == 7 && memcmp(name, ":status", 7) == 0)
		e->status = (int)strtol((const char *)value, NULL, 10);
	if (frame->headers.cat == NGHTTP2_HCAT_HEADERS && nlen == 5 &&
	    memcmp(name, "x-sum", 5) == 0)
		e->trailers++;
	return 0;
}

static int
peer_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
    const uint8_t *data, size_t len, void *arg)
{
	(void)session, (void)flags, (void)arg;
	check_body(&theirs[id], id, data, len);
	return 0;
}

static inline void
peer_on_end(int32_t id)
{
	theirs[id].ended = true;
	if (!ours->h2_server)
		peer_answer(id);
}

static int
peer_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	int32_t	 id = frame->hd.stream_id;

	(void)session, (void)arg;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		theirs[id].heads++;
		/* FALLTHROUGH */
	case NGHTTP2_DATA:
		if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			peer_on_end(id);
		break;
	case NGHTTP2_RST_STREAM:
		theirs[id].code = frame->rst_stream.error_code;
		break;
	case NGHTTP2_PING:
		pongs += (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
		break;
	case NGHTTP2_SETTINGS:
		acks += (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
		break;
	case NGHTTP2_GOAWAY:
		goaway = frame->goaway.error_code;
		goaway_last = frame->goaway.last_stream_id;
	}
	return 0;
}

static int
peer_on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int code,
    void *arg)
{
	(void)session, (void)frame, (void)arg;
	fail(nghttp2_strerror(code));
	return 0;
}

static int
peer_on_error(nghttp2_session *session, int code, const char *text, size_t len,
    void *arg)
{
	(void)session, (void)text, (void)len, (void)arg;
	fail(nghttp2_strerror(code));
	return 0;
}

static ssize_t
peer_pad(nghttp2_session *session, const nghttp2_frame *frame, size_t max,
    void *arg)
{
	size_t	 len = frame->hd.length + padding;

	(void)session, (void)arg;
	return (ssize_t)(len < max ? len : max);
}

static inline void
peer_new(bool server)
{
	nghttp2_session_callbacks	*cb;
	nghttp2_option			*option;

	CHECK_INT(nghttp2_session_callbacks_new(&cb), 0);
	CHECK_INT(nghttp2_option_new(&option), 0);
	/* Until it knows better, so that it can be told. */
	nghttp2_option_set_peer_max_concurrent_streams(option, IDS);
	nghttp2_session_callbacks_set_on_header_callback(cb, peer_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb,
	    peer_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb,
	    peer_on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb,
	    peer_on_invalid);
	nghttp2_session_callbacks_set_error_callback2(cb, peer_on_error);
	nghttp2_session_callbacks_set_select_padding_callback(cb, peer_pad);
	CHECK_INT(server ?
	    nghttp2_session_server_new2(&peer, cb, NULL, option) :
	    nghttp2_session_client_new2(&peer, cb, NULL, option), 0);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(option);
}

static inline void
peer_set(int32_t setting, uint32_t value)
{
	nghttp2_settings_entry	 entry = { setting, value };

	CHECK_INT(nghttp2_submit_settings(peer, NGHTTP2_FLAG_NONE, &entry, 1),
	    0);
}

#endif /* H2_PEER_H */
