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
 * tlsengine runs this: the origin's side.  A connection is made by the dialer
 * under a grant for one exchange, verified here, and kept for later requests
 * to the same place under the same rule and generation.  What an origin sends
 * is as hostile as what an agent sends.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "hostname.h"
#include "log.h"
#include "tlsengine.h"

#define POOLS		256	/* buckets */
#define IDLE_MAX	256	/* connections kept in all pools */
#define INTERIM_MAX	16	/* 1xx answers to one request */
#define SESSIONS	256	/* places whose TLS session is kept */

TAILQ_HEAD(pool, upstream);
LIST_HEAD(dials, upstream);

static struct pool	 pools[POOLS];
static struct dials	 dials[POOLS];
static TAILQ_HEAD(, upstream) dead = TAILQ_HEAD_INITIALIZER(dead);
static struct event	 bury;
static SSL_CTX		*client_ctx;
static uint32_t		 last_id;
static unsigned int	 nidle;

/* Sessions to resume.  All were verified under the one trust we have. */
static struct {
	struct place	 place;
	SSL_SESSION	*session;
} sessions[SESSIONS];

static void	 up_on_read(struct io *);
static void	 up_on_drain(struct io *);
static void	 up_on_secure(struct io *, const char *);
static void	 up_on_error(struct io *, const char *);
static void	 up_answer(struct upstream *);

static const struct io_ops up_ops = {
	.on_read = up_on_read,
	.on_drain = up_on_drain,
	.on_secure = up_on_secure,
	.on_error = up_on_error,
};

static unsigned int
place_bucket(const struct place *pc)
{
	const char	*p;
	uint32_t	 h = pc->pc_port;

	for (p = pc->pc_host; *p != '\0'; p++)
		h = h * 31 + (unsigned char)*p;
	return h % POOLS;
}

/* ---- TLS ----------------------------------------------------------------- */

/* TLS 1.3 hands out tickets after the handshake, whenever it likes. */
static int
keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct upstream	*up = SSL_get_app_data(ssl);
	unsigned int	 i = place_bucket(&up->up_place) % SESSIONS;

	SSL_SESSION_free(sessions[i].session);
	sessions[i].session = session;
	sessions[i].place = up->up_place;
	return 1;
}

static int
load_trust(X509_STORE *store, const void *pem, size_t len)
{
	BIO	*bio;
	X509	*x;
	int	 n = 0;

	if ((bio = BIO_new_mem_buf(pem, len)) == NULL)
		return 0;
	while ((x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		n += X509_STORE_add_cert(store, x) == 1;
		X509_free(x);
	}
	ERR_clear_error();
	BIO_free(bio);
	return n;
}

static SSL_CTX *
make_client_ctx(void)
{
	static const unsigned char	 alpn[] = "\x08http/1.1";
	const struct secret		*pem = trust_bundle();
	SSL_CTX				*ctx;

	if ((ctx = SSL_CTX_new(TLS_client_method())) == NULL)
		return NULL;
	if (load_trust(SSL_CTX_get_cert_store(ctx), pem->sc_data,
	    pem->sc_len) == 0) {
		log_warnx("upstream trust: no certificate can be read");
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx),
	    X509_V_FLAG_PARTIAL_CHAIN);
	SSL_CTX_set_alpn_protos(ctx, alpn, sizeof(alpn) - 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
	    SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, keep_session);
	return ctx;
}

/*
 * Origins are verified against a bundle of a hundred roots and more, which
 * takes longer to read than all else at a start: it is read with the first
 * request that needs it.
 */
static SSL_CTX *
up_ctx(void)
{
	if (client_ctx == NULL)
		client_ctx = make_client_ctx();
	return client_ctx;
}

/* Another bundle: what was verified under the old one counts no more. */
void
upstream_trust_changed(void)
{
	unsigned int	 i;

	SSL_CTX_free(client_ctx);
	client_ctx = NULL;
	for (i = 0; i < SESSIONS; i++) {
		SSL_SESSION_free(sessions[i].session);
		sessions[i].session = NULL;
	}
}

void
upstream_init(void)
{
	unsigned int	 i;

	for (i = 0; i < POOLS; i++)
		TAILQ_INIT(&pools[i]);
}

