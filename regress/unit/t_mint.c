/* SPDX-License-Identifier: ISC */

/* Tests of tlsengine/tls/mint.c and cert.c: the CA, leaves and their cache. */

#include "test.h"

#include <time.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tlsengine/tls/mint.h"

#define HOUR	3600L
#define DAY	(24 * HOUR)

#define L60	"a23456789012345678901234567890123456789012345678901234567890"

/* The clock of the mint, the libraries and the tests. */
static time_t	 clock_offset;

time_t
time(time_t *t)
{
	struct timespec	 ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += clock_offset;
	if (t != NULL)
		*t = ts.tv_sec;
	return ts.tv_sec;
}

static struct mint *
new_mint(void)
{
	struct mint	*mt;
	const char	*why = NULL;

	mt = mint_new("job-42", &why);
	CHECK_STR(why, NULL);
	CHECK(mt != NULL);
	return mt;
}

static X509 *
ca_cert(const struct mint *mt)
{
	const unsigned char	*der;
	size_t			 len;
	X509			*ca;

	der = mint_ca_der(mt, &len);
	CHECK((ca = d2i_X509(NULL, &der, (long)len)) != NULL);
	return ca;
}

static X509 *
leaf_cert(struct mint *mt, const char *name)
{
	X509	*leaf;

	CHECK_FOR(name, mint_leaf(mt, name, &leaf) == 0);
	return leaf;
}

/* As a client would: chain, purpose and, unless NULL, the host. */
static int
verify(X509 *ca, X509 *leaf, int purpose, const char *host)
{
	X509_STORE	*store = X509_STORE_new();
	X509_STORE_CTX	*ctx = X509_STORE_CTX_new();
	int		 error;

	X509_STORE_add_cert(store, ca);
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	X509_STORE_CTX_set_purpose(ctx, purpose);
	X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT);
	error = X509_verify_cert(ctx) == 1 ? X509_V_OK :
	    X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	if (error == X509_V_OK && host != NULL &&
	    X509_check_host(leaf, host, 0, 0, NULL) != 1 &&
	    X509_check_ip_asc(leaf, host, 0) != 1)
		error = X509_V_ERR_HOSTNAME_MISMATCH;
	return error;
}

static int
serves(struct mint *mt, const char *name, const char *host)
{
	X509	*ca = ca_cert(mt), *leaf = leaf_cert(mt, name);
	int	 error = verify(ca, leaf, X509_PURPOSE_SSL_SERVER, host);

	X509_free(leaf);
	X509_free(ca);
	return error;
}

static time_t
seconds(const ASN1_TIME *at)
{
	struct tm	 tm;

	memset(&tm, 0, sizeof(tm));
	CHECK(ASN1_TIME_to_tm(at, &tm));
	return timegm(&tm);
}

static const char *
common_name(X509 *cert)
{
	static char	 cn[256];

	if (X509_NAME_get_text_by_NID(X509_get_subject_name(cert),
	    NID_commonName, cn, sizeof(cn)) == -1)
		return NULL;
	return cn;
}

