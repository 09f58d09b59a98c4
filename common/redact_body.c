/* SPDX-License-Identifier: ISC */

/*
 * What is hidden of the beginning of a body.  It is cut anywhere, of any type
 * and hostile, so nothing is parsed that could fail: a member of JSON is a
 * string before a colon, wherever it stands, also in a stream of events, in a
 * text that was labelled as something else and, with its quotes escaped, in
 * a string of JSON.  A value whose end is not there is hidden to the end of
 * the text.  Who wants a body to be unreadable has many ways, and names do
 * not help against them; but of what is compressed nothing is shown.
 */

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "redact.h"
#include "role.h"

#define OUT_MAX		(2 * CAPTURE_MAX)
#define MEMBER_MAX	256	/* bytes of a name that count: its last */
#define DEPTH_MAX	3	/* JSON in a string in a string */
#define LEN(s)		(sizeof(s) - 1)

static char	 forms[OUT_MAX];
static char	 members[OUT_MAX];

/* ---- JSON ---------------------------------------------------------------- */

/*
 * Backslashes before a quote at this depth: a document's own strings have
 * none, those of a document in a string one, then three and seven.
 */
static size_t
slashes_at(unsigned int depth)
{
	return ((size_t)1 << depth) - 1;
}

static size_t
count_slashes(const char *begin, const char *p)
{
	size_t	 n = 0;

	while (p > begin && p[-1] == '\\') {
		p--;
		n++;
	}
	return n;
}

/* Escapes undone, however often they were escaped. */
static size_t
decode_member(const char *p, size_t len, char *out)
{
	size_t	 i, k, n = 0;
	int	 c, v;

	for (i = 0; i < len; i++) {
		if (p[i] != '\\') {
			out[n++] = p[i];
			continue;
		}
		while (i + 1 < len && p[i + 1] == '\\')
			i++;
		if (len - i < 6 || p[i + 1] != 'u')
			continue;
		for (v = 0, k = 2; k < 6; k++) {
			if (!isxdigit(c = (unsigned char)p[i + k]))
				break;
			v = v << 4 | (isdigit(c) ? c - '0' :
			    tolower(c) - 'a' + 10);
		}
		if (k < 6)
			continue;
		out[n++] = v < 0x80 ? (char)v : '?';
		i += 5;
	}
	return n;
}

/*
 * A look at the last letters, which settles nearly all, unless one of them is
 * that of an escape.  A name in a string of JSON ends in a backslash.
 */
static bool
may_be_secret(const struct redact *rd, const char *begin, const char *colon)
{
	const char	*three = colon - 4;

	if (three < begin || colon[-1] != '"')
		return colon > begin && (colon[-1] == '"' ||
		    isspace((unsigned char)colon[-1]));
	return redact_may_hide(rd, three) || three - begin < 5 ||
	    three[-3] == '\\' || three[-4] == '\\' || three[-5] == '\\';
}

/* Whether the string before a colon is the name of something to hide. */
static bool
secret_member(const struct redact *rd, const char *begin, const char *colon,
    unsigned int *depth)
{
	const char	*end = colon, *p;
	char		 name[MEMBER_MAX];
	size_t		 len, slashes;

	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	if (end == begin || *--end != '"')
		return false;
	slashes = count_slashes(begin, end);
	for (*depth = 0; slashes_at(*depth) != slashes; ++*depth)
		if (*depth == DEPTH_MAX)
			return false;
	end -= slashes;
	if ((size_t)(end - begin) > MEMBER_MAX)
		begin = end - MEMBER_MAX;
	p = memrchr(begin, '"', end - begin);
	p = p == NULL ? begin : p + 1;
	len = end - p;
	if (memchr(p, '\\', len) != NULL) {
		len = decode_member(p, len, name);
		p = name;
	}
	return redact_hides(rd, REDACT_FIELD, p, len);
}

/*
 * After the closing quote.  A quote that is escaped less closes a string
 * around this one: there the value ends, too.
 */
static const char *
string_end(const char *begin, const char *end, char quote, unsigned int depth)
{
	const char	*p;
	size_t		 n, need = slashes_at(depth);

	for (p = begin; (p = memchr(p, quote, end - p)) != NULL; p++) {
		n = count_slashes(begin, p);
		if (n < need)
			return p - n;
		if (n % (2 * (need + 1)) == need)
			return p + 1;
	}
	return end;
}

/* Whether a quote stands here, escaped as at this depth. */
static bool
is_quote(const char *p, const char *end, unsigned int depth)
{
	size_t	 i, need = slashes_at(depth);

	if ((size_t)(end - p) <= need)
		return false;
	for (i = 0; i < need; i++)
		if (p[i] != '\\')
			return false;
	return p[need] == '"';
}

