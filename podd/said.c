/* SPDX-License-Identifier: ISC */

/*
 * podd: what a gate in a pod has said, read strictly.  All of it is hostile:
 * whoever is in the pod may have taken the gate over.  A record is told again
 * by a writer of our own, so that what goes on from here is text that we made.
 */

#include <ctype.h>
#include <string.h>

#include "jsonput.h"
#include "jsonr.h"
#include "podd.h"
#include "utf8.h"

/*
 * Of a line that would be too long with what is added to it, strings are cut:
 * the longest are beginnings of bodies.
 */
#define MEMBERS_MAX	(SAID_RECORD_LEN - 8192)

static const size_t	 cuts[] = { SIZE_MAX, 16384, 1024, 64 };

static struct jsonw	 writer, gap_writer;

/* Kinds that a fixed session can have; RECORD_KIND_MAX: it cannot. */
static const enum record_kind said_kinds[RECORD_KIND_MAX] = {
	[RECORD_REQUEST_OPENED] = RECORD_REQUEST_OPENED,
	[RECORD_REQUEST_ALLOWED] = RECORD_REQUEST_ALLOWED,
	[RECORD_REQUEST_DENIED] = RECORD_REQUEST_DENIED,
	[RECORD_REQUEST_CLOSED] = RECORD_REQUEST_CLOSED,
	[RECORD_REQUEST_FAILED] = RECORD_REQUEST_FAILED,
	[RECORD_DECIDER_FAILURE] = RECORD_DECIDER_FAILURE,
	[RECORD_SESSION_STARTED] = RECORD_SESSION_STARTED,
	[RECORD_SESSION_ENDED] = RECORD_SESSION_ENDED,
	[RECORD_SESSION_ATTACHED] = RECORD_KIND_MAX,
	[RECORD_SESSION_DETACHED] = RECORD_KIND_MAX,
	[RECORD_CONNECTION_REFUSED] = RECORD_CONNECTION_REFUSED,
	[RECORD_NAME_ASKED] = RECORD_NAME_ASKED,
	[RECORD_GAP] = RECORD_POD_GAP,
	[RECORD_FILE_OPENED] = RECORD_POD_GAP,
	[RECORD_POD_GAP] = RECORD_KIND_MAX,
	[RECORD_POD_LOST] = RECORD_KIND_MAX,
	[RECORD_POD_HOSTILE] = RECORD_KIND_MAX,
};