TEST(ca_shape)
{
	time_t			 now = time(NULL);
	struct mint		*mt = new_mint();
	X509			*ca = ca_cert(mt);
	BASIC_CONSTRAINTS	*bc;
	int			 critical;

	CHECK_STR(common_name(ca), "egressd session job-42");
	CHECK_INT(X509_check_ca(ca), 1);
	bc = X509_get_ext_d2i(ca, NID_basic_constraints, &critical, NULL);
	CHECK(bc != NULL && bc->ca && critical == 1);
	CHECK_INT(ASN1_INTEGER_get(bc->pathlen), 0);
	BASIC_CONSTRAINTS_free(bc);
	CHECK_INT(X509_get_key_usage(ca), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	CHECK(X509_get_ext_by_NID(ca, NID_subject_key_identifier, -1) >= 0);
	CHECK(X509_get_ext_by_NID(ca, NID_name_constraints, -1) < 0);
	CHECK_INT(verify(ca, ca, X509_PURPOSE_ANY, NULL), X509_V_OK);
	CHECK(seconds(X509_get0_notBefore(ca)) - (now - 365 * DAY) <= 2);
	CHECK(mint_not_after(mt) - (now + 3650 * DAY) <= 2);
	CHECK_INT(seconds(X509_get0_notAfter(ca)), mint_not_after(mt));
	X509_free(ca);
	mint_free(mt);
}

TEST(ca_serials_are_random)
{
	struct mint	*a = new_mint(), *b = new_mint();
	X509		*ca = ca_cert(a), *cb = ca_cert(b);
	X509		*la = leaf_cert(a, "a.test");
	X509		*lb = leaf_cert(a, "b.test");
	const ASN1_INTEGER *sa = X509_get0_serialNumber(ca);

	CHECK(ASN1_INTEGER_cmp(sa, X509_get0_serialNumber(cb)) != 0);
	CHECK(ASN1_INTEGER_cmp(X509_get0_serialNumber(la),
	    X509_get0_serialNumber(lb)) != 0);
	CHECK_INT(ASN1_STRING_type(sa), V_ASN1_INTEGER);
	CHECK(ASN1_STRING_length(sa) > 12 && ASN1_STRING_length(sa) <= 16);
	CHECK(strcmp(mint_ca_fingerprint(a), mint_ca_fingerprint(b)) != 0);
	X509_free(la);
	X509_free(lb);
	X509_free(ca);
	X509_free(cb);
	mint_free(a);
	mint_free(b);
}

/* A common name ends at 64 bytes; two long ids do not become one. */
TEST(ca_of_a_long_id)
{
	const char	*why, *ids[] = { L60 "x", L60 "y" };
	struct mint	*mt;
	X509		*ca;
	char		 names[2][256];
	size_t		 i;

	for (i = 0; i < 2; i++) {
		mt = mint_new(ids[i], &why);
		CHECK(mt != NULL);
		ca = ca_cert(mt);
		strlcpy(names[i], common_name(ca), sizeof(names[i]));
		CHECK_INT(strlen(names[i]), 64);
		CHECK_INT(serves(mt, "a.test", "a.test"), X509_V_OK);
		X509_free(ca);
		mint_free(mt);
	}
	CHECK(strncmp(names[0], "egressd session a234", 20) == 0);
	CHECK(strcmp(names[0], names[1]) != 0);
}

TEST(ca_pem_and_fingerprint)
{
	struct mint	*mt = new_mint();
	X509		*ca = ca_cert(mt), *read;
	const char	*pem;
	unsigned char	 hash[32];
	char		 hex[65];
	size_t		 len, i;
	BIO		*bio;

	pem = mint_ca_pem(mt, &len);
	CHECK_INT(strlen(pem), len);
	CHECK(strstr(pem, "PRIVATE") == NULL);
	CHECK((bio = BIO_new_mem_buf(pem, (int)len)) != NULL);
	CHECK((read = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL);
	CHECK_INT(X509_cmp(ca, read), 0);
	CHECK(X509_digest(ca, EVP_sha256(), hash, NULL));
	for (i = 0; i < sizeof(hash); i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	CHECK_STR(mint_ca_fingerprint(mt), hex);
	BIO_free(bio);
	X509_free(read);
	X509_free(ca);
	mint_free(mt);
}

TEST(leaf_serves_its_name_only)
{
	struct mint	*mt = new_mint();

	CHECK_INT(serves(mt, "api.good.test", "api.good.test"), X509_V_OK);
	CHECK_INT(serves(mt, "api.good.test", "API.Good.test"), X509_V_OK);
	CHECK_INT(serves(mt, "api.good.test", "evil.test"),
	    X509_V_ERR_HOSTNAME_MISMATCH);
	CHECK_INT(serves(mt, "api.good.test", "good.test"),
	    X509_V_ERR_HOSTNAME_MISMATCH);
	CHECK_INT(serves(mt, "api.good.test", "x.api.good.test"),
	    X509_V_ERR_HOSTNAME_MISMATCH);
	CHECK_INT(serves(mt, "_dmarc.good.test", "_dmarc.good.test"),
	    X509_V_OK);
	CHECK_INT(serves(mt, "localhost", "localhost"), X509_V_OK);
	mint_free(mt);
}

TEST(leaf_serves_its_address_only)
{
	struct mint	*mt = new_mint();
	X509		*leaf;

	CHECK_INT(serves(mt, "192.0.2.1", "192.0.2.1"), X509_V_OK);
	CHECK_INT(serves(mt, "192.0.2.1", "192.0.2.2"),
	    X509_V_ERR_HOSTNAME_MISMATCH);
	CHECK_INT(serves(mt, "2001:db8::1", "2001:db8::1"), X509_V_OK);
	CHECK_INT(serves(mt, "2001:db8::1", "2001:db8::2"),
	    X509_V_ERR_HOSTNAME_MISMATCH);
	/* Not a name that looks like an address. */
	leaf = leaf_cert(mt, "192.0.2.1");
	CHECK(X509_check_ip_asc(leaf, "192.0.2.1", 0) == 1);
	CHECK(X509_check_host(leaf, "192.0.2.1", 0,
	    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 0);
	X509_free(leaf);
	mint_free(mt);
}

TEST(leaf_shape)
{
	struct mint		*mt = new_mint();
	X509			*ca = ca_cert(mt), *leaf;
	GENERAL_NAMES		*names;
	int			 critical;

	leaf = leaf_cert(mt, "api.good.test");
	CHECK_STR(common_name(leaf), "api.good.test");
	names = X509_get_ext_d2i(leaf, NID_subject_alt_name, &critical, NULL);
	CHECK_INT(sk_GENERAL_NAME_num(names), 1);
	CHECK_INT(critical, 0);
	GENERAL_NAMES_free(names);
	CHECK_INT(X509_check_ca(leaf), 0);
	CHECK_INT(X509_get_key_usage(leaf), KU_DIGITAL_SIGNATURE);
	CHECK_INT(X509_get_extended_key_usage(leaf), XKU_SSL_SERVER);
	CHECK_INT(X509_check_issued(ca, leaf), X509_V_OK);
	CHECK(X509_get_ext_by_NID(leaf, NID_authority_key_identifier, -1) >= 0);
	CHECK_INT(verify(ca, leaf, X509_PURPOSE_SSL_CLIENT, NULL),
	    X509_V_ERR_INVALID_PURPOSE);
	X509_free(leaf);
	X509_free(ca);
	mint_free(mt);
}

/* Too long for a common name: no subject, and the name is critical. */
TEST(leaf_of_a_long_name)
{
	const char	*name = L60 ".b.test";
	struct mint	*mt = new_mint();
	X509		*leaf = leaf_cert(mt, name);
	GENERAL_NAMES	*names;
	int		 critical;

	CHECK_INT(X509_NAME_entry_count(X509_get_subject_name(leaf)), 0);
	names = X509_get_ext_d2i(leaf, NID_subject_alt_name, &critical, NULL);
	CHECK(names != NULL);
	CHECK_INT(critical, 1);
	GENERAL_NAMES_free(names);
	CHECK_INT(serves(mt, name, name), X509_V_OK);
	CHECK_INT(serves(mt, L60 "." L60 "." L60 "." L60 ".test",
	    L60 "." L60 "." L60 "." L60 ".test"), X509_V_OK);
	X509_free(leaf);
	mint_free(mt);
}

TEST(leaf_of_another_session)
{
	struct mint	*a = new_mint(), *b = new_mint();
	X509		*ca = ca_cert(a), *leaf = leaf_cert(b, "a.test");

	CHECK(verify(ca, leaf, X509_PURPOSE_SSL_SERVER, "a.test") != X509_V_OK);
	X509_free(leaf);
	X509_free(ca);
	mint_free(a);
	mint_free(b);
}

TEST(leaf_refuses_what_is_not_canonical)
{
	static const char *const names[] = {
		"", ".", "*", "*.good.test", "api.*.test", "API.good.test",
		"api.good.test.", " api.good.test", "api good.test",
		"evil.test:443", "good.test@evil.test", "[::1]", "127.1",
		"0177.0.0.1", "2130706433", "0x7f.1", "2001:DB8::1",
		"2001:db8:0::1", "b\303\274cher.test", "a..test",
		"DNS:good.test", "good.test,DNS:evil.test",
		L60 "abcd.test", L60 "." L60 "." L60 "." L60 "." L60 ".test",
	};
	struct mint		*mt = new_mint();
	struct mint_stats	 ms;
	X509			*leaf;
	size_t			 i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CHECK_FOR(names[i], mint_leaf(mt, names[i], &leaf) == -1);
		CHECK_FOR(names[i], leaf == NULL);
	}
	mint_stats(mt, &ms);
	CHECK_INT(ms.ms_leaves, 0);
	mint_free(mt);
}

TEST(leaf_dates)
{
	struct mint	*mt = new_mint();
	X509		*leaf = leaf_cert(mt, "a.test");
	time_t		 from = seconds(X509_get0_notBefore(leaf));
	time_t		 to = seconds(X509_get0_notAfter(leaf)), now;

	now = time(NULL);
	CHECK(now - from >= DAY && now - from <= DAY + 60);
	CHECK_INT(to - from, 8 * DAY);
	X509_free(leaf);
	mint_free(mt);
}

/* Good for what is left of it: at any time six days more, and one before. */
static void
check_lasts(struct mint *mt, X509 *ca, const char *name)
{
	X509	*leaf = leaf_cert(mt, name);

	clock_offset -= DAY;
	CHECK_INT(verify(ca, leaf, X509_PURPOSE_SSL_SERVER, name), X509_V_OK);
	clock_offset += 7 * DAY;
	CHECK_INT(verify(ca, leaf, X509_PURPOSE_SSL_SERVER, name), X509_V_OK);
	clock_offset -= 6 * DAY;
	X509_free(leaf);
}

/* A session of three months, in steps of seven hours. */
TEST(leaf_over_time)
{
	struct mint		*mt = new_mint();
	struct mint_stats	 ms;
	X509			*ca = ca_cert(mt);

	for (; clock_offset < 90 * DAY; clock_offset += 7 * HOUR) {
		check_lasts(mt, ca, "a.test");
		check_lasts(mt, ca, "192.0.2.1");
	}
	mint_stats(mt, &ms);
	CHECK_INT(ms.ms_leaves, 2);
	/* Each leaf served for a day, and not for one lookup. */
	CHECK(ms.ms_misses > 2 * 60 && ms.ms_misses < 2 * 90);
	CHECK_INT(ms.ms_hits + ms.ms_misses, 2 * 309);
	clock_offset = 9 * 365 * DAY;
	check_lasts(mt, ca, "a.test");
	clock_offset = 0;
	X509_free(ca);
	mint_free(mt);
}

/* Suspended, set right by NTP, or wrong for a while. */
TEST(leaf_when_the_clock_jumps)
{
	static const long	 jumps[] = {
		HOUR, -1, -2 * DAY, 40 * DAY, -40 * DAY, -300 * DAY, 700 * DAY,
		0
	};
	struct mint		*mt = new_mint();
	X509			*ca = ca_cert(mt);
	size_t			 i;

	for (i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		clock_offset = jumps[i];
		check_lasts(mt, ca, "a.test");
	}
	X509_free(ca);
	mint_free(mt);
}

/* Of no use any more, and said so rather than served. */
TEST(ca_ends)
{
	struct mint	*mt = new_mint();
	X509		*leaf = leaf_cert(mt, "a.test");

	X509_free(leaf);
	clock_offset = 3649 * DAY;
	CHECK(!mint_expired(mt));
	leaf = leaf_cert(mt, "a.test");
	CHECK_INT(seconds(X509_get0_notAfter(leaf)), mint_not_after(mt));
	X509_free(leaf);
	clock_offset = 3651 * DAY;
	CHECK(mint_expired(mt));
	CHECK_INT(mint_leaf(mt, "a.test", &leaf), -1);
	clock_offset = 3649 * DAY;
	CHECK_INT(serves(mt, "a.test", "a.test"), X509_V_OK);
	clock_offset = 0;
	mint_free(mt);
}

TEST(cache_hits)
{
	struct mint		*mt = new_mint();
	struct mint_stats	 ms;
	X509			*a = leaf_cert(mt, "a.test");
	X509			*b = leaf_cert(mt, "b.test");
	X509			*again = leaf_cert(mt, "a.test");

	CHECK(a == again && a != b);
	mint_stats(mt, &ms);
	CHECK_INT(ms.ms_hits, 1);
	CHECK_INT(ms.ms_misses, 2);
	CHECK_INT(ms.ms_leaves, 2);
	CHECK_INT(ms.ms_evictions, 0);
	X509_free(a);
	X509_free(b);
	X509_free(again);
	mint_free(mt);
}

static void
touch(struct mint *mt, const char *fmt, int i)
{
	char	 name[64];

	snprintf(name, sizeof(name), fmt, i);
	X509_free(leaf_cert(mt, name));
}

TEST(cache_is_bounded)
{
	struct mint		*mt = new_mint();
	struct mint_stats	 ms;
	int			 i;

	for (i = 0; i < MINT_LEAVES_MAX; i++)
		touch(mt, "n%d.test", i);
	touch(mt, "n%d.test", 0);
	touch(mt, "new%d.test", 0);
	mint_stats(mt, &ms);
	CHECK_INT(ms.ms_leaves, MINT_LEAVES_MAX);
	CHECK_INT(ms.ms_evictions, 1);
	CHECK_INT(ms.ms_hits, 1);
	/* The one unused for longest is gone, one just used is not. */
	touch(mt, "n%d.test", 0);
	mint_stats(mt, &ms);
	CHECK_INT(ms.ms_hits, 2);
	touch(mt, "n%d.test", 1);
	mint_stats(mt, &ms);
	CHECK_INT(ms.ms_hits, 2);
	CHECK_INT(ms.ms_leaves, MINT_LEAVES_MAX);
	mint_free(mt);
}

TEST(free_accepts_null)
{
	mint_free(NULL);
}

TEST_MAIN("mint")
