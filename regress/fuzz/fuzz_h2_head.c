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
 * HTTP/2 heads.  The first byte of the input says what it is, then come
 * fields: the length of a name, or 0x80 and an index of a name that matters;
 * two bytes for the length of the value; both.  What is accepted must be one
 * HTTP/1 head, of as many lines as it has fields, and mean the same after it
 * was sent on as HTTP/2.
 */

#include <stdint.h>
#include <stdlib.h>

#include "../unit/h1_echo.h"
#include "../../tlsengine/h2_head.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)
#define IS_RESPONSE	0x80
#define IS_TRAILERS	0x40
#define ASKS_HEAD	0x20
#define ASKS_UPGRADE	0x10
#define END_STREAM	0x08
#define SHORT_BUFFER	0x04
#define KNOWN_NAME	0x80

static const char *const	 names[] = {
	":method", ":scheme", ":authority", ":path", ":protocol", ":status",
	"host", "cookie", "te", "content-length", "expect", "trailer",
	"connection", "proxy-x", "a", "x-http-method",
};
#define NNAMES	(sizeof(names) / sizeof(names[0]))

/* Each from memory of its own, so that a read beyond it is seen. */
static void
feed(struct h2_head *hh, const char *name, size_t nlen, const uint8_t *value,
    size_t vlen)
{
	char	*copy;
	int	 r, bad = hh->hh_error.he_reason != NULL;

	REQUIRE((copy = malloc(nlen + vlen + 1)) != NULL);
	memcpy(copy, name, nlen);
	memmove(copy + nlen + 1, value, vlen);
	r = h2_head_field(hh, copy, nlen, copy + nlen + 1, vlen);
	REQUIRE((r == -1) == (hh->hh_error.he_reason != NULL));
	REQUIRE(!bad || r == -1);
	REQUIRE(hh->hh_len <= hh->hh_tail && hh->hh_tail <= hh->hh_size);
	free(copy);
}

static void
feed_input(struct h2_head *hh, const uint8_t *p, size_t len)
{
	const char	*name;
	size_t		 nlen, vlen, kind;

	while (len >= 3) {
		kind = p[0];
		vlen = (size_t)p[1] << 8 | p[2];
		p += 3;
		len -= 3;
		name = (const char *)p;
		nlen = 0;
		if (kind & KNOWN_NAME) {
			name = names[(kind & ~KNOWN_NAME) % NNAMES];
			nlen = strlen(name);
		} else {
			nlen = kind < len ? kind : len;
			p += nlen;
			len -= nlen;
		}
		vlen = vlen < len ? vlen : len;
		feed(hh, name, nlen, p, vlen);
		p += vlen;
		len -= vlen;
	}
}

static void
feed_nv(struct h2_head *hh, const struct h2_nv *hn)
{
	size_t	 i;

	for (i = 0; i < hn->hn_n; i++)
		feed(hh, (const char *)hn->hn_nv[i].name,
		    hn->hn_nv[i].namelen, hn->hn_nv[i].value,
		    hn->hn_nv[i].valuelen);
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
	REQUIRE(hn.hn_n == (size_t)n);
	h2_head_begin(&back, H2_TRAILERS, buf, sizeof(buf));
	feed_nv(&back, &hn);
	REQUIRE(h2_head_trailers(&back, two, H1_FIELDS_MAX, &he) == n);
	for (i = 0; i < n; i++)
		REQUIRE(one[i].hf_nlen == two[i].hf_nlen &&
		    one[i].hf_vlen == two[i].hf_vlen &&
		    memcmp(one[i].hf_name, two[i].hf_name,
		    one[i].hf_nlen) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct h2_head	 hh;
	size_t		 bufsz;
	char		*buf;
	int		 kind;

	if (size < 1)
		return 0;
	kind = data[0];
	bufsz = kind & SHORT_BUFFER ? size : H1_HEAD_MAX;
	REQUIRE((buf = malloc(bufsz)) != NULL);
	h2_head_begin(&hh, kind & IS_TRAILERS ? H2_TRAILERS :
	    kind & IS_RESPONSE ? H2_RESPONSE : H2_REQUEST, buf, bufsz);
	feed_input(&hh, data + 1, size - 1);
	if (kind & IS_TRAILERS)
		fuzz_trailers(&hh);
	else
		fuzz_head(&hh, kind);
	free(buf);
	return 0;
}