/* Printable, and as much of it as there is room for. */
void
said_tame(char *out, size_t size, const char *text)
{
	size_t	 i;

	for (i = 0; i + 1 < size && text[i] != '\0'; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = '\0';
}

/* Whether an object has no member but these. */
int
said_is(const struct jsonr *jr, const char *const *names)
{
	const struct jsonr	*member;
	size_t			 i;

	if (jr == NULL || jr->jr_type != JSONR_OBJECT)
		return 0;
	for (member = jr->jr_first; member != NULL; member = member->jr_next) {
		for (i = 0; names[i] != NULL; i++)
			if (strcmp(names[i], member->jr_name) == 0)
				break;
		if (names[i] == NULL)
			return 0;
	}
	return 1;
}

static const struct jsonr *
member_of(const struct jsonr *jr, const char *name)
{
	return jr != NULL ? jsonr_member(jr, name) : NULL;
}

/* A number from 0 to this one, or -1. */
int64_t
said_number(const struct jsonr *jr, const char *name, int64_t max)
{
	const struct jsonr	*member = member_of(jr, name);

	if (member == NULL || member->jr_type != JSONR_INTEGER ||
	    member->jr_number < 0 || member->jr_number > max)
		return -1;
	return member->jr_number;
}

/* A text that is not too long, or NULL. */
const char *
said_text(const struct jsonr *jr, const char *name, size_t max)
{
	const struct jsonr	*member = member_of(jr, name);

	if (member == NULL || member->jr_type != JSONR_STRING ||
	    member->jr_len > max)
		return NULL;
	return member->jr_text;
}

static int
said_null(const struct jsonr *jr, const char *name)
{
	const struct jsonr	*member = jsonr_member(jr, name);

	return member != NULL && member->jr_type == JSONR_NULL;
}

/* ---- answers ------------------------------------------------------------- */

static void
take_sha256(const struct jsonr *jr, struct said_answer *sa)
{
	const char	*text;

	text = said_text(jr, "configuration_sha256", FINGERPRINT_LEN);
	if (text != NULL && strspn(text, "0123456789abcdef") == FINGERPRINT_LEN)
		strlcpy(sa->sa_sha256, text, sizeof(sa->sa_sha256));
}

static const char *
take_answer(const struct jsonr *jr, struct said_answer *sa)
{
	const struct jsonr	*ok = jsonr_member(jr, "ok");
	const struct jsonr	*error = jsonr_member(jr, "error");
	int64_t			 id = said_number(jr, "id", INT64_MAX);
	const char		*text;

	if (jr->jr_type != JSONR_OBJECT || id == -1)
		return "an answer without a number";
	sa->sa_id = (uint64_t)id;
	sa->sa_ok = ok != NULL && ok->jr_type == JSONR_BOOL && ok->jr_number;
	if (sa->sa_ok == (error != NULL))
		return "an answer that is neither ok nor an error";
	if ((text = said_text(error, "code", NAME_LEN)) != NULL)
		said_tame(sa->sa_code, sizeof(sa->sa_code), text);
	if ((text = said_text(error, "message", SIZE_MAX)) != NULL)
		said_tame(sa->sa_text, sizeof(sa->sa_text), text);
	take_sha256(jr, sa);
	return NULL;
}

int
said_answer(const char *line, size_t len, struct said_answer *sa,
    const char **why)
{
	struct jsonr	*jr;

	memset(sa, 0, sizeof(*sa));
	if ((jr = jsonr_parse(line, len, why)) == NULL)
		return -1;
	*why = take_answer(jr, sa);
	jsonr_free(jr);
	return *why == NULL ? 0 : -1;
}

/* Whether a line of a stream is its end, and why: another took over. */
int
said_end(const char *line, size_t len, struct said_answer *sa)
{
	static const char *const	 names[] = { "ok", "error", NULL };
	struct jsonr			*jr;
	const char			*why, *text;
	int				 rv = 0;

	memset(sa, 0, sizeof(*sa));
	if ((jr = jsonr_parse(line, len, &why)) == NULL)
		return 0;
	if (said_is(jr, names) && (text = said_text(jsonr_member(jr, "error"),
	    "code", NAME_LEN)) != NULL) {
		rv = 1;
		said_tame(sa->sa_code, sizeof(sa->sa_code), text);
		if ((text = said_text(jsonr_member(jr, "error"), "message",
		    SIZE_MAX)) != NULL)
			said_tame(sa->sa_text, sizeof(sa->sa_text), text);
	}
	jsonr_free(jr);
	return rv;
}

/* ---- records ------------------------------------------------------------- */

/* Digits at a place, as many as that; the range is the caller's. */
static int
digits(const char *text, size_t at, size_t count)
{
	int	 n = 0;

	for (; count > 0; at++, count--) {
		if (!isdigit((unsigned char)text[at]))
			return -1;
		n = n * 10 + (text[at] - '0');
	}
	return n;
}

/* Days from 1970 on; years begin in March, so that leap days are last. */
static int64_t
days_since_epoch(int year, int month, int day)
{
	int64_t	 y = month <= 2 ? year - 1 : year;

	return y * 365 + y / 4 - y / 100 + y / 400 +
	    (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1 -
	    719468;
}

/* "2026-01-02T03:04:05.678Z", as our own recorder writes it; or -1. */
static int
take_time(const char *text, uint64_t *ns)
{
	static const char	 form[] = "0000-00-00T00:00:00.000Z";
	int			 v[7];
	size_t			 i;

	if (text == NULL || strlen(text) != sizeof(form) - 1)
		return -1;
	for (i = 0; form[i] != '\0'; i++)
		if (form[i] != '0' && form[i] != text[i])
			return -1;
	v[0] = digits(text, 0, 4);
	for (i = 1; i < 6; i++)
		v[i] = digits(text, 2 + 3 * i, 2);
	v[6] = digits(text, 20, 3);
	if (v[0] < 1970 || v[0] > 2500 || v[1] < 1 || v[1] > 12 || v[2] < 1 ||
	    v[2] > 31 || v[3] < 0 || v[3] > 23 || v[4] < 0 || v[4] > 59 ||
	    v[5] < 0 || v[5] > 60 || v[6] < 0)
		return -1;
	*ns = ((uint64_t)days_since_epoch(v[0], v[1], v[2]) * 86400 +
	    (uint64_t)(v[3] * 3600 + v[4] * 60 + v[5])) * 1000000000 +
	    (uint64_t)v[6] * 1000000;
	return 0;
}

/* -1: what no record of ours has. */
static int
retell(struct jsonw *w, const struct jsonr *jr, size_t cut)
{
	const struct jsonr	*value;

	switch (jr->jr_type) {
	case JSONR_NULL:
		jsonw_null(w);
		return 0;
	case JSONR_BOOL:
		jsonw_bool(w, (int)jr->jr_number);
		return 0;
	case JSONR_INTEGER:
		jsonw_int(w, jr->jr_number);
		return 0;
	case JSONR_STRING:
	case JSONR_NUL:
		/* A body may have a NUL, the name of an object may not. */
		if (jr->jr_text == NULL)
			return -1;
		jsonw_string(w, jr->jr_text, utf8_cut(jr->jr_text, jr->jr_len,
		    cut));
		return 0;
	case JSONR_ARRAY:
	case JSONR_OBJECT:
		break;
	default:
		return -1;
	}
	jr->jr_type == JSONR_ARRAY ? jsonw_array(w) : jsonw_object(w);
	for (value = jr->jr_first; value != NULL; value = value->jr_next) {
		if (jr->jr_type == JSONR_OBJECT)
			jsonw_key(w, value->jr_name);
		if (retell(w, value, cut) == -1)
			return -1;
	}
	jsonw_end(w);
	return 0;
}

static int
is_one_of(const char *name, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strcmp(name, *names) == 0)
			return 1;
	return 0;
}

/* All but what every record begins and ends with. */
static const char *
retell_members(const struct jsonr *jr, enum record_kind kind, size_t cut)
{
	static const char *const	 head[] = { "seq", "kind", "at",
	    "session_id", "prev", NULL };
	static const char *const	 ours[] = { "pod", "pod_uid", "node",
	    "origin_seq", "shortened", NULL };
	const struct jsonr		*member;

	jsonw_object(&writer);
	if (kind == RECORD_FILE_OPENED) {
		jsonw_lit(&writer, "reason");
		jsonw_str(&writer, REASON_AUDIT_SWITCHED);
	}
	for (member = jr->jr_first; member != NULL; member = member->jr_next) {
		if (is_one_of(member->jr_name, head))
			continue;
		if (is_one_of(member->jr_name, ours) ||
		    (kind == RECORD_FILE_OPENED &&
		    strcmp(member->jr_name, "reason") == 0))
			return "a record with a member that is not its own";
		jsonw_key(&writer, member->jr_name);
		if (retell(&writer, member, cut) == -1)
			return "a record with a value that none has";
	}
	if (cut != SIZE_MAX) {
		jsonw_lit(&writer, "shortened");
		jsonw_bool(&writer, 1);
	}
	jsonw_end(&writer);
	return NULL;
}

static void
writer_begin(struct jsonw *w)
{
	if (w->jw_max == 0)
		jsonw_init(w, 8 * SAID_RECORD_LEN);
	jsonw_reset(w);
}

static const char *
take_members(const struct jsonr *jr, enum record_kind kind,
    struct said_record *sr)
{
	const char	*why;
	size_t		 i;

	for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		writer_begin(&writer);
		if ((why = retell_members(jr, kind, cuts[i])) != NULL)
			return why;
		sr->sr_members = jsonw_finish(&writer, &sr->sr_len);
		if (sr->sr_members != NULL && sr->sr_len <= MEMBERS_MAX)
			return NULL;
	}
	return "a record that is too long";
}

