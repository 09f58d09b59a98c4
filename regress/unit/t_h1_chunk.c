/* SPDX-License-Identifier: ISC */

/* Tests of the chunked coding, each body cut in every way. */

#include "test.h"

#include "../../tlsengine/http/h1.h"

static char	 body[65536];
static size_t	 bodylen;

/*
 * Decodes in pieces of n bytes.  Returns how much was consumed, also of a body
 * that is not done, or -1.
 */
static ssize_t
decode_to(char *keep, size_t keepsz, struct h1_chunk *ck, const char *in,
    size_t inlen, size_t n)
{
	const char	*data;
	size_t		 used = 0, len, datalen;
	ssize_t		 r;

	memset(ck, 0, sizeof(*ck));
	ck->hc_keep = keep;
	ck->hc_keepsz = keepsz;
	bodylen = 0;
	while (used < inlen && !h1_chunk_done(ck)) {
		len = n < inlen - used ? n : inlen - used;
		if ((r = h1_chunk_decode(ck, in + used, len, &data,
		    &datalen)) == -1)
			return -1;
		CHECK(r > 0 && (size_t)r <= len);
		CHECK(bodylen + datalen <= sizeof(body));
		if (datalen > 0)
			memcpy(body + bodylen, data, datalen);
		bodylen += datalen;
		used += (size_t)r;
	}
	return (ssize_t)used;
}

static ssize_t
decode(struct h1_chunk *ck, const char *in, size_t inlen, size_t n)
{
	return decode_to(NULL, 0, ck, in, inlen, n);
}

static void
check_body(const char *in, size_t inlen, size_t used, const char *want)
{
	struct h1_chunk	 ck;
	size_t		 n;

	for (n = 1; n <= inlen; n++) {
		CHECK_FOR(in, decode(&ck, in, inlen, n) == (ssize_t)used);
		CHECK_FOR(in, h1_chunk_done(&ck));
		CHECK_MEM(body, bodylen, want, strlen(want));
	}
	CHECK_INT(ck.hc_total, strlen(want));
	/* Nothing short of the whole is done. */
	for (n = 0; n < used; n++) {
		CHECK_INT(decode(&ck, in, n, inlen), n);
		CHECK(!h1_chunk_done(&ck));
	}
}

static void
check_refused(const char *in, size_t inlen, const char *why)
{
	struct h1_chunk	 ck;
	const char	*data;
	size_t		 n, datalen;

	for (n = 1; n <= inlen; n++) {
		CHECK_FOR(in, decode(&ck, in, inlen, n) == -1);
		CHECK_STR(ck.hc_why, why);
	}
	CHECK_INT(h1_chunk_decode(&ck, "0\r\n\r\n", 5, &data, &datalen), -1);
}

#define BODY(in, rest, want)						\
	check_body(in rest, sizeof(in rest) - 1, sizeof(in) - 1, want)
#define REFUSED(in, why)						\
	check_refused(in, sizeof(in) - 1, why)