/* After the bracket that closes the one at p. */
static const char *
nest_end(const char *p, const char *end, unsigned int depth)
{
	size_t	 open = 0;

	while (p < end) {
		if (is_quote(p, end, depth)) {
			p = string_end(p + slashes_at(depth) + 1, end, '"',
			    depth);
			continue;
		}
		if (*p == '"')
			return p;	/* closes a string around it */
		if (*p == '{' || *p == '[')
			open++;
		else if ((*p == '}' || *p == ']') && --open == 0)
			return p + 1;
		p++;
	}
	return end;
}

static const char *
value_end(const char *p, const char *end, unsigned int depth)
{
	const char	*stops;

	if (p == end)
		return end;
	if (is_quote(p, end, depth))
		return string_end(p + slashes_at(depth) + 1, end, '"', depth);
	if (*p == '\'')		/* JSON5 */
		return string_end(p + 1, end, '\'', 0);
	if (*p == '{' || *p == '[')
		return nest_end(p, end, depth);
	stops = depth == 0 ? ",}]\r\n" : ",}]\"\\";
	while (p < end && (*p == '\0' || strchr(stops, *p) == NULL))
		p++;
	return p;
}

/* A string at this depth, in place of what is hidden. */
static void
put_mark(struct redact_out *ro, unsigned int depth)
{
	static const char	 slashes[] = "\\\\\\\\\\\\\\";
	size_t			 n = slashes_at(depth);

	redact_put(ro, slashes, n);
	redact_put(ro, "\"" REDACTED, LEN("\"" REDACTED));
	redact_put(ro, slashes, n);
	redact_put(ro, "\"", 1);
}

static void
hide_members(const struct redact *rd, const char *begin, size_t len,
    struct redact_out *ro)
{
	const char	*p = begin, *end = begin + len, *from = begin, *value;
	unsigned int	 depth;

	while ((p = memchr(p, ':', end - p)) != NULL) {
		value = p + 1;
		if (!may_be_secret(rd, from, p) ||
		    !secret_member(rd, from, p, &depth)) {
			p = value;
			continue;
		}
		while (value < end && isspace((unsigned char)*value))
			value++;
		p = value_end(value, end, depth);
		redact_put(ro, from, value - from);
		put_mark(ro, depth);
		ro->ro_hidden += p - value;
		from = p;
	}
	if (from != begin)
		redact_put(ro, from, end - from);
}

/* ---- multipart/form-data (RFC 7578) -------------------------------------- */

/* A parameter `name' in the head of a part, its value at p. */
static bool
hides_part(const struct redact *rd, const char *p, const char *end)
{
	const char	*stop;

	if (p < end && *p == '"') {
		p++;
		if ((stop = memchr(p, '"', end - p)) == NULL)
			stop = end;
	} else
		for (stop = p; stop < end && *stop != ';' &&
		    !isspace((unsigned char)*stop); stop++)
			continue;
	return redact_hides(rd, REDACT_FIELD, p, stop - p) ||
	    redact_hides(rd, REDACT_QUERY, p, stop - p);
}

static bool
part_is_secret(const struct redact *rd, const char *head, const char *end)
{
	const char	*p;

	for (p = head; (p = memchr(p, '=', end - p)) != NULL;) {
		p++;
		/* `name=', but not the end of `filename='. */
		if (p - head > 5 && strncasecmp(p - 5, "name=", 5) == 0 &&
		    !isalpha((unsigned char)p[-6]) && hides_part(rd, p, end))
			return true;
	}
	return false;
}

/* Of a part: where its head ends and its content begins. */
static const char *
part_content(const char *p, const char *end)
{
	const char	*crlf = memmem(p, end - p, "\r\n\r\n", 4);
	const char	*lf = memmem(p, end - p, "\n\n", 2);

	if (crlf == NULL && lf == NULL)
		return end;
	if (lf == NULL || (crlf != NULL && crlf < lf))
		return crlf + 4;
	return lf + 2;
}

/*
 * The first line that begins with `--' is what stands between parts, whatever
 * the head says.  Its length, or 0 if there is none.
 */
static size_t
find_boundary(const char *body, size_t len, const char **mark)
{
	const char	*end = body + len, *stop;
	size_t		 n;

	*mark = len >= 2 && memcmp(body, "--", 2) == 0 ? body :
	    memmem(body, len, "\n--", 3);
	if (*mark == NULL)
		return 0;
	*mark += **mark == '\n';
	stop = memchr(*mark, '\n', end - *mark);
	n = (stop == NULL ? end : stop) - *mark;
	while (n > 2 && isspace((unsigned char)(*mark)[n - 1]))
		n--;
	return n > 2 ? n : 0;
}

