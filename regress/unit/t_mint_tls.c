/* SPDX-License-Identifier: ISC */

/* Tests of tlsengine/tls/mint.c and mint_warm.c: TLS, the library as client. */

#include <sys/time.h>

#include "test.h"

#include <sys/wait.h>

#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <seccomp.h>
#endif

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "common/hostname.h"
#include "tlsengine/tls/mint.h"

#define HOUR	3600L
#define DAY	(24 * HOUR)

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

/* OpenSSL 3.5 tells the time of a session by this one. */
int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec	 ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec + clock_offset;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

/* One server, one client, and the wire between them. */
struct pair {
	SSL	*server;
	SSL	*client;
};

struct bench {
	struct mint	*mint;
	SSL_CTX		*sctx;
	SSL_CTX		*cctx;
};

static int
trust(SSL_CTX *ctx, const struct mint *mt)
{
	const unsigned char	*der;
	size_t			 len;
	X509			*ca;
	int			 ok;

	der = mint_ca_der(mt, &len);
	ca = d2i_X509(NULL, &der, (long)len);
	ok = ca != NULL &&
	    X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca);
	X509_free(ca);
	return ok;
}

static void
bench_open(struct bench *b)
{
	const char	*why;

	b->mint = mint_new("job-42", &why);
	CHECK(b->mint != NULL);
	CHECK((b->sctx = mint_server_ctx(b->mint)) != NULL);
	CHECK((b->cctx = SSL_CTX_new(TLS_client_method())) != NULL);
	SSL_CTX_set_verify(b->cctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(b->cctx, SSL_SESS_CACHE_CLIENT |
	    SSL_SESS_CACHE_NO_INTERNAL);
	CHECK(trust(b->cctx, b->mint));
}

static void
bench_close(struct bench *b)
{
	SSL_CTX_free(b->cctx);
	SSL_CTX_free(b->sctx);
	mint_free(b->mint);
}

/*
 * The server serves `name', or nothing; the client says and expects `sni', or
 * says nothing.  An address is expected but not said (RFC 6066, 3).
 */
static void
pair_open(struct pair *p, struct bench *b, int version, const char *name,
    const char *sni)
{
	BIO	*a, *c;
	char	 said[64];

	CHECK((p->server = SSL_new(b->sctx)) != NULL);
	CHECK((p->client = SSL_new(b->cctx)) != NULL);
	CHECK(SSL_set_min_proto_version(p->client, version));
	CHECK(SSL_set_max_proto_version(p->client, version));
	if (sni != NULL) {
		strlcpy(said, sni, sizeof(said));
		CHECK(hostname_is_addr(sni) ||
		    SSL_set_tlsext_host_name(p->client, said));
		CHECK(hostname_is_addr(sni) ? X509_VERIFY_PARAM_set1_ip_asc(
		    SSL_get0_param(p->client), sni) :
		    SSL_set1_host(p->client, sni));
	}
	if (name != NULL)
		CHECK_INT(mint_use(b->mint, p->server, name), 0);
	CHECK(BIO_new_bio_pair(&a, 0, &c, 0));
	SSL_set_bio(p->server, a, a);
	SSL_set_bio(p->client, c, c);
	SSL_set_accept_state(p->server);
	SSL_set_connect_state(p->client);
}

static void
pair_close(struct pair *p)
{
	/* Or the library takes the session for a broken one. */
	SSL_set_shutdown(p->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(p->server);
	SSL_free(p->client);
	ERR_clear_error();
}

static int
shake(struct pair *p)
{
	int	 i, c = 0, s = 0;

	for (i = 0; i < 10 && (c != 1 || s != 1); i++) {
		c = SSL_do_handshake(p->client);
		s = SSL_do_handshake(p->server);
	}
	return c == 1 && s == 1 ? 0 : -1;
}

/* A byte each way; in TLS 1.3 it brings the tickets along. */
static int
ping(struct pair *p)
{
	char	 byte;

	return SSL_write(p->server, "x", 1) == 1 &&
	    SSL_read(p->client, &byte, 1) == 1 && byte == 'x' &&
	    SSL_write(p->client, "y", 1) == 1 &&
	    SSL_read(p->server, &byte, 1) == 1 && byte == 'y' ? 0 : -1;
}

static SSL_SESSION *
first_session(struct bench *b, int version, const char *name)
{
	struct pair	 p;
	SSL_SESSION	*session;

	pair_open(&p, b, version, name, name);
	CHECK_INT(shake(&p), 0);
	CHECK_INT(ping(&p), 0);
	CHECK((session = SSL_get1_session(p.client)) != NULL);
#ifndef LIBRESSL_VERSION_NUMBER		/* where it says no to every one */
	CHECK(SSL_SESSION_is_resumable(session));
#endif
	pair_close(&p);
	return session;
}

/* Whether a session is resumed; if not, the server shows its own leaf. */
static int
resumes(struct bench *b, SSL_SESSION *session, int version, const char *name,
    const char *sni)
{
	struct pair	 p;
	X509		*leaf;
	int		 reused;

	pair_open(&p, b, version, name, sni);
	SSL_set_verify(p.client, SSL_VERIFY_NONE, NULL);
	CHECK(SSL_set_session(p.client, session));
	CHECK_INT(shake(&p), 0);
	CHECK_INT(ping(&p), 0);
	reused = SSL_session_reused(p.server);
	CHECK_INT(SSL_session_reused(p.client), reused);
	CHECK((leaf = SSL_get_peer_certificate(p.client)) != NULL);
	CHECK(X509_check_host(leaf, name, 0, 0, NULL) == 1 ||
	    X509_check_ip_asc(leaf, name, 0) == 1);
	X509_free(leaf);
	pair_close(&p);
	return reused;
}

#ifdef __linux__
/* Kills whoever opens anything, by path or by socket. */
static int
confine(void)
{
	static const int	 calls[] = {
		SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2),
		SCMP_SYS(socket), SCMP_SYS(connect), SCMP_SYS(stat),
		SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(readlink),
		SCMP_SYS(readlinkat), SCMP_SYS(execve), SCMP_SYS(clone),
	};
	scmp_filter_ctx		 ctx;
	size_t			 i;
	int			 error = 0;

	if ((ctx = seccomp_init(SCMP_ACT_ALLOW)) == NULL)
		return -1;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		error |= seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, calls[i],
		    0);
	error |= seccomp_load(ctx);
	seccomp_release(ctx);
	return error;
}