/* Numbers that a gap of the pod's own accounts for, just before its own. */
static const char *
take_lost(const struct jsonr *jr, struct said_record *sr)
{
	int64_t	 first, last;

	if (said_null(jr, "first_seq") && said_null(jr, "last_seq"))
		return NULL;
	first = said_number(jr, "first_seq", JSONR_INTEGER_MAX);
	last = said_number(jr, "last_seq", JSONR_INTEGER_MAX);
	if (first < 1 || last < first || (uint64_t)last + 1 != sr->sr_seq)
		return "a gap that is none";
	sr->sr_lost = (uint64_t)(last - first) + 1;
	return NULL;
}

static const char *
take_head(const struct jsonr *jr, struct said_record *sr,
    enum record_kind *kind)
{
	const char	*word = said_text(jr, "kind", NAME_LEN);
	const char	*session = said_text(jr, "session_id", NAME_LEN);
	const char	*prev = said_text(jr, "prev", FINGERPRINT_LEN);
	int64_t		 seq = said_number(jr, "seq", JSONR_INTEGER_MAX - 1);
	int		 n = word != NULL ? record_kind_find(word) : -1;

	if (seq < 1)
		return "a record without a number";
	if (n == -1 || said_kinds[n] == RECORD_KIND_MAX)
		return "a record of a kind that its session cannot have";
	*kind = n;
	sr->sr_seq = (uint64_t)seq;
	sr->sr_kind = said_kinds[n];
	if (take_time(said_text(jr, "at", NAME_LEN), &sr->sr_at) == -1)
		return "a record without a time";
	if (sr->sr_kind == RECORD_POD_GAP ? !said_null(jr, "session_id") :
	    session == NULL || strcmp(session, POD_SESSION) != 0)
		return "a record of another session";
	if (!said_null(jr, "prev") && (prev == NULL ||
	    strspn(prev, "0123456789abcdef") != FINGERPRINT_LEN))
		return "a record that is in no chain";
	return *kind == RECORD_GAP ? take_lost(jr, sr) : NULL;
}