/* A boundary stands on a line of its own; else it is part of a value. */
static const char *
next_boundary(const char *p, const char *end, const char *mark, size_t n)
{
	const char	*after;

	for (; (p = memmem(p, end - p, mark, n)) != NULL; p++) {
		after = p + n;
		if (p[-1] == '\n' && (after == end ||
		    isspace((unsigned char)*after) ||
		    (end - after >= 2 && memcmp(after, "--", 2) == 0)))
			return p;
	}
	return NULL;
}

/* false: where the parts begin and end cannot be seen. */
static bool
hide_parts(const struct redact *rd, const char *begin, size_t len,
    struct redact_out *ro)
{
	const char	*end = begin + len, *mark, *p, *stop, *next, *content;
	size_t		 n;

	if ((n = find_boundary(begin, len, &mark)) == 0)
		return false;
	p = mark + n;
	redact_put(ro, begin, p - begin);
	for (; p < end; p = next) {
		stop = next_boundary(p, end, mark, n);
		next = stop == NULL ? end : stop + n;
		stop = stop == NULL ? end : stop;
		content = part_content(p, stop);
		if (content < stop && part_is_secret(rd, p, content)) {
			redact_put(ro, p, content - p);
			redact_put(ro, REDACTED "\r\n", LEN(REDACTED "\r\n"));
			ro->ro_hidden += stop - content;
			p = stop;
		}
		redact_put(ro, p, next - p);
	}
	return true;
}

/* ---- bodies -------------------------------------------------------------- */

static bool
has_prefix(const char *text, size_t len, const char *word)
{
	size_t	 n = strlen(word);

	return len >= n && strncasecmp(text, word, n) == 0;
}

static enum redact_media
media_of_type(const char *type, size_t len)
{
	static const char *const	 json[] = {
		"application/json", "text/json", "application/x-ndjson",
		"application/jsonl", "text/event-stream"
	};
	const char			*semicolon = memchr(type, ';', len);
	size_t				 i, n;

	if (has_prefix(type, len, "multipart/"))
		return MEDIA_MULTIPART;
	if (has_prefix(type, len, "application/x-www-form-urlencoded"))
		return MEDIA_FORM;
	n = semicolon == NULL ? len : (size_t)(semicolon - type);
	while (n > 0 && isspace((unsigned char)type[n - 1]))
		n--;
	if (n > 5 && strncasecmp(type + n - 5, "+json", 5) == 0)
		return MEDIA_JSON;
	for (i = 0; i < sizeof(json) / sizeof(json[0]); i++)
		if (has_prefix(type, len, json[i]))
			return MEDIA_JSON;
	return MEDIA_OTHER;
}

static bool
is_named(const struct redact_line *rl, const char *name, size_t len)
{
	return rl->rl_nlen == len && strncasecmp(rl->rl_name, name, len) == 0;
}

enum redact_media
redact_media(enum redact_media media, const struct redact_line *rl)
{
	if (media != MEDIA_ENCODED &&
	    is_named(rl, "content-type", LEN("content-type")))
		return media_of_type(rl->rl_value, rl->rl_vlen);
	if (is_named(rl, "content-encoding", LEN("content-encoding")) &&
	    rl->rl_vlen > 0 && !(rl->rl_vlen == LEN("identity") &&
	    strncasecmp(rl->rl_value, "identity", rl->rl_vlen) == 0))
		return MEDIA_ENCODED;
	return media;
}

/* JSON and forms have no zero bytes, unless they are written in UTF-16. */
static bool
is_opaque(enum redact_media media, const char *body, size_t len)
{
	return media == MEDIA_ENCODED || ((media == MEDIA_JSON ||
	    media == MEDIA_FORM) && memchr(body, '\0', len) != NULL);
}

struct redacted
redact_body(const struct redact *rd, enum redact_media media,
    const char *body, size_t len)
{
	struct redact_out	 fo = { forms, sizeof(forms), 0, 0 };
	struct redact_out	 me = { members, sizeof(members), 0, 0 };

	if (len == 0)
		return (struct redacted){ "", 0, 0 };
	if (is_opaque(media, body, len))
		return (struct redacted){ NULL, 0, len };
	if (media == MEDIA_FORM || media == MEDIA_UNKNOWN)
		redact_parameters(rd, true, body, len, &fo);
	else if (media == MEDIA_MULTIPART && !hide_parts(rd, body, len, &fo))
		return (struct redacted){ NULL, 0, len };
	if (fo.ro_hidden > 0) {
		body = fo.ro_buf;
		len = fo.ro_len;
	}
	hide_members(rd, body, len, &me);
	if (me.ro_hidden == 0)
		return (struct redacted){ body, len, fo.ro_hidden };
	return (struct redacted){ me.ro_buf, me.ro_len,
	    fo.ro_hidden + me.ro_hidden };
}
