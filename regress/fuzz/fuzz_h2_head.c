/* SPDX-License-Identifier: ISC */

/*
 * HTTP/2 heads.  The first byte of the input says what it is, then come
 * fields: the length of a name, or 0x80 and an index of a name that matters;
 * two bytes for the length of the value; both.  What is accepted must be one
 * HTTP/1 head, of as many lines as it has fields, mean what the HTTP/1 parser
 * makes of that text (h2_same.h), and mean the same after it was sent on as
 * HTTP/2.  If the fields come more than once over one connection, as whatever
 * they come, what was noted about them before must change nothing.
 */

#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdlib.h>

#include "../unit/h1_echo.h"
#include "../unit/h2_same.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)
#define IS_RESPONSE	0x80
#define IS_TRAILERS	0x40
#define ASKS_HEAD	0x20
#define ASKS_UPGRADE	0x10
#define END_STREAM	0x08
#define SHORT_BUFFER	0x04
#define KNOWN_NAME	0x80
#define NV_MAX		512	/* fields that come again */

static const char *const	 names[] = {
	":method", ":scheme", ":authority", ":path", ":protocol", ":status",
	"host", "cookie", "te", "content-length", "expect", "trailer",
	"connection", "proxy-x", "a", "x-http-method",
};
#define NNAMES	(sizeof(names) / sizeof(names[0]))

static nghttp2_nv	 nva[NV_MAX];
static size_t		 nnv;

static void
feed(struct h2_head *hh, const struct hpack_field *hp)
{
	int	 r, bad = hh->hh_error.he_reason != NULL;

	r = h2_head_field(hh, hp);
	REQUIRE((r == -1) == (hh->hh_error.he_reason != NULL));
	REQUIRE(!bad || r == -1);
	REQUIRE(hh->hh_len <= hh->hh_tail && hh->hh_tail <= hh->hh_size);
	REQUIRE(hh->hh_nfields <= H1_FIELDS_MAX);
}

/* Each from memory of its own, so that a read beyond it is seen. */
static void
feed_copy(struct h2_head *hh, const nghttp2_nv *nv)
{
	uint8_t			 memos[2] = { 0, 0 };
	struct hpack_field	 hp;
	char			*name, *value;

	REQUIRE((name = malloc(nv->namelen)) != NULL || nv->namelen == 0);
	REQUIRE((value = malloc(nv->valuelen)) != NULL || nv->valuelen == 0);
	if (nv->namelen > 0)
		memcpy(name, nv->name, nv->namelen);
	if (nv->valuelen > 0)
		memcpy(value, nv->value, nv->valuelen);
	hp = (struct hpack_field){ name, nv->namelen, value, nv->valuelen,
	    &memos[0], &memos[1] };
	feed(hh, &hp);
	free(name);
	free(value);
}

static void
feed_input(struct h2_head *hh)
{
	size_t	 i;

	for (i = 0; i < nnv; i++)
		feed_copy(hh, &nva[i]);
}

static void
read_input(const uint8_t *p, size_t len)
{
	nghttp2_nv	*nv = nva;
	size_t		 kind;

	for (; len >= 3 && nv < nva + NV_MAX; nv++) {
		kind = p[0];
		nv->valuelen = (size_t)p[1] << 8 | p[2];
		nv->flags = NGHTTP2_NV_FLAG_NONE;
		p += 3;
		len -= 3;
		nv->name = (uint8_t *)(uintptr_t)p;
		if (kind & KNOWN_NAME) {
			nv->name = (uint8_t *)(uintptr_t)
			    names[(kind & ~KNOWN_NAME) % NNAMES];
			nv->namelen = strlen((char *)nv->name);
		} else {
			nv->namelen = kind < len ? kind : len;
			p += nv->namelen;
			len -= nv->namelen;
		}
		if (nv->valuelen > len)
			nv->valuelen = len;
		nv->value = (uint8_t *)(uintptr_t)p;
		p += nv->valuelen;
		len -= nv->valuelen;
	}
	nnv = (size_t)(nv - nva);
}

static void
on_field(void *arg, const struct hpack_field *hp)
{
	feed(arg, hp);
}