int
said_record(const char *line, size_t len, struct said_record *sr,
    const char **why)
{
	struct jsonr		*jr;
	enum record_kind	 kind = RECORD_KIND_MAX;

	memset(sr, 0, sizeof(*sr));
	if (len > SAID_RECORD_LEN) {
		*why = "a record that is too long";
		return -1;
	}
	if ((jr = jsonr_parse(line, len, why)) == NULL)
		return -1;
	*why = jr->jr_type != JSONR_OBJECT ? "a record that is no object" :
	    take_head(jr, sr, &kind);
	if (*why == NULL)
		*why = take_members(jr, kind, sr);
	jsonr_free(jr);
	return *why == NULL ? 0 : -1;
}

/* Numbers that a gate has left out, as a record of their own. */
void
said_gap(uint64_t first, uint64_t last, struct said_record *sr)
{
	struct jsonw	*w = &gap_writer;

	writer_begin(w);
	jsonw_object(w);
	put_str(w, "reason", REASON_NUMBERS_MISSING);
	put_uint(w, "lost", last - first + 1);
	put_uint(w, "first_seq", first);
	put_uint(w, "last_seq", last);
	jsonw_end(w);
	sr->sr_seq = last;
	sr->sr_kind = RECORD_POD_GAP;
	sr->sr_members = jsonw_finish(w, &sr->sr_len);
}
