/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this.  Text in records is hostile, whoever sent it:
 * everything passes jsonw.
 *
 * Every line ends in the hash of the line before it, so nothing can be
 * changed, taken out or put in without changing all that follows.  While
 * nobody listens the numbers advance and nothing is formatted or hashed; the
 * first line after such a span has a null `prev', and its number tells how
 * long the span was.
 */

#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The EVP interface costs an allocation and a look-up per line. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "clock.h"
#include "log.h"
#include "recorder.h"

#define NS_PER_S	UINT64_C(1000000000)
#define NS_PER_MS	UINT64_C(1000000)
#define TIME_LEN	(sizeof("2026-01-02T03:04:05.678Z") - 1)
#define CLOSE_LEN	(sizeof(",\"prev\":\"\"}\n") - 1 + HASH_HEX)

/* Only a final record, with heads and bodies, can say more than this. */
_Static_assert(JSONW_ESCAPED(SESSION_LEN + 2 * NAME_LEN + HOST_LEN +
    METHOD_LEN + URL_LEN + PATH_LEN) + LINE_WORDS <= LINE_LEN_MAX,
    "a line has room for any record");

/* A gap: two hashes, five numbers, and words of ours that hardly differ. */
_Static_assert(2 * HASH_HEX + 5 * JSONW_DIGITS + TIME_LEN +
    sizeof("{'seq':,'kind':'gap','at':'','session_id':null,'reason':"
    "'audit_switched','lost':,'first_seq':,'last_seq':,'lost_hash':'',"
    "'lost_bytes':,'prev':''}\n") <= ROOM_GAP, "a gap has its room");

static struct link	 tip;		/* the last number and line */
static struct line	 current;	/* between begin and end */
static struct jsonw	 writer;

/*
 * Begin a chain, and load what libc would look for at first use, the time
 * zone.  libcrypto's own configuration file could name other code to run and
 * is not read.
 */
void
chain_init(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	chain_time(clock_wall_ns());
	memset(&tip, 0, sizeof(tip));
}

const struct link *
chain_tip(void)
{
	return &tip;
}

/* Go on from a line that is in the file already. */
void
chain_join(const struct link *end)
{
	tip = *end;
}

int
chain_same(const struct link *a, const struct link *b)
{
	return a->li_seq == b->li_seq && a->li_hashed && b->li_hashed &&
	    memcmp(a->li_hash, b->li_hash, HASH_HEX) == 0;
}

/*
 * In hex: four bytes, a multiple of which len is, become eight digits in one
 * word.  Its nibbles are spread and put in order; those above 9 carry into
 * the next bit when 6 is added, and letters begin 39 after the digits' end.
 */
void
chain_hex(char *out, const void *bytes, size_t len)
{
	const uint64_t	 ones = 0x0101010101010101;
	const char	*p = bytes, *end = p + len;
	uint32_t	 in;
	uint64_t	 v;

	for (; p < end; p += sizeof(in), out += sizeof(v)) {
		memcpy(&in, p, sizeof(in));
		v = le32toh(in);
		v = (v | v << 16) & 0x0000ffff0000ffff;
		v = (v | v << 8) & 0x00ff00ff00ff00ff;
		v = (v >> 4 | v << 8) & ones * 0xf;
		v += ones * '0' + ((v + ones * 6) >> 4 & ones) * 39;
		v = htole64(v);
		memcpy(out, &v, sizeof(v));
	}
}

void
chain_hash(struct link *li, const char *text, size_t len)
{
	unsigned char	 sum[HASH_HEX / 2];
	SHA256_CTX	 ctx;

	if (!SHA256_Init(&ctx) || !SHA256_Update(&ctx, text, len) ||
	    !SHA256_Final(sum, &ctx))
		fatalx("SHA-256: libcrypto failed");
	chain_hex(li->li_hash, sum, sizeof(sum));
	li->li_hash[HASH_HEX] = '\0';
	li->li_hashed = 1;
}

/* Valid until the next call.  Most records share their second. */
const char *
chain_time(uint64_t ns)
{
	static char	 text[TIME_LEN + 1];
	static time_t	 done = -1;
	const size_t	 point = sizeof("2026-01-02T03:04:05") - 1;
	time_t		 now = (time_t)(ns / NS_PER_S);
	unsigned int	 ms = (unsigned int)(ns % NS_PER_S / NS_PER_MS);
	struct tm	 tm;

	if (now != done) {
		/* 64 bits of nanoseconds end in the year 2554. */
		if (gmtime_r(&now, &tm) == NULL)
			fatal("gmtime_r");
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
		done = now;
	}
	text[point] = '.';
	text[point + 1] = (char)('0' + ms / 100);
	text[point + 2] = (char)('0' + ms / 10 % 10);
	text[point + 3] = (char)('0' + ms % 10);
	text[point + 4] = 'Z';
	return text;
}

void
chain_put_time(uint64_t ns)
{
	jsonw_plain(&writer, chain_time(ns), TIME_LEN);
}

static void
line_open(struct line *ln, uint64_t at)
{
	const char	*kind = record_kind_name(ln->ln_kind);

	ln->ln_text = audit_room();
	/* One byte is for the newline. */
	jsonw_place(&writer, ln->ln_text, LINE_LEN_MAX - 1);
	jsonw_object(&writer);
	jsonw_lit(&writer, "seq");
	jsonw_uint(&writer, ln->ln_link.li_seq);
	jsonw_lit(&writer, "kind");
	jsonw_plain(&writer, kind, strlen(kind));
	jsonw_lit(&writer, "at");
	chain_put_time(at);
	jsonw_lit(&writer, "session_id");
	jsonw_str(&writer, ln->ln_session);
}

static void
put_hash(const struct link *li)
{
	if (li->li_hashed)
		jsonw_plain(&writer, li->li_hash, HASH_HEX);
	else
		jsonw_null(&writer);
}

static void
line_close(struct line *ln, const struct link *prev)
{
	jsonw_lit(&writer, "prev");
	put_hash(prev);
	jsonw_end(&writer);
	if (jsonw_finish(&writer, &ln->ln_len) == NULL)
		fatalx("record %llu: %s",
		    (unsigned long long)ln->ln_link.li_seq,
		    jsonw_error(&writer));
	ln->ln_text[ln->ln_len] = '\n';
	chain_hash(&ln->ln_link, ln->ln_text, ln->ln_len);
}

/*
 * Take the next number and write what all records begin with; the caller
 * adds the rest and calls chain_end().  NULL: nobody listens, say no more.
 * The session must last until then.  What does not fit may be begun again,
 * with the same number, to say less.  The room that was promised for it, or
 * 0, is used with it.
 */
struct jsonw *
chain_begin(enum record_kind kind, uint64_t at, const char *session,
    size_t promised)
{
	if (promised > 0)
		audit_catch_up();
	if (!audit_listens() && follower_count() == 0 &&
	    !printer_listens()) {
		tip.li_seq++;
		tip.li_hashed = 0;
		room_put(promised);
		return NULL;
	}
	current.ln_link.li_seq = tip.li_seq + 1;
	current.ln_kind = kind;
	current.ln_session = session;
	current.ln_promised = promised;
	line_open(&current, at);
	return &writer;
}

/* Whether all that was said has room, and with it the end of the line. */
int
chain_fits(void)
{
	return jsonw_error(&writer) == NULL &&
	    jsonw_len(&writer) <= LINE_LEN_MAX - CLOSE_LEN &&
	    (!audit_listens() || room_has(jsonw_len(&writer) + CLOSE_LEN,
	    current.ln_promised));
}

void
chain_end(void)
{
	line_close(&current, &tip);
	if (audit_listens() &&
	    !room_has(current.ln_len + 1, current.ln_promised))
		audit_skip();
	tip = current.ln_link;
	audit_append(&current);
	room_put(current.ln_promised);
	follower_send(&current);
	printer_send(&current);
}

static const char *
or_null(const char *s)
{
	return *s == '\0' ? NULL : s;
}

static void
put_names(struct jsonw *w, const char *names)
{
	size_t	 n;

	jsonw_array(w);
	for (; *names != '\0'; names += n + strspn(names + n, " ")) {
		n = strcspn(names, " ");
		jsonw_string(w, names, n);
	}
	jsonw_end(w);
}

void
chain_session(const struct msg_record_session *m)
{
	struct jsonw	*w;

	if ((w = chain_begin(m->kind, m->at, m->session, 0)) == NULL)
		return;
	jsonw_lit(w, "policy");
	jsonw_str(w, or_null(m->policy));
	jsonw_lit(w, "reason");
	jsonw_str(w, or_null(m->reason));
	if (m->kind == RECORD_SESSION_STARTED) {
		jsonw_lit(w, "ca_sha256");
		jsonw_str(w, or_null(m->ca));
	}
	if (m->told) {
		jsonw_lit(w, "environment");
		put_names(w, m->environment);
	}
	chain_end();
}

void
chain_attached(const struct msg_record_attached *m)
{
	struct jsonw	*w;

	if ((w = chain_begin(m->kind, m->at, m->session, 0)) == NULL)
		return;
	jsonw_lit(w, "attachment");
	jsonw_uint(w, m->number);
	jsonw_lit(w, "uid");
	jsonw_uint(w, m->uid);
	jsonw_lit(w, "pid");
	jsonw_uint(w, m->pid);
	jsonw_lit(w, "program");
	jsonw_str(w, or_null(m->program));
	if (m->kind == RECORD_SESSION_DETACHED) {
		jsonw_lit(w, "attached_at");
		chain_put_time(m->since);
	}
	chain_end();
}

static void
put_seq(const char *key, uint64_t seq, int known)
{
	jsonw_key(&writer, key);
	if (known)
		jsonw_uint(&writer, seq);
	else
		jsonw_null(&writer);
}

/* A new audit file begins: which line, in another file, is the one before. */
void
chain_file(void)
{
	if (chain_begin(RECORD_FILE_OPENED, clock_wall_ns(), NULL, 0) == NULL)
		return;
	put_seq("last_seq", tip.li_seq, 1);
	jsonw_lit(&writer, "last_hash");
	put_hash(&tip);
	chain_end();
}

/*
 * Format a gap, and use up nothing: the file may refuse it again.  Its
 * `prev' is what the file holds, so that the file verifies line by line.
 * Its `lost_hash' is the last line that the file lacks: it ties those who
 * saw the lost lines, the followers, to the same chain.
 */
void
chain_gap(const struct gap *ga, struct line *ln)
{
	static const struct link	 none;
	const struct link		*end = &ga->ga_end;
	int				 lost = tip.li_seq > end->li_seq;

	ln->ln_kind = RECORD_GAP;
	ln->ln_session = NULL;
	ln->ln_link.li_seq = (lost ? tip.li_seq : end->li_seq) + 1;
	line_open(ln, clock_wall_ns());
	jsonw_key(&writer, "reason");
	jsonw_str(&writer, ga->ga_reason);
	jsonw_key(&writer, "lost");
	jsonw_uint(&writer, lost ? tip.li_seq - end->li_seq : 0);
	put_seq("first_seq", end->li_seq + 1, lost);
	put_seq("last_seq", tip.li_seq, lost);
	jsonw_lit(&writer, "lost_hash");
	put_hash(chain_same(&tip, end) ? &none : &tip);
	jsonw_key(&writer, "lost_bytes");
	jsonw_uint(&writer, ga->ga_lost_bytes);
	line_close(ln, end);
}

/* `"prev":null}' or `"prev":"64 hex digits"}' */
static int
ends_in_prev(const char *text, size_t len)
{
	static const char	 null[] = ",\"prev\":null}";
	static const char	 key[] = ",\"prev\":\"", end[] = "\"}";
	const size_t		 nlen = sizeof(null) - 1;
	const size_t		 klen = sizeof(key) - 1, elen = sizeof(end) - 1;
	size_t			 i;

	if (len >= nlen && memcmp(text + len - nlen, null, nlen) == 0)
		return 1;
	if (len < klen + HASH_HEX + elen)
		return 0;
	text += len - (klen + HASH_HEX + elen);
	for (i = 0; i < HASH_HEX; i++)
		if (!isxdigit((unsigned char)text[klen + i]))
			return 0;
	return memcmp(text, key, klen) == 0 &&
	    memcmp(text + klen + HASH_HEX, end, elen) == 0;
}

/* The number with which a line of ours begins, or 0; *end is behind it. */
uint64_t
chain_number(const char *text, size_t len, size_t *end)
{
	static const char	 key[] = "{\"seq\":", next[] = ",\"kind\":\"";
	size_t			 i = sizeof(key) - 1;
	uint64_t		 seq = 0;

	if (len < i || memcmp(text, key, i) != 0)
		return 0;
	for (; i < len && isdigit((unsigned char)text[i]); i++) {
		seq = seq * 10 + (uint64_t)(text[i] - '0');
		if (seq == 0 || seq >= SEQ_MAX)
			return 0;
	}
	if (len - i < sizeof(next) - 1 ||
	    memcmp(text + i, next, sizeof(next) - 1) != 0)
		return 0;
	*end = i;
	return seq;
}

/* Is this a line of ours?  Its number and hash, or -1. */
int
chain_parse(struct link *li, const char *text, size_t len)
{
	uint64_t	 seq;
	size_t		 end;

	if ((seq = chain_number(text, len, &end)) == 0 ||
	    !ends_in_prev(text, len))
		return -1;
	li->li_seq = seq;
	chain_hash(li, text, len);
	return 0;
}