/* Our block, as a peer would read it. */
static void
feed_nv(struct h2_head *hh, const struct h2_nv *hn)
{
	struct hpack_decoder	 hk;

	hpack_decoder_init(&hk);
	REQUIRE(hpack_decode(&hk, hn->hn_block, hn->hn_len, on_field,
	    hh) == 0);
	hpack_decoder_free(&hk);
}

static ssize_t
parse(struct h2_head *hh, int kind, struct h1_head *hd)
{
	struct h1_error	 he = { 0, NULL };
	ssize_t		 n;

	if (kind & IS_RESPONSE)
		n = h2_head_response(hh, kind & END_STREAM,
		    kind & ASKS_HEAD ? H1_HEAD : H1_GET, kind & ASKS_UPGRADE,
		    hd, &he);
	else
		n = h2_head_request(hh, kind & END_STREAM, hd, &he);
	REQUIRE((n == -1) == (he.he_reason != NULL && he.he_status >= 400));
	REQUIRE(h2_differs(hh, n, kind & ASKS_HEAD ? H1_HEAD : H1_GET,
	    kind & ASKS_UPGRADE, hd, &he) == NULL);
	return n;
}

/* The lines are the fields, and the limits are those of HTTP/1. */
static void
require_text(const char *text, size_t len, const struct h1_head *hd)
{
	struct h1_scan	 st = { 0 };
	struct h1_error	 he;
	size_t		 i, lines = 0;

	for (i = 0; i < len; i++)
		lines += text[i] == '\n';
	REQUIRE(lines == hd->hd_nfields + 2);
	REQUIRE(h1_scan(&st, text, len, &he) == (int)len);
	REQUIRE(hd->hd_framing != H1_UNTIL_CLOSE);
}

/* -1 if its path has no canonical form. */
static int
send_on(struct h2_nv *hn, const struct h2_head *hh, const struct h1_head *hd)
{
	static struct h1_echo	 ec;
	struct h1_out_response	 rs;

	if (!hd->hd_is_request) {
		rs = h1_echo_out_response(hd);
		REQUIRE(h2_nv_response(hn, &rs) == 0);
		return 0;
	}
	if (hh->hh_scheme == NULL || h1_echo_out_request(hd, &ec) == -1)
		return -1;
	REQUIRE(h2_nv_request(hn, &ec.rq, hh->hh_scheme,
	    hh->hh_extended) == 0);
	return 0;
}

static void
fuzz_head(struct h2_head *hh, int kind)
{
	static struct h1_head	 hd, again;
	static struct h2_head	 back;
	static struct h2_nv	 hn;
	static char		 buf[H1_HEAD_MAX];
	ssize_t			 n;

	if ((n = parse(hh, kind, &hd)) == -1)
		return;
	REQUIRE((size_t)n == hh->hh_len && hh->hh_len <= hh->hh_size);
	require_text(hh->hh_buf, hh->hh_len, &hd);
	if (send_on(&hn, hh, &hd) == -1)
		return;
	h2_head_begin(&back, kind & IS_RESPONSE ? H2_RESPONSE : H2_REQUEST,
	    buf, sizeof(buf));
	feed_nv(&back, &hn);
	/* A path may grow when it is made canonical. */
	if (parse(&back, kind, &again) == -1) {
		REQUIRE(back.hh_error.he_status == 431 ||
		    back.hh_error.he_status == 414);
		return;
	}
	require_text(buf, back.hh_len, &again);
	REQUIRE(h1_echo_same(&hd, &again));
	REQUIRE(back.hh_extended == hh->hh_extended);
}