static void
confined_work(void)
{
	struct bench	 b;
	SSL_SESSION	*session;

	bench_open(&b);
	session = first_session(&b, TLS1_2_VERSION, "a.test");
	resumes(&b, session, TLS1_2_VERSION, "b.test", "b.test");
	SSL_SESSION_free(session);
	session = first_session(&b, TLS1_3_VERSION, "192.0.2.1");
	SSL_SESSION_free(session);
	bench_close(&b);
}
#endif

/* Runs first, as nothing may have been opened before mint_warm(). */
TEST(warm_is_enough)
{
#ifdef __linux__
	pid_t	 pid;
	int	 status;

	CHECK((pid = fork()) != -1);
	if (pid == 0) {
		if (mint_warm() == -1 || confine() != 0)
			_exit(2);
		if (setjmp(test_exit) != 0)
			_exit(3);
		confined_work();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!WIFSIGNALED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
#else
	SKIP("no seccomp");
#endif
}

static void
handshake(int version)
{
	struct bench	 b;
	struct pair	 p;

	bench_open(&b);
	pair_open(&p, &b, version, "api.good.test", "api.good.test");
	CHECK_INT(shake(&p), 0);
	CHECK_INT(ping(&p), 0);
	CHECK_INT(SSL_version(p.server), version);
	CHECK_INT(SSL_get_verify_result(p.client), X509_V_OK);
	/* The root is not sent: whoever trusts it has it. */
	CHECK_INT(sk_X509_num(SSL_get_peer_cert_chain(p.client)), 1);
	CHECK(SSL_get_current_compression(p.server) == NULL);
	CHECK(strstr(SSL_get_cipher_name(p.server), "GCM") != NULL);
	pair_close(&p);
	pair_open(&p, &b, version, "2001:db8::1", "other.test");
	CHECK_INT(shake(&p), -1);
	CHECK_INT(SSL_get_verify_result(p.client),
	    X509_V_ERR_HOSTNAME_MISMATCH);
	pair_close(&p);
	bench_close(&b);
}

TEST(handshake_tls12)
{
	handshake(TLS1_2_VERSION);
}

TEST(handshake_tls13)
{
	handshake(TLS1_3_VERSION);
}

TEST(refuses_tls11)
{
#ifdef LIBRESSL_VERSION_NUMBER
	SKIP("LibreSSL has no client of TLS 1.1");
#else
	struct bench	 b;
	struct pair	 p;

	bench_open(&b);
	/* The client may, or it would be its refusal that is seen. */
	SSL_CTX_set_cipher_list(b.cctx, "ALL:@SECLEVEL=0");
	pair_open(&p, &b, TLS1_1_VERSION, "a.test", "a.test");
	CHECK_INT(SSL_do_handshake(p.client), -1);
	CHECK_INT(SSL_get_error(p.client, -1), SSL_ERROR_WANT_READ);
	ERR_clear_error();
	CHECK_INT(SSL_do_handshake(p.server), -1);
	CHECK_INT(ERR_GET_REASON(ERR_peek_last_error()),
	    SSL_R_UNSUPPORTED_PROTOCOL);
	pair_close(&p);
	bench_close(&b);
#endif
}

TEST(refuses_a_bad_name)
{
	struct bench	 b;
	SSL		*ssl;

	bench_open(&b);
	CHECK((ssl = SSL_new(b.sctx)) != NULL);
	CHECK_INT(mint_use(b.mint, ssl, "*.good.test"), -1);
	CHECK_INT(mint_use(b.mint, ssl, "EVIL.test"), -1);
	SSL_free(ssl);
	bench_close(&b);
}

/* A server that was given no name has no leaf to show. */
TEST(serves_nobody_unnamed)
{
	struct bench	 b;
	struct pair	 p;

	bench_open(&b);
	pair_open(&p, &b, TLS1_3_VERSION, NULL, "a.test");
	CHECK_INT(shake(&p), -1);
	pair_close(&p);
	pair_open(&p, &b, TLS1_2_VERSION, NULL, "a.test");
	CHECK_INT(shake(&p), -1);
	pair_close(&p);
	bench_close(&b);
}

static void
resume_same_name(int version)
{
	struct bench	 b;
	SSL_SESSION	*session;

	bench_open(&b);
	session = first_session(&b, version, "a.test");
	CHECK_INT(resumes(&b, session, version, "a.test", "a.test"), 1);
	SSL_SESSION_free(session);
	bench_close(&b);
}

/*
 * A session made for one name is worth nothing under another, whether the
 * client says the new name, sticks to the old one or says none.
 */
static void
resume_other_name(int version)
{
	struct bench	 b;
	SSL_SESSION	*session;

	bench_open(&b);
	session = first_session(&b, version, "a.test");
	CHECK_INT(resumes(&b, session, version, "b.test", "b.test"), 0);
	CHECK_INT(resumes(&b, session, version, "b.test", "a.test"), 0);
	CHECK_INT(resumes(&b, session, version, "b.test", NULL), 0);
	CHECK_INT(resumes(&b, session, version, "192.0.2.1", "a.test"), 0);
	/* Nor did that spoil it. */
	CHECK_INT(resumes(&b, session, version, "a.test", "a.test"), 1);
	SSL_SESSION_free(session);
	bench_close(&b);
}

static void
resume_other_session(int version)
{
	struct bench	 a, b;
	SSL_SESSION	*session;

	bench_open(&a);
	bench_open(&b);
	session = first_session(&a, version, "a.test");
	CHECK_INT(resumes(&b, session, version, "a.test", "a.test"), 0);
	SSL_SESSION_free(session);
	bench_close(&b);
	bench_close(&a);
}

TEST(resume_tls12)
{
	resume_same_name(TLS1_2_VERSION);
}

TEST(resume_tls13)
{
#ifdef LIBRESSL_VERSION_NUMBER
	SKIP("LibreSSL does not resume TLS 1.3");
#endif
	resume_same_name(TLS1_3_VERSION);
}

TEST(resume_under_another_name_tls12)
{
	resume_other_name(TLS1_2_VERSION);
}

TEST(resume_under_another_name_tls13)
{
#ifdef LIBRESSL_VERSION_NUMBER
	SKIP("LibreSSL does not resume TLS 1.3");
#endif
	resume_other_name(TLS1_3_VERSION);
}

/*
 * A month of handshakes: one context and one CA, which the client has loaded
 * once and verifies each time.  A ticket is good for hours and no longer, by
 * whichever clock, and one that is not costs a handshake and no connection.
 */
static void
month(int version)
{
	struct bench	 b;
	struct pair	 p;
	SSL_SESSION	*session;
	int		 day;

	bench_open(&b);
	for (day = 0; day <= 31; day++) {
		clock_offset = day * DAY;
		session = first_session(&b, version, "a.test");
		clock_offset += HOUR;
		CHECK_INT(resumes(&b, session, version, "a.test", "a.test"), 1);
		clock_offset += 23 * HOUR;
		CHECK_INT(resumes(&b, session, version, "a.test", "a.test"), 0);
		SSL_SESSION_free(session);
		pair_open(&p, &b, version, "a.test", "a.test");
		CHECK_INT(shake(&p), 0);
		CHECK_INT(SSL_get_verify_result(p.client), X509_V_OK);
		pair_close(&p);
	}
	clock_offset = 0;
	bench_close(&b);
}

TEST(month_of_tls12)
{
	month(TLS1_2_VERSION);
}

TEST(month_of_tls13)
{
#ifdef LIBRESSL_VERSION_NUMBER
	SKIP("LibreSSL does not resume TLS 1.3");
#endif
	month(TLS1_3_VERSION);
}

TEST(resume_in_another_session)
{
	resume_other_session(TLS1_2_VERSION);
	resume_other_session(TLS1_3_VERSION);
}

TEST(no_early_data)
{
#ifdef LIBRESSL_VERSION_NUMBER
	SKIP("LibreSSL has no early data");
#else
	struct bench	 b;
	SSL_SESSION	*session;

	bench_open(&b);
	session = first_session(&b, TLS1_3_VERSION, "a.test");
	CHECK_INT(SSL_SESSION_get_max_early_data(session), 0);
	SSL_SESSION_free(session);
	bench_close(&b);
#endif
}

TEST(no_renegotiation)
{
	struct bench	 b;
	struct pair	 p;
	char		 byte;
	int		 n;

	bench_open(&b);
	pair_open(&p, &b, TLS1_2_VERSION, "a.test", "a.test");
	CHECK_INT(shake(&p), 0);
	CHECK_INT(ping(&p), 0);
	CHECK(SSL_renegotiate(p.client));
	SSL_do_handshake(p.client);
	SSL_read(p.server, &byte, 1);
	CHECK((n = SSL_do_handshake(p.client)) <= 0);
	CHECK_INT(SSL_get_error(p.client, n), SSL_ERROR_SSL);
	pair_close(&p);
	bench_close(&b);
}

/* The context outlives the mint, and connections both. */
TEST(order_of_freeing)
{
	struct bench	 b;
	struct pair	 p;

	bench_open(&b);
	pair_open(&p, &b, TLS1_3_VERSION, "a.test", "a.test");
	mint_free(b.mint);
	b.mint = NULL;
	SSL_CTX_free(b.sctx);
	b.sctx = NULL;
	CHECK_INT(shake(&p), 0);
	CHECK_INT(ping(&p), 0);
	pair_close(&p);
	bench_close(&b);
}

TEST_MAIN("mint_tls")