TEST(bodies)
{
	BODY("0\r\n\r\n", "", "");
	BODY("5\r\nhello\r\n0\r\n\r\n", "", "hello");
	BODY("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "", "hello world");
	BODY("a\r\n0123456789\r\nA\r\n0123456789\r\n000\r\n\r\n", "",
	    "01234567890123456789");
	BODY("0000000000000005\r\n\r\n\r\n\r\r\n0\r\n\r\n", "", "\r\n\r\n\r");
	BODY("5\r\n0\r\n\r\n\r\n0\r\n\r\n", "", "0\r\n\r\n");
}

TEST(what_follows_is_not_touched)
{
	BODY("1\r\nx\r\n0\r\n\r\n", "GET / HTTP/1.1\r\n", "x");
	BODY("0\r\n\r\n", "\r\n", "");
}

TEST(extensions_are_dropped)
{
	BODY("1;a=b\r\nx\r\n0;c\r\n\r\n", "", "x");
	BODY("1;a=\"b;c\" ; d\t\r\nx\r\n0;\r\n\r\n", "", "x");
}

TEST(trailers_are_dropped)
{
	BODY("0\r\nX-Sum: 5\r\n\r\n", "", "");
	BODY("1\r\nx\r\n0\r\nA:\r\nB: c\td\r\n\r\n", "x", "x");
	BODY("0\r\nContent-Length: 5\r\nHost: evil.test\r\n\r\n", "hello", "");
}

TEST(trailers_are_kept)
{
	static const char	 in[] = "1\r\nx\r\n0\r\nA: b\r\nC:d\r\n\r\nGET";
	static const char	 want[] = "A: b\r\nC:d\r\n\r\n";
	char			 keep[H1_TRAILER_MAX];
	struct h1_chunk		 ck;
	size_t			 n;

	for (n = 1; n < sizeof(in); n++) {
		CHECK_INT(decode_to(keep, sizeof(keep), &ck, in,
		    sizeof(in) - 1, n), sizeof(in) - 4);
		CHECK_MEM(keep, ck.hc_trailer, want, strlen(want));
	}
	CHECK_INT(decode_to(keep, strlen(want), &ck, in, sizeof(in) - 1, 9),
	    sizeof(in) - 4);
	keep[strlen(want) - 1] = '#';
	CHECK_INT(decode_to(keep, strlen(want) - 1, &ck, in, sizeof(in) - 1,
	    9), -1);
	CHECK_STR(ck.hc_why, "trailer section too long");
	CHECK_INT(keep[strlen(want) - 1], '#');
	CHECK_INT(decode_to(keep, sizeof(keep), &ck, "0\r\n\r\n", 5, 5), 5);
	CHECK_INT(ck.hc_trailer, 2);
}

TEST(sizes)
{
	REFUSED("\r\n", "no chunk size");
	REFUSED("x\r\n", "no chunk size");
	REFUSED("-1\r\n", "no chunk size");
	REFUSED("+1\r\n", "no chunk size");
	REFUSED(" 1\r\n", "no chunk size");
	REFUSED(";a\r\n", "no chunk size");
	REFUSED("\n1\r\nx", "no chunk size");
	REFUSED("0x1\r\nx", "illegal character after chunk size");
	REFUSED("1_0\r\n", "illegal character after chunk size");
	REFUSED("1 \r\nx", "illegal character after chunk size");
	REFUSED("1\t;a\r\nx", "illegal character after chunk size");
	REFUSED("1\nx\r\n", "illegal character after chunk size");
	REFUSED("1\0\r\n", "illegal character after chunk size");
	REFUSED("1\rx", "bare CR after chunk size");
	REFUSED("1\r\r\nx", "bare CR after chunk size");
}

TEST(large_sizes)
{
	struct h1_chunk	 ck;
	char		 in[] = "7ffffffffffffff0\r\n";

	REFUSED("8000000000000000\r\n", "chunk size too large");
	REFUSED("ffffffffffffffff\r\n", "chunk size too large");
	REFUSED("10000000000000000\r\n", "chunk size too large");
	REFUSED("00000000000000001\r\n", "chunk size too large");
	CHECK_INT(decode(&ck, in, sizeof(in) - 1, 1), sizeof(in) - 1);
	CHECK_INT(ck.hc_left, 0x7ffffffffffffff0);

	/* The sum must not wrap either. */
	CHECK_INT(decode(&ck, "f\r\n0123456789abcde\r\n", 20, 1), 20);
	ck.hc_total = INT64_MAX - 15;
	{
		const char	*data;
		size_t		 len;

		CHECK_INT(h1_chunk_decode(&ck, "10\r\n", 4, &data, &len), -1);
		CHECK_STR(ck.hc_why, "chunks too large");
	}
}

TEST(data_ends)
{
	REFUSED("1\r\nxy\r\n", "chunk longer than its size");
	REFUSED("1\r\nx\n0\r\n\r\n", "chunk longer than its size");
	REFUSED("1\r\nx\rx", "chunk longer than its size");
	REFUSED("1\r\nx0\r\n\r\n", "chunk longer than its size");
}

/* A reader that ends the line at LF sees another chunk here. */
TEST(extension_line_breaks)
{
	REFUSED("1;a\nx\r\n0\r\n\r\n",
	    "control character in chunk extension");
	REFUSED("1;a\0\r\nx", "control character in chunk extension");
	REFUSED("1;a\rx\r\n", "bare CR after chunk size");
	REFUSED("1;\n\r\nx", "control character in chunk extension");
}

TEST(trailer_syntax)
{
	REFUSED("0\r\n\n", "illegal character in trailer name");
	REFUSED("0\r\nA: b\nC: d\r\n\r\n", "control character in trailer");
	REFUSED("0\r\nA: b\r\n c\r\n\r\n", "illegal character in trailer name");
	REFUSED("0\r\nA : b\r\n\r\n", "illegal character in trailer name");
	REFUSED("0\r\n: b\r\n\r\n", "illegal character in trailer name");
	REFUSED("0\r\nGET / HTTP/1.1\r\n\r\n",
	    "illegal character in trailer name");
	REFUSED("0\r\nA\r\n\r\n", "illegal character in trailer name");
	REFUSED("0\r\nA: \0\r\n\r\n", "control character in trailer");
	REFUSED("0\r\nA: b\rC: d\r\n\r\n", "bare CR in trailer");
	REFUSED("0\r\n\rX", "bare CR in trailer");
}

TEST(limits)
{
	static char	 in[4 * H1_CHUNK_EXT_MAX];
	struct h1_chunk	 ck;
	size_t		 n = 0, i;

	in[n++] = '1';
	in[n++] = ';';
	memset(in + n, 'a', H1_CHUNK_LINE_MAX);
	n += H1_CHUNK_LINE_MAX;
	CHECK_INT(decode(&ck, in, n, n), n);
	in[n++] = 'a';
	CHECK_INT(decode(&ck, in, n, n), -1);
	CHECK_STR(ck.hc_why, "chunk extensions too long");

	for (n = 0, i = 0; i < 2 * H1_CHUNK_EXT_MAX / 10; i++, n += 16)
		memcpy(in + n, "1;123456789\r\nx\r\n", 16);
	CHECK_INT(decode(&ck, in, n, n), -1);
	CHECK_STR(ck.hc_why, "chunk extensions too long");
	CHECK_INT(bodylen, H1_CHUNK_EXT_MAX / 9);

	memcpy(in, "0\r\nA:", 5);
	memset(in + 5, 'a', H1_TRAILER_MAX);
	CHECK_INT(decode(&ck, in, 3 + H1_TRAILER_MAX, 7), 3 + H1_TRAILER_MAX);
	CHECK_INT(decode(&ck, in, 4 + H1_TRAILER_MAX, 7), -1);
	CHECK_STR(ck.hc_why, "trailer section too long");
}

TEST(header)
{
	static const struct {
		uint64_t	 len;
		const char	*want;
	} cases[] = {
		{ 1, "1\r\n" }, { 15, "f\r\n" }, { 16, "10\r\n" },
		{ 0x1a2b3c, "1a2b3c\r\n" },
		{ UINT64_MAX, "ffffffffffffffff\r\n" },
	};
	char			 out[H1_CHUNK_HEADER_MAX];
	size_t			 i, n;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		n = h1_chunk_header(out, cases[i].len);
		CHECK_MEM(out, n, cases[i].want, strlen(cases[i].want));
	}
	CHECK_INT(h1_chunk_header(out, 0), 0);
}

TEST(encoded_is_decoded)
{
	static char	 wire[70000];
	char		 header[H1_CHUNK_HEADER_MAX];
	struct h1_chunk	 ck;
	size_t		 len, n, wirelen = 0, total = 0;

	for (len = 1; len < 300; len += 7) {
		n = h1_chunk_header(header, len);
		memcpy(wire + wirelen, header, n);
		memset(wire + wirelen + n, 'd', len);
		memcpy(wire + wirelen + n + len, H1_CHUNK_END, 2);
		wirelen += n + len + 2;
		total += len;
	}
	memcpy(wire + wirelen, H1_CHUNK_LAST, strlen(H1_CHUNK_LAST));
	wirelen += strlen(H1_CHUNK_LAST);
	for (n = 1; n < 400; n++) {
		CHECK_INT(decode(&ck, wire, wirelen, n), wirelen);
		CHECK(h1_chunk_done(&ck));
		CHECK_INT(bodylen, total);
	}
}

TEST_MAIN("h1_chunk")