static void
fuzz_trailers(struct h2_head *hh)
{
	static struct h1_field	 one[H1_FIELDS_MAX], two[H1_FIELDS_MAX];
	static struct h2_head	 back;
	static struct h2_nv	 hn;
	static char		 buf[H1_TRAILER_MAX];
	struct h1_error		 he = { 0, NULL };
	ssize_t			 n, i;

	n = h2_head_trailers(hh, one, H1_FIELDS_MAX, &he);
	REQUIRE((n == -1) == (he.he_reason != NULL));
	if (n == -1)
		return;
	REQUIRE(h2_nv_trailers(&hn, one, (size_t)n) == 0);
	h2_head_begin(&back, H2_TRAILERS, buf, sizeof(buf));
	feed_nv(&back, &hn);
	REQUIRE(h2_head_trailers(&back, two, H1_FIELDS_MAX, &he) == n);
	for (i = 0; i < n; i++)
		REQUIRE(one[i].hf_nlen == two[i].hf_nlen &&
		    one[i].hf_vlen == two[i].hf_vlen &&
		    memcmp(one[i].hf_name, two[i].hf_name,
		    one[i].hf_nlen) == 0 &&
		    memcmp(one[i].hf_value, two[i].hf_value,
		    one[i].hf_vlen) == 0);
}

/* ---- the same again ------------------------------------------------------ */

static void
require_same(const struct h2_head *a, const struct h2_head *b)
{
	size_t	 i;

	REQUIRE(a->hh_error.he_reason == b->hh_error.he_reason &&
	    a->hh_error.he_status == b->hh_error.he_status);
	REQUIRE(a->hh_len == b->hh_len &&
	    memcmp(a->hh_buf, b->hh_buf, a->hh_len) == 0);
	REQUIRE(a->hh_scheme == b->hh_scheme &&
	    a->hh_extended == b->hh_extended && a->hh_host == b->hh_host &&
	    a->hh_length == b->hh_length && a->hh_cookie == b->hh_cookie &&
	    a->hh_nfields == b->hh_nfields);
	for (i = 0; i < a->hh_nfields; i++)
		REQUIRE(a->hh_fields[i].hf_class == b->hh_fields[i].hf_class &&
		    a->hh_fields[i].hf_vlen == b->hh_fields[i].hf_vlen &&
		    a->hh_fields[i].hf_value - a->hh_buf ==
		    b->hh_fields[i].hf_value - b->hh_buf);
}

/* 0 if it is longer than a block may be. */
static int
feed_again(struct h2_head *hh, nghttp2_hd_deflater *deflater,
    struct hpack_decoder *hk)
{
	static uint8_t	 block[HPACK_BLOCK_MAX];
	ssize_t		 n;

	n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), nva, nnv);
	if (n < 0)
		return 0;
	REQUIRE(hpack_decode(hk, block, (size_t)n, on_field, hh) == 0);
	return 1;
}

static void
fuzz_again(void)
{
	static const enum h2_kind	 turns[] = { H2_REQUEST, H2_RESPONSE,
	    H2_TRAILERS, H2_RESPONSE, H2_REQUEST };
	static struct h2_head		 fresh, again;
	static char			 buf[2][H1_HEAD_MAX];
	nghttp2_hd_deflater		*deflater;
	struct hpack_decoder		 hk;
	size_t				 i;

	REQUIRE(nghttp2_hd_deflate_new(&deflater, HPACK_TABLE_SIZE) == 0);
	hpack_decoder_init(&hk);
	for (i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		h2_head_begin(&fresh, turns[i], buf[0], sizeof(buf[0]));
		h2_head_begin(&again, turns[i], buf[1], sizeof(buf[1]));
		feed_input(&fresh);
		if (!feed_again(&again, deflater, &hk))
			break;
		require_same(&fresh, &again);
	}
	hpack_decoder_free(&hk);
	nghttp2_hd_deflate_del(deflater);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct h2_head	 hh;
	size_t			 bufsz;
	char			*buf;
	int			 kind;

	if (size < 1)
		return 0;
	kind = data[0];
	bufsz = kind & SHORT_BUFFER ? size : H1_HEAD_MAX;
	REQUIRE((buf = malloc(bufsz)) != NULL);
	h2_head_begin(&hh, kind & IS_TRAILERS ? H2_TRAILERS :
	    kind & IS_RESPONSE ? H2_RESPONSE : H2_REQUEST, buf, bufsz);
	read_input(data + 1, size - 1);
	feed_input(&hh);
	if (kind & IS_TRAILERS)
		fuzz_trailers(&hh);
	else
		fuzz_head(&hh, kind);
	free(buf);
	fuzz_again();
	return 0;
}