static int
up_secure(struct upstream *up)
{
	char		*host = up->up_place.pc_host;
	unsigned int	 i = place_bucket(&up->up_place) % SESSIONS;
	SSL		*ssl;

	if (up_ctx() == NULL || (ssl = SSL_new(client_ctx)) == NULL)
		return -1;
	SSL_set_app_data(ssl, up);
	SSL_set_connect_state(ssl);
	if (hostname_is_addr(host)) {
		if (!X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host))
			goto fail;
	} else {
		SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		if (!SSL_set1_host(ssl, host) ||
		    !SSL_set_tlsext_host_name(ssl, host))
			goto fail;
	}
	if (sessions[i].session != NULL &&
	    place_same(&sessions[i].place, &up->up_place))
		SSL_set_session(ssl, sessions[i].session);
	up->up_state = UP_HANDSHAKE;
	return io_secure(&up->up_io, ssl, NULL, 0);
fail:
	SSL_free(ssl);
	return -1;
}

/* ---- life and death ------------------------------------------------------ */

static void
up_bury(evutil_socket_t fd, short what, void *arg)
{
	struct upstream	*up;

	(void)fd, (void)what, (void)arg;
	while ((up = TAILQ_FIRST(&dead)) != NULL) {
		TAILQ_REMOVE(&dead, up, up_entry);
		free(up->up_head);
		blocks_put(&in_blocks, up->up_in);
		free(up);
	}
}

static void
pool_remove(struct upstream *up)
{
	TAILQ_REMOVE(&pools[place_bucket(&up->up_place)], up, up_entry);
	nidle--;
}

void
upstream_drop(struct upstream *up)
{
	if (up->up_dead)
		return;
	up->up_dead = true;
	if (up->up_state == UP_DIAL)
		LIST_REMOVE(up, up_hash);
	if (up->up_state == UP_IDLE)
		pool_remove(up);
	if (up->up_open)
		io_close(&up->up_io);
	event_del(&up->up_timer);
	up->up_ex = NULL;
	TAILQ_INSERT_TAIL(&dead, up, up_entry);
	if (!event_initialized(&bury))
		event_assign(&bury, child_base, -1, 0, up_bury, NULL);
	event_active(&bury, EV_TIMEOUT, 1);
}

/* The connection is of no use; whoever waits for it hears why. */
static void
up_fail(struct upstream *up, const char *reason, const char *detail)
{
	struct exchange	*ex = up->up_ex;
	char		 why[128];
	bool		 busy = up->up_state == UP_BUSY;

	if (ex == NULL) {
		upstream_drop(up);
		return;
	}
	if (busy) {
		exchange_up_lost(ex, reason);
		return;
	}
	if (detail != NULL)
		snprintf(why, sizeof(why), "%s: %s", reason, detail);
	else
		strlcpy(why, reason, sizeof(why));
	upstream_drop(up);
	exchange_no_upstream(ex, why);
}

static void
up_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct upstream	*up = arg;

	(void)fd, (void)what;
	switch (up->up_state) {
	case UP_IDLE:
		upstream_drop(up);
		break;
	case UP_BUSY:
		up_fail(up, up->up_in_body ? "stream_broken" :
		    "upstream_unreachable: no answer in time", NULL);
		break;
	case UP_DIAL:
	case UP_HANDSHAKE:
	case UP_READY:
		up_fail(up, "upstream_unreachable", "no handshake in time");
	}
}

static struct upstream *
up_by_id(uint32_t id)
{
	struct upstream	*up;

	LIST_FOREACH(up, &dials[id % POOLS], up_hash)
		if (up->up_id == id)
			return up;
	return NULL;
}

/* A connection for this exchange, as soon as there is a grant: its number. */
uint32_t
upstream_dial(struct exchange *ex)
{
	struct upstream	*up;

	if ((up = calloc(1, sizeof(*up))) == NULL)
		fatal("%s", __func__);
	do
		up->up_id = ++last_id;
	while (up->up_id == 0 || up_by_id(up->up_id) != NULL);
	up->up_state = UP_DIAL;
	up->up_place = ex->ex_place;
	up->up_ex = ex;
	ex->ex_up = up;
	event_assign(&up->up_timer, child_base, -1, 0, up_on_timer, up);
	event_priority_set(&up->up_timer, 1);
	LIST_INSERT_HEAD(&dials[up->up_id % POOLS], up, up_hash);
	return up->up_id;
}

