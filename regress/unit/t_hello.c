/* SPDX-License-Identifier: ISC */

/*
 * Tests of tlsengine/tls/hello.c.  The samples are the fuzzer's corpus: first
 * flights of real clients, and hand-made ones named for what is odd in them.
 */

#include "test.h"

#include "tlsengine/tls/hello.h"

#define SAMPLES		"regress/fuzz/corpus/fuzz_hello/"
#define GOOD		"api.good.test"
#define TLS10		0x0301
#define TLS12		0x0303
#define TLS13		0x0304
#define H2		(HELLO_ALPN | HELLO_ALPN_H2)
#define H11		(HELLO_ALPN | HELLO_ALPN_HTTP11)

/* With a name, without (name is NULL), or malformed (why is not NULL). */
static const struct sample {
	const char	*file;
	const char	*name;
	const char	*why;
	unsigned int	 flags;
	uint16_t	 version;
} done[] = {
	{ "openssl-tls13", GOOD, NULL, 0, TLS13 },
	{ "openssl-tls12", GOOD, NULL, H11, TLS12 },
	{ "openssl-tls1", GOOD, NULL, 0, TLS10 },
	{ "openssl-no-sni", NULL, NULL, 0, TLS13 },
	{ "openssl-alpn-other", GOOD, NULL, HELLO_ALPN | HELLO_ALPN_OTHER,
	    TLS13 },
	{ "openssl-split", GOOD, NULL, 0, TLS13 },
	{ "openssl-early-data", GOOD, NULL, HELLO_EARLY_DATA | HELLO_PSK,
	    TLS13 },
	{ "curl-h2", GOOD, NULL, H2 | H11, TLS13 },
	{ "openssl-upper-dot", "API.Good.TEST.", NULL, 0, TLS13 },
	{ "curl-ip", NULL, NULL, H2 | H11, TLS13 },
	{ "python", GOOD, NULL, 0, TLS13 },
	{ "node", GOOD, NULL, H2 | H11, TLS13 },
	{ "java", GOOD, NULL, H2 | H11, TLS13 },
	{ "pq-grease", GOOD, NULL, H2 | H11 | HELLO_ECH, TLS13 },
	{ "pq-grease-100", GOOD, NULL, H2 | H11 | HELLO_ECH, TLS13 },
	{ "one-byte-records", GOOD, NULL, 0, TLS13 },
	{ "trailing-records", GOOD, NULL, 0, TLS13 },
	{ "trailing-in-record", GOOD, NULL, 0, TLS13 },
	{ "esni", GOOD, NULL, HELLO_ECH, TLS13 },
	{ "no-extensions", NULL, NULL, 0, TLS12 },
	{ "ssl3", NULL, NULL, HELLO_SSL, 0x0300 },
	{ "versions-grease-only", GOOD, NULL, HELLO_SSL, 0 },
	{ "sni-nul", NULL, "NUL in server name", 0, TLS13 },
	{ "sni-256", NULL, "server name longer than 255 bytes", 0, TLS13 },
	{ "sni-empty", NULL, "empty server name", 0, TLS13 },
	{ "sni-no-list", NULL, "server name list does not fit its extension",
	    0, TLS13 },
	{ "sni-empty-list", NULL, "empty server name list", 0, TLS13 },
	{ "sni-long-list", NULL, "server name list does not fit its extension",
	    0, TLS13 },
	{ "sni-rest", NULL, "server name list does not fit its extension",
	    0, TLS13 },
	{ "sni-two-names", NULL, "more than one server name", 0, TLS13 },
	{ "sni-other-type", NULL, "server name is not a host name", 0, TLS13 },
};

static const struct {
	const char	*file;
	const char	*why;
	unsigned int	 flags;
} refused[] = {
	{ "sni-twice", "extension given twice", 0 },
	{ "alpn-bad", "malformed ALPN extension", 0 },
	{ "alpn-empty", "malformed ALPN extension", 0 },
	{ "versions-odd", "malformed supported versions extension", 0 },
	{ "extension-overrun", "extension does not fit the hello", 0 },
	{ "rest-after-extensions", "extensions do not fit the hello", 0 },
	{ "alert-inside", "not a TLS handshake", 0 },
	{ "empty-record", "record length out of range", 0 },
	{ "record-too-long", "record length out of range", 0 },
	{ "too-long", "hello longer than 32 KiB", 0 },
	{ "server-hello", "not a client hello", 0 },
	{ "http", "not a TLS handshake", 0 },
	{ "ssh", "not a TLS handshake", 0 },
	{ "sslv2", "SSLv2 hello", HELLO_SSL },
};

