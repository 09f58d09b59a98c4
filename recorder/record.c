/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: what a record about a request says.  All text is
 * hostile and passes jsonw; what must not be written down is asked of
 * common/redact.h.
 */

#include <string.h>
#include <strings.h>

#include "log.h"
#include "recorder.h"

#define TEXT_KEPT	2048	/* of a request, to be written again */
#define HASH_LEN	(HASH_HEX / 2)

/*
 * For lines that would be too long.  A field gets a comma and quotes, and may
 * get another value; the end is all text after the heads, without previews,
 * and our own words in the whole line.
 */
#define HEAD_CUT	8192	/* of each head that is longer */
#define HEAD_CUT_MAX	(JSONW_ESCAPED(HEAD_CUT) + \
	FIELDS_MAX * (sizeof(",\"\":\"[redacted]\"") - 1))
#define IDENTITY_MAX	JSONW_ESCAPED(SESSION_LEN + HOST_LEN + METHOD_LEN + \
	URL_LEN)
#define END_MAX		(JSONW_ESCAPED(ADDRESS_LEN + PATH_LEN + NAME_LEN + \
	SAID_LEN) + LINE_WORDS)

_Static_assert(IDENTITY_MAX + 2 * HEAD_CUT_MAX + END_MAX <= LINE_LEN_MAX,
    "a final record fits when its heads and previews are cut");

/*
 * What is left out of a record, each only if all before is too long: for a
 * line, for the budget of the session (CUT_LAVISH), for the room that there
 * is (CUT_ALL).
 */
enum cut { CUT_NOTHING, CUT_PREVIEWS, CUT_HEADS, CUT_LAVISH, CUT_ALL };

static const struct {
	size_t	 cu_head;	/* of it, bytes */
	size_t	 cu_path;	/* as it is written, as all that follows */
	size_t	 cu_host;
	size_t	 cu_name;	/* method, decider, address */
	size_t	 cu_reason;
} cuts[] = {
	[CUT_NOTHING] = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX },
	[CUT_PREVIEWS] = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX },
	[CUT_HEADS] = { HEAD_CUT, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX },
	[CUT_LAVISH] = { 256, 512, SIZE_MAX, SIZE_MAX, SIZE_MAX },
#define SHORT_TEXT	128	/* of a path, and of a reason */
	[CUT_ALL] = { 0, SHORT_TEXT, HOST_LEN, NAME_LEN, SHORT_TEXT },
};

/* Session, in which only quotes and backslashes need an escape; the place. */
#define SHORT_IDENTITY	(2 * SESSION_LEN + HOST_LEN + NAME_LEN + SHORT_TEXT)
#define SHORT_WORDS	512	/* our own, with numbers and a hash */
#define SHORT_OUTCOME	704	/* of a final record, beside these */

_Static_assert(SHORT_IDENTITY + NAME_LEN + SHORT_WORDS + ROOM_GAP <=
    ROOM_STATION && SHORT_IDENTITY + 2 * NAME_LEN + SHORT_TEXT +
    SHORT_WORDS + SHORT_OUTCOME + ROOM_GAP <= ROOM_FINAL,
    "the shortest records have the room that is promised");

static const char *
or_null(const char *s)
{
	return *s == '\0' ? NULL : s;
}

/*
 * A text, or as much of its beginning as takes max bytes in the record; then
 * false.
 */
static bool
put_bytes(struct jsonw *w, const char *s, size_t len, size_t max)
{
	size_t	 n = len, used = 0;

	if (len == 0) {
		jsonw_null(w);
		return true;
	}
	if (max != SIZE_MAX)
		for (n = 0; n < len; n++) {
			used += s[n] >= ' ' && s[n] <= '~' && s[n] != '"' &&
			    s[n] != '\\' ? 1 : JSONW_ESCAPED(1);
			if (used > max)
				break;
		}
	jsonw_string(w, s, n);
	return n == len;
}

static bool
put_text(struct jsonw *w, const char *s, size_t max)
{
	return put_bytes(w, s, strlen(s), max);
}

static void
put_id(struct jsonw *w, const struct engine *en, uint64_t id)
{
	char	 text[REQUEST_PREFIX_LEN + JSONW_DIGITS];
	char	*end = text + sizeof(text), *p = jsonw_digits(id, end);
	size_t	 len = strlen(en->en_prefix);

	p = memcpy(p - len, en->en_prefix, len);
	jsonw_lit(w, "id");
	jsonw_plain(w, p, (size_t)(end - p));
}

