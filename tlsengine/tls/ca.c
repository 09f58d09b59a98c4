/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the CA of the session, from the first configuration to
 * the last.  It is made here, or given by the operator, and its key is nowhere
 * else; a given one that a reload replaces is replaced here, too.  Clients load
 * a CA once and do not look again, so policyd and the log are told of each new
 * one and of an end that comes near.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jks.h"
#include "log.h"
#include "nssdb.h"
#include "tlsengine.h"

#define JAVA_PASSWORD	"changeit"	/* Java's own default; no secret */
#define DAY_S		(24 * 60 * 60)
#define LOOK_S		(60 * 60)	/* the wall clock may be set */

struct mint		*mint;
SSL_CTX			*server_ctx;

static struct event	 look;
static size_t		 warned;	/* of the warnings, given */

/* The CA as Java reads it; the caller frees. */
unsigned char *
trust_java(size_t *len)
{
	struct jks_entry	 entry = { .je_alias = "egressd" };
	unsigned char		*java;

	entry.je_der = mint_ca_der(mint, &entry.je_derlen);
	if (jks_write(&entry, 1, JAVA_PASSWORD, time(NULL), &java, len) == -1)
		fatalx("session %s: Java trust store", child_session);
	return java;
}

/* The CA as NSS reads it: two files; the caller frees both. */
void
trust_nss(struct trust_file *certs, struct trust_file *keys)
{
	const unsigned char	*der;
	size_t			 len;

	der = mint_ca_der(mint, &len);
	if (nssdb_certs(der, len, &certs->tf_data, &certs->tf_len) == -1 ||
	    nssdb_keys(&keys->tf_data, &keys->tf_len) == -1)
		fatal("session %s: NSS database", child_session);
}

static void
publish(void)
{
	unsigned char	*java;
	size_t		 len, javalen;

	java = trust_java(&javalen);
	ipc_send(child_parent, -1, ENGINE_TRUST, engine_trust,
	    .ca = mint_ca_pem(mint, &len), .java = { java, javalen });
	free(java);
	ipc_send(policyd, -1, ENGINE_CA, engine_ca,
	    .sha256 = mint_ca_fingerprint(mint),
	    .not_after = (uint64_t)mint_not_after(mint));
}

/* ---- its end ------------------------------------------------------------- */

static void
warn_of_end(time_t left)
{
	time_t		 end = mint_not_after(mint);
	char		 date[32] = "?";
	struct tm	 tm;

	if (left <= 0) {
		log_errorx("session %s: CA has expired: every TLS connection "
		    "is refused until a reload brings another",
		    child_session);
		return;
	}
	if (gmtime_r(&end, &tm) != NULL)
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	log_warnx("session %s: CA expires in %lld %s, at %s", child_session,
	    (long long)(left >= DAY_S ? left / DAY_S : left / 60),
	    left >= DAY_S ? "days" : "minutes", date);
}

/* Each warning once; again if the clock was set back behind its time. */
static void
ca_look(evutil_socket_t fd, short what, void *arg)
{
	static const time_t	 before[] = { 30 * DAY_S, 7 * DAY_S, DAY_S, 0 };
	struct timeval		 tv = { .tv_sec = LOOK_S };
	time_t			 left = mint_not_after(mint) - time(NULL);
	size_t			 i, n = sizeof(before) / sizeof(before[0]);

	(void)fd, (void)what, (void)arg;
	for (i = 0; i < n && left <= before[i]; i++)
		;
	if (i > warned)
		warn_of_end(left);
	warned = i;
	if (i < n && left - before[i] < LOOK_S)
		tv.tv_sec = left - before[i];
	event_add(&look, &tv);
}

/* ---- its beginning ------------------------------------------------------- */

static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *outlen,
    const unsigned char *in, unsigned int inlen, void *arg)
{
	static const unsigned char	 ours[] = "\x02h2\x08http/1.1";
	unsigned char			*chosen;

	(void)ssl, (void)arg;
	if (SSL_select_next_proto(&chosen, outlen, ours, sizeof(ours) - 1, in,
	    inlen) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Connections under way keep the context and the leaf they began with. */
static void
ca_use(struct mint *mt)
{
	SSL_CTX	*ctx;

	if ((ctx = mint_server_ctx(mt)) == NULL)
		fatalx("session %s: no TLS context", child_session);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	SSL_CTX_free(server_ctx);
	mint_free(mint);
	mint = mt;
	server_ctx = ctx;
	log_info("session %s: CA %s", child_session, mint_ca_fingerprint(mt));
	publish();
	warned = 0;
	ca_look(-1, 0, NULL);
}

/*
 * A CA that is given in vain ends the start.  At a reload it leaves the one in
 * force where it is: what clients trust is worth more than a renewal.
 */
void
ca_commit(const struct secret *cert, const struct secret *key)
{
	struct mint	*mt;
	const char	*why;

	if (cert != NULL && key != NULL)
		mt = mint_load(cert->sc_data, cert->sc_len, key->sc_data,
		    key->sc_len, &why);
	else
		mt = mint_new(child_session, &why);
	if (mt == NULL && mint == NULL)
		fatalx("session %s: CA: %s", child_session, why);
	if (mt == NULL) {
		log_errorx("session %s: CA: %s: the one before stays",
		    child_session, why);
		return;
	}
	if (mint == NULL)
		evtimer_assign(&look, child_base, ca_look, NULL);
	ca_use(mt);
}