#define NDONE		(sizeof(done) / sizeof(done[0]))
#define NREFUSED	(sizeof(refused) / sizeof(refused[0]))

static size_t
sample(const char *file, unsigned char buf[HELLO_MAX])
{
	char	 path[256];
	FILE	*fp;
	size_t	 len;

	snprintf(path, sizeof(path), SAMPLES "%s", file);
	CHECK_FOR(path, (fp = fopen(path, "rb")) != NULL);
	len = fread(buf, 1, HELLO_MAX, fp);
	fclose(fp);
	CHECK_FOR(path, len > 0);
	return len;
}

/* In memory of just that size, so that a sanitizer sees a read beyond. */
static enum hello_result
parse(const unsigned char *data, size_t len, struct hello *he)
{
	unsigned char		*exact;
	enum hello_result	 result;

	CHECK((exact = malloc(len > 0 ? len : 1)) != NULL);
	memcpy(exact, data, len);
	memset(he, 0xa5, sizeof(*he));
	result = hello_parse(exact, len, he);
	free(exact);
	return result;
}

static void
check_done(const struct sample *sa, const struct hello *he)
{
	const char	*f = sa->file;

	CHECK_FOR(f, he->he_flags == sa->flags);
	CHECK_FOR(f, he->he_version == sa->version);
	CHECK_STR(he->he_why, sa->why);
	if (sa->why != NULL)
		CHECK_FOR(f, he->he_sni == HELLO_SNI_MALFORMED);
	else if (sa->name == NULL)
		CHECK_FOR(f, he->he_sni == HELLO_SNI_NONE);
	else {
		CHECK_FOR(f, he->he_sni == HELLO_SNI_NAME);
		CHECK_FOR(f, he->he_namelen == strlen(sa->name));
		CHECK_STR(he->he_name, sa->name);
	}
}

TEST(reads_samples)
{
	unsigned char	 buf[HELLO_MAX];
	struct hello	 he;
	size_t		 i, len;

	for (i = 0; i < NDONE; i++) {
		len = sample(done[i].file, buf);
		CHECK_FOR(done[i].file, parse(buf, len, &he) == HELLO_DONE);
		check_done(&done[i], &he);
	}
}

TEST(refuses_samples)
{
	unsigned char	 buf[HELLO_MAX];
	struct hello	 he;
	size_t		 i, len;

	for (i = 0; i < NREFUSED; i++) {
		len = sample(refused[i].file, buf);
		CHECK_FOR(refused[i].file, parse(buf, len, &he) == HELLO_BAD);
		CHECK_STR(he.he_why, refused[i].why);
		CHECK_FOR(refused[i].file,
		    (he.he_flags & HELLO_SSL) == refused[i].flags);
	}
}

/* MORE until it is decided, and the same ever after. */
static void
check_prefixes(const char *file, enum hello_result want)
{
	unsigned char		 buf[HELLO_MAX];
	struct hello		 he;
	enum hello_result	 result, before = HELLO_MORE;
	size_t			 n, len = sample(file, buf);

	for (n = 0; n <= len; n++) {
		result = parse(buf, n, &he);
		CHECK_FOR(file, result == HELLO_MORE || result == want);
		CHECK_FOR(file, before == HELLO_MORE || result == before);
		before = result;
	}
	CHECK_FOR(file, before == want);
}

TEST(reads_any_segments)
{
	size_t	 i;

	for (i = 0; i < NDONE; i++)
		check_prefixes(done[i].file, HELLO_DONE);
	for (i = 0; i < NREFUSED; i++)
		check_prefixes(refused[i].file, HELLO_BAD);
	check_prefixes("cut", HELLO_MORE);
}