/*
 * How many bytes surely have room, whatever they are; of it, up to a half is
 * left to the other body.
 */
static size_t
preview_room(const struct jsonw *w, size_t other, enum cut cut)
{
	size_t	 used = jsonw_len(w) + END_MAX, room = 0;

	if (cut < CUT_PREVIEWS)
		return SIZE_MAX;
	if (cut == CUT_ALL)
		return 0;
	if (used < LINE_LEN_MAX)
		room = (LINE_LEN_MAX - used) / JSONW_ESCAPED(1);
	return room - (other < room / 2 ? other : room / 2);
}

/* re: what may be shown; more: the body was longer than its preview. */
static void
put_body(struct jsonw *w, struct redacted re, bool more, size_t max,
    uint64_t total, const struct msg_bytes *hash)
{
	size_t	 shown = re.re_len < max ? re.re_len : max;
	char	 hex[2 * HASH_LEN];

	jsonw_object(w);
	jsonw_lit(w, "sha256");
	if (hash->len == HASH_LEN) {
		chain_hex(hex, hash->data, HASH_LEN);
		jsonw_plain(w, hex, sizeof(hex));
	} else
		jsonw_null(w);
	jsonw_lit(w, "bytes");
	jsonw_uint(w, total);
	jsonw_lit(w, "preview");
	if (shown > 0)
		jsonw_string(w, re.re_text, shown);
	else
		jsonw_null(w);
	jsonw_lit(w, "truncated");
	jsonw_bool(w, more || re.re_len > shown || re.re_text == NULL);
	if (re.re_text == NULL) {
		jsonw_lit(w, "withheld");
		jsonw_bool(w, 1);
	}
	jsonw_end(w);
}

static void
put_identity(struct jsonw *w, const struct engine *en,
    const struct request *rq, enum cut cut)
{
	const char	*host = rq->rq_names.bl_data;
	const char	*method = host + strlen(host) + 1;
	const char	*path = method + strlen(method) + 1;
	struct redacted	 re = redact_path(redact_of(en->en_session,
	    en->en_policy), path, strlen(path));

	put_id(w, en, rq->rq_id);
	jsonw_lit(w, "host");
	put_text(w, host, cuts[cut].cu_host);
	jsonw_lit(w, "port");
	jsonw_uint(w, rq->rq_port);
	jsonw_lit(w, "scheme");
	jsonw_str(w, url_scheme_name(rq->rq_scheme));
	jsonw_lit(w, "protocol");
	jsonw_str(w, protocol_name(rq->rq_protocol));
	if (!rq->rq_inspected) {
		jsonw_lit(w, "inspected");
		jsonw_bool(w, 0);
	}
	jsonw_lit(w, "method");
	put_text(w, method, cuts[cut].cu_name);
	jsonw_lit(w, "path");
	if (!put_bytes(w, re.re_text, re.re_len, cuts[cut].cu_path) ||
	    rq->rq_path_cut) {
		jsonw_lit(w, "path_truncated");
		jsonw_bool(w, 1);
	}
}

/*
 * What every record about a request says of it, formatted once; and again
 * when a new generation may want more of it hidden.
 */
static void
put_request(struct jsonw *w, const struct engine *en, struct request *rq,
    enum cut cut)
{
	const char	*text;
	size_t		 from, len;

	jsonw_lit(w, "request");
	jsonw_object(w);
	if (cut < CUT_LAVISH && rq->rq_text.bl_len > 0 &&
	    rq->rq_version == redact_version()) {
		jsonw_members(w, rq->rq_text.bl_data, rq->rq_text.bl_len);
		return;
	}
	from = jsonw_len(w);
	put_identity(w, en, rq, cut);
	if (cut >= CUT_LAVISH)
		return;
	rq->rq_text.bl_len = 0;
	text = jsonw_since(w, from, &len);
	if (text == NULL || len > TEXT_KEPT)
		return;
	blob_set(&rq->rq_text, text, len);
	rq->rq_version = redact_version();
}