int
tlsengine_dialer_dialed(struct ipc *ip, const union msg *m)
{
	struct upstream	*up = up_by_id(m->dialed.dial);
	int		 fd = ipc_take_fd(ip);

	if (up == NULL) {
		if (fd != -1)
			close(fd);
		return 0;
	}
	LIST_REMOVE(up, up_hash);
	up->up_state = UP_HANDSHAKE;
	if (fd == -1) {
		up_fail(up, "upstream_unreachable", "no free descriptor");
		return 0;
	}
	strlcpy(up->up_address, m->dialed.address, sizeof(up->up_address));
	up->up_generation = generation;
	io_init(&up->up_io, child_base, fd, &up_ops, up);
	up->up_open = true;
	set_timer(&up->up_timer, settings.st_handshake_ms);
	if (up->up_place.pc_scheme == URL_HTTP)
		exchange_connected(up->up_ex, up);
	else if (up_secure(up) == -1)
		up_fail(up, "upstream_unreachable", "out of memory");
	return 0;
}

int
tlsengine_dialer_dial_failed(struct ipc *ip, const union msg *m)
{
	struct upstream	*up = up_by_id(m->dial_failed.dial);

	(void)ip;
	if (up == NULL)
		return 0;
	LIST_REMOVE(up, up_hash);
	up->up_state = UP_HANDSHAKE;
	if (m->dial_failed.failure == DIAL_ADDRESS_REFUSED)
		up_fail(up, "address_refused", NULL);
	else
		up_fail(up, "upstream_unreachable", m->dial_failed.why);
	return 0;
}

static void
up_on_secure(struct io *io, const char *why)
{
	struct upstream	*up = io->io_arg;
	long		 verdict;

	if (why != NULL) {
		verdict = io->io_ssl == NULL ? X509_V_OK :
		    SSL_get_verify_result(io->io_ssl);
		if (verdict != X509_V_OK)
			up_fail(up, "upstream_untrusted",
			    X509_verify_cert_error_string(verdict));
		else
			up_fail(up, "upstream_unreachable", why);
		return;
	}
	exchange_connected(up->up_ex, up);
}

/* ---- the pool ------------------------------------------------------------ */

/* Whether there is a connection that the verdict may turn out to allow. */
bool
upstream_kept(const struct place *pc)
{
	struct upstream	*up;

	TAILQ_FOREACH(up, &pools[place_bucket(pc)], up_entry)
		if (place_same(&up->up_place, pc))
			return true;
	return false;
}

struct upstream *
upstream_take(const struct exchange *ex)
{
	struct pool	*pool = &pools[place_bucket(&ex->ex_place)];
	struct upstream	*up;

	TAILQ_FOREACH(up, pool, up_entry)
		if (up->up_generation == generation &&
		    up->up_rule == ex->ex_ruling.rl_rule &&
		    place_same(&up->up_place, &ex->ex_place))
			break;
	if (up == NULL)
		return NULL;
	pool_remove(up);
	up->up_state = UP_BUSY;
	up->up_reused = true;
	return up;
}

/* An exchange is done with it. */
void
upstream_release(struct upstream *up, bool reusable)
{
	struct pool	*pool = &pools[place_bucket(&up->up_place)];

	up->up_ex = NULL;
	if (!reusable || !up->up_keep || up->up_io.io_broken ||
	    up->up_io.io_eof || up->up_inpos != up->up_inlen ||
	    io_pending(&up->up_io) || nidle == IDLE_MAX ||
	    up->up_generation != generation) {
		upstream_drop(up);
		return;
	}
	blocks_put(&in_blocks, up->up_in);
	up->up_in = NULL;
	up->up_inlen = up->up_inpos = 0;
	up->up_in_body = false;
	up->up_interim = 0;
	memset(&up->up_scan, 0, sizeof(up->up_scan));
	up->up_state = UP_IDLE;
	io_resume(&up->up_io);
	set_timer(&up->up_timer, settings.st_idle_ms);
	TAILQ_INSERT_HEAD(pool, up, up_entry);
	nidle++;
}

/* A new generation: what was opened under the old one is not used again. */
void
upstream_forget_idle(void)
{
	struct upstream	*up, *next;
	unsigned int	 i;

	for (i = 0; i < POOLS; i++)
		TAILQ_FOREACH_SAFE(up, &pools[i], up_entry, next)
			upstream_drop(up);
}

/* ---- the request --------------------------------------------------------- */

int
upstream_request(struct exchange *ex, const struct h1_out_request *or)
{
	struct upstream	*up = ex->ex_up;
	size_t		 room;
	ssize_t		 len;
	char		*p;

	up->up_state = UP_BUSY;
	if (!up->up_reused)
		up->up_rule = ex->ex_ruling.rl_rule;
	io_resume(&up->up_io);
	set_timer(&up->up_timer, settings.st_response_ms);
	up->up_chunked_out = or->or_framing == H1_CHUNKED;
	if ((p = io_reserve(&up->up_io, &room)) == NULL ||
	    (len = h1_format_request(p, room, or)) == -1)
		return -1;
	io_commit(&up->up_io, len);
	return 0;
}