/* The handshake bytes of one sample in records of another size. */
static size_t
cut_records(const unsigned char *in, size_t len, size_t size,
    unsigned char out[HELLO_MAX])
{
	static unsigned char	 joined[HELLO_MAX];
	size_t			 have = 0, part, n = 0, i;

	for (i = 0; i + 5 <= len && in[i] == 22; i += 5 + part) {
		part = (size_t)in[i + 3] << 8 | in[i + 4];
		memcpy(joined + have, in + i + 5, part);
		have += part;
	}
	for (i = 0; i < have; i += part) {
		part = size < have - i ? size : have - i;
		if (n + 5 + part > HELLO_MAX)
			return 0;
		memcpy(out + n, "\x16\x03\x01", 3);
		out[n + 3] = (unsigned char)(part >> 8);
		out[n + 4] = (unsigned char)part;
		memcpy(out + n + 5, joined + i, part);
		n += 5 + part;
	}
	return n;
}

TEST(reads_any_records)
{
	static const size_t	 sizes[] = { 1, 2, 3, 4, 5, 7, 43, 100, 511 };
	unsigned char		 buf[HELLO_MAX], cut[HELLO_MAX];
	struct hello		 he;
	size_t			 i, s, len, n;

	for (i = 0; i < NDONE; i++) {
		len = sample(done[i].file, buf);
		for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			n = cut_records(buf, len, sizes[s], cut);
			CHECK_FOR(done[i].file, n > 0);
			CHECK_FOR(done[i].file,
			    parse(cut, n, &he) == HELLO_DONE);
			check_done(&done[i], &he);
		}
	}
}

TEST(name_of_255_bytes)
{
	unsigned char	 buf[HELLO_MAX];
	struct hello	 he;
	size_t		 len = sample("sni-255", buf);

	CHECK_INT(parse(buf, len, &he), HELLO_DONE);
	CHECK_INT(he.he_sni, HELLO_SNI_NAME);
	CHECK_INT(he.he_namelen, 255);
	CHECK_INT(strlen(he.he_name), 255);
}

TEST(knows_others_by_the_first_byte)
{
	struct hello	 he;
	int		 c;
	unsigned char	 byte;

	for (c = 0; c < 256; c++) {
		byte = (unsigned char)c;
		CHECK_INT(parse(&byte, 1, &he), c == 22 ? HELLO_MORE :
		    HELLO_BAD);
	}
	CHECK_INT(parse((const unsigned char *)"\x16\x02", 2, &he), HELLO_BAD);
	CHECK_INT(parse((const unsigned char *)"\x16\x03", 2, &he),
	    HELLO_MORE);
}

/* A hello of so many bytes, records and all, most of them one extension. */
static void
big_hello(unsigned char *buf, size_t total)
{
	size_t	 records = (total + 16388) / 16389, message, i, part;
	unsigned char *m = malloc(total);

	CHECK(m != NULL);
	message = total - 5 * records;
	memset(m, 0, message);
	m[0] = 1;
	m[2] = (unsigned char)((message - 4) >> 8);
	m[3] = (unsigned char)(message - 4);
	m[4] = m[5] = 3;
	m[40] = 2;			/* ciphers, after an empty id */
	m[43] = 1;			/* compression */
	m[45] = (unsigned char)((message - 47) >> 8);
	m[46] = (unsigned char)(message - 47);
	m[47] = m[48] = 0x77;
	m[49] = (unsigned char)((message - 51) >> 8);
	m[50] = (unsigned char)(message - 51);
	for (i = 0; i < message; i += part) {
		part = message - i < 16384 ? message - i : 16384;
		memcpy(buf, "\x16\x03\x01", 3);
		buf[3] = (unsigned char)(part >> 8);
		buf[4] = (unsigned char)part;
		memcpy(buf + 5, m + i, part);
		buf += 5 + part;
	}
	free(m);
}

TEST(is_bounded)
{
	static unsigned char	 buf[HELLO_MAX + 1];
	struct hello		 he;

	big_hello(buf, HELLO_MAX);
	CHECK_INT(parse(buf, HELLO_MAX - 1, &he), HELLO_MORE);
	CHECK_INT(parse(buf, HELLO_MAX, &he), HELLO_DONE);
	big_hello(buf, HELLO_MAX + 1);
	CHECK_INT(parse(buf, HELLO_MAX - 1, &he), HELLO_MORE);
	CHECK_INT(parse(buf, HELLO_MAX, &he), HELLO_BAD);
	CHECK_INT(parse(buf, HELLO_MAX + 1, &he), HELLO_BAD);
	CHECK_STR(he.he_why, "hello longer than 32 KiB");
}

TEST_MAIN("hello")