static void
put_decider(struct jsonw *w, const struct request *rq, enum cut cut)
{
	static const char	 said[] = "decider: ";	/* here it is clear */

	if (*rq->rq_decider == '\0')
		return;
	jsonw_lit(w, "decider");
	jsonw_object(w);
	jsonw_lit(w, "name");
	put_text(w, rq->rq_decider, cuts[cut].cu_name);
	jsonw_lit(w, "latency_ms");
	jsonw_uint(w, rq->rq_waited_ms);
	if (*rq->rq_said != '\0' && cut < CUT_ALL) {
		jsonw_lit(w, "reason");
		jsonw_str(w, rq->rq_said + (strncmp(rq->rq_said, said,
		    sizeof(said) - 1) == 0 ? sizeof(said) - 1 : 0));
	}
	if (rq->rq_cached) {
		jsonw_lit(w, "cached");
		jsonw_bool(w, 1);
	}
	jsonw_end(w);
}

static void
put_rule(struct jsonw *w, const struct request *rq)
{
	jsonw_lit(w, "matched_rule");
	if (rq == NULL || rq->rq_rule == RULE_NONE ||
	    rq->rq_rule_kind >= RULE_KIND_MAX) {
		jsonw_null(w);
		return;
	}
	jsonw_object(w);
	jsonw_lit(w, "index");
	jsonw_uint(w, rq->rq_rule);
	jsonw_lit(w, "kind");
	jsonw_str(w, rule_kind_name(rq->rq_rule_kind));
	jsonw_end(w);
}

/* Room for one record, out of what its request was promised. */
static size_t
take_room(struct request *rq, size_t len)
{
	if (len > rq->rq_room)
		len = rq->rq_room;
	rq->rq_room -= len;
	return len;
}

/* A station on the way: opened, allowed. */
void
record_station(struct engine *en, struct request *rq,
    enum record_kind kind, uint64_t at)
{
	size_t		 promised = take_room(rq, ROOM_STATION);
	struct jsonw	*w;
	enum cut	 cut = budget_spent(en) ? CUT_LAVISH : CUT_NOTHING;

	for (;; cut = CUT_ALL) {
		w = chain_begin(kind, at, en->en_session, promised);
		if (w == NULL)
			return;
		put_request(w, en, rq, cut);
		jsonw_end(w);
		if (kind == RECORD_REQUEST_ALLOWED) {
			put_decider(w, rq, cut);
			put_rule(w, rq);
		}
		if (cut == CUT_ALL || chain_fits())
			break;
	}
	if (cut < CUT_LAVISH)
		budget_charge(en, jsonw_len(w), 0);
	chain_end();
}

/* A cut head may lack the Content-Type: then the type is unknown. */
static enum redact_media
media_after(enum redact_media media, bool cut)
{
	return cut && media == MEDIA_UNKNOWN ? MEDIA_ENCODED : media;
}

/* Members `..._truncated' appear only if a head is incomplete. */
static void
put_heads(struct jsonw *w, const struct engine *en, const struct request *rq,
    const struct answer *an, enum cut cut, enum redact_media media[2])
{
	const struct blob	*asked = &rq->rq_fields[0];
	size_t			 max = cuts[cut].cu_head;

	jsonw_lit(w, "request_headers");
	media[0] = record_head(w, en, 0, asked->bl_data, asked->bl_len, max);
	media[0] = media_after(media[0], rq->rq_head_cut[0]);
	if (asked->bl_len > max || rq->rq_head_cut[0]) {
		jsonw_lit(w, "request_headers_truncated");
		jsonw_bool(w, 1);
	}
	jsonw_lit(w, "response_status");
	if (an->an_status != 0)
		jsonw_uint(w, an->an_status);
	else
		jsonw_null(w);
	jsonw_lit(w, "response_headers");
	media[1] = record_head(w, en, 1, an->an_fields.data,
	    an->an_fields.len, max);
	media[1] = media_after(media[1], rq->rq_head_cut[1]);
	if (an->an_fields.len > max || rq->rq_head_cut[1]) {
		jsonw_lit(w, "response_headers_truncated");
		jsonw_bool(w, 1);
	}
}