void *
upstream_reserve(struct exchange *ex, size_t *room)
{
	struct upstream	*up = ex->ex_up;

	if (up->up_io.io_full)
		return NULL;
	return up->up_chunked_out ? io_reserve_chunk(&up->up_io, room) :
	    io_reserve(&up->up_io, room);
}

void
upstream_commit(struct exchange *ex, size_t len)
{
	struct upstream	*up = ex->ex_up;

	if (up->up_chunked_out)
		io_commit_chunk(&up->up_io, len);
	else
		io_commit(&up->up_io, len);
	if (up->up_io.io_full)
		io_flush(&up->up_io);
}

/* The answer is due so long after the last of the request. */
void
upstream_flush(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	if (!up->up_in_body)
		set_timer(&up->up_timer, settings.st_response_ms);
	io_flush(&up->up_io);
}

void
upstream_end(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	if (up->up_chunked_out)
		io_put(&up->up_io, "0\r\n\r\n", 5);
	upstream_flush(ex);
	if (ex->ex_upgraded && io_empty(&up->up_io))
		io_finish(&up->up_io);
}

/* ---- the answer ---------------------------------------------------------- */

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
	n = io_read(&up->up_io, up->up_in + up->up_inlen,
	    UP_IN_SIZE - up->up_inlen);
	if (n > 0) {
		up->up_inlen += n;
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
	memset(&up->up_chunk, 0, sizeof(up->up_chunk));
	up->up_in_body = true;
	set_timer(&up->up_timer, hd->hd_status == 101 ?
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
		return io_read(&up->up_io, to, want);
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
	if ((p = conn_reserve(ex, &room)) == NULL) {
		io_pause(&up->up_io);
		return BODY_WAIT;
	}
	if (up->up_framing == H1_LENGTH && room > up->up_left)
		room = up->up_left;
	n = up_body_read(up, p, room);
	if (n > 0) {
		if (up->up_framing == H1_LENGTH)
			up->up_left -= n;
		conn_commit(ex, n);
		exchange_answer_data(ex, p, n);
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
	if ((p = conn_reserve(ex, &room)) == NULL) {
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
		conn_commit(ex, len);
		exchange_answer_data(ex, p, len);
	}
	return BODY_MORE;
}

static void
up_read_body(struct upstream *up)
{
	struct exchange	*ex = up->up_ex;
	enum progress	 how;

	do {
		how = up->up_framing == H1_CHUNKED ? up_body_chunked(up) :
		    up_body_plain(up);
		if (ex->ex_conn->cn_io.io_full)
			conn_flush(ex);
	} while (how == BODY_MORE && !up->up_dead);
	if (up->up_dead)
		return;
	switch (how) {
	case BODY_END:
		exchange_answer_end(ex);
		break;
	case BODY_BROKEN:
		exchange_up_lost(ex, "stream_broken");
		break;
	default:
		set_timer(&up->up_timer, ex->ex_upgraded ?
		    settings.st_tunnel_ms : settings.st_idle_ms);
		conn_flush(ex);
	}
}

static void
up_answer(struct upstream *up)
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

/* The client has room again. */
void
upstream_go(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	if (up != NULL && up->up_state == UP_BUSY)
		io_resume(&up->up_io);
}

static void
up_on_read(struct io *io)
{
	struct upstream	*up = io->io_arg;

	if (up->up_state == UP_IDLE) {
		/* Nothing is due: it is closing, or it lies. */
		upstream_drop(up);
		return;
	}
	if (up->up_state == UP_BUSY && up->up_ex != NULL)
		up_answer(up);
}

static void
up_on_drain(struct io *io)
{
	struct upstream	*up = io->io_arg;

	struct exchange	*ex = up->up_ex;

	if (ex == NULL)
		return;
	if (ex->ex_upgraded && ex->ex_request_end && io_empty(io))
		io_finish(io);
	conn_go(ex);
}

static void
up_on_error(struct io *io, const char *why)
{
	struct upstream	*up = io->io_arg;

	log_debug("origin %s: %s", up->up_place.pc_host, why);
	if (up->up_state == UP_IDLE)
		upstream_drop(up);
	else
		up_fail(up, "stream_broken", NULL);
}