/* Outcome of the request: members of the same object. */
static void
put_outcome(struct jsonw *w, const struct engine *en,
    const struct request *rq, const struct msg_record_closed *mc,
    const struct answer *an, enum cut cut)
{
	const struct redact	*rd = redact_of(en->en_session,
	    en->en_policy);
	const struct blob	*asked = &rq->rq_body[0];
	enum redact_media	 media[2];

	put_heads(w, en, rq, an, cut, media);
	jsonw_lit(w, "request_body");
	put_body(w, redact_body(rd, media[0], asked->bl_data, asked->bl_len),
	    mc->request_body > asked->bl_len,
	    preview_room(w, an->an_body.len, cut), mc->request_body,
	    &mc->request_hash);
	jsonw_lit(w, "response_body");
	put_body(w, redact_body(rd, media[1], an->an_body.data,
	    an->an_body.len), mc->answer_body > an->an_body.len,
	    preview_room(w, 0, cut), mc->answer_body, &mc->answer_hash);
	jsonw_lit(w, "started_at");
	chain_put_time(rq->rq_started);
	jsonw_lit(w, "finished_at");
	chain_put_time(mc->at);
	jsonw_lit(w, "address");
	put_text(w, an->an_address != NULL ? an->an_address : "",
	    cuts[cut].cu_name);
}

static void
put_final(struct jsonw *w, const struct engine *en, struct request *rq,
    const struct msg_record_closed *mc, const struct answer *an, enum cut cut)
{
	put_request(w, en, rq, cut);
	put_outcome(w, en, rq, mc, an, cut);
	jsonw_end(w);
	jsonw_lit(w, "bytes_in");
	jsonw_uint(w, mc->bytes_in);
	jsonw_lit(w, "bytes_out");
	jsonw_uint(w, mc->bytes_out);
	jsonw_lit(w, "reason");
	put_text(w, mc->reason, cuts[cut].cu_reason);
	put_decider(w, rq, cut);
	put_rule(w, rq);
}

/*
 * The last record of a request, with all that is known and has room.  Without
 * an answer, it is the one that the request has kept.
 */
void
record_final(struct engine *en, struct request *rq,
    enum record_kind kind, const struct msg_record_closed *mc,
    const struct answer *an)
{
	size_t			 promised = take_room(rq, rq->rq_room);
	const struct answer	 kept = {
		.an_status = rq->rq_status,
		.an_address = rq->rq_answered ? rq->rq_address : NULL,
		.an_fields = { rq->rq_fields[1].bl_data,
		    rq->rq_fields[1].bl_len },
		.an_body = { rq->rq_body[1].bl_data, rq->rq_body[1].bl_len },
	};
	struct jsonw		*w;
	enum cut		 cut = budget_spent(en) ? CUT_LAVISH :
	    CUT_NOTHING;

	if (kind == RECORD_REQUEST_DENIED)
		refusal_add(en->en_session, rq->rq_names.bl_data, mc->reason);
	if (an == NULL)
		an = &kept;
	do {
		w = chain_begin(kind, mc->at, en->en_session, promised);
		if (w == NULL)
			return;
		put_final(w, en, rq, mc, an, cut);
	} while (!chain_fits() && cut++ < CUT_ALL);
	if (cut < CUT_LAVISH)
		budget_charge(en, jsonw_len(w), rq->rq_body[0].bl_len +
		    an->an_body.len);
	chain_end();
}

/* Refusals and names asked: records without a request. */
void
record_other(const struct engine *en, const struct msg_record_other *mo)
{
	struct jsonw	*w;

	if (mo->kind == RECORD_REQUEST_DENIED ||
	    mo->kind == RECORD_CONNECTION_REFUSED)
		refusal_add(en->en_session, mo->host, mo->reason);
	if ((w = chain_begin(mo->kind, mo->at, en->en_session, 0)) == NULL)
		return;
	jsonw_lit(w, "request");
	jsonw_object(w);
	jsonw_lit(w, "host");
	jsonw_str(w, or_null(mo->host));
	jsonw_lit(w, "port");
	jsonw_uint(w, mo->port);
	jsonw_lit(w, "protocol");
	jsonw_str(w, protocol_name(mo->protocol));
	jsonw_lit(w, "method");
	jsonw_null(w);
	jsonw_end(w);
	jsonw_lit(w, "reason");
	jsonw_str(w, or_null(mo->reason));
	put_rule(w, NULL);
	chain_end();
}
