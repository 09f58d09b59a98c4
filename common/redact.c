/* SPDX-License-Identifier: ISC */

/*
 * What is hidden of names and URLs; see redact.h.  Origins do not agree on
 * where a parameter begins and ends: a name may begin wherever one of them
 * would look for it, a value ends only where all of them see its end.
 */

#include <sys/types.h>
#include <sys/queue.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "log.h"
#include "redact.h"
#include "role.h"

/*
 * The shortest parameter that grows is `a=b&', a third of what it becomes; no
 * text is longer than the lines of a head.
 */
#define OUT_MAX		(4 * FIELDS_LEN)
#define NAME_MAX_LEN	1024	/* of a longer name the end counts */

struct name {
	TAILQ_ENTRY(name)	 na_entry;
	enum redact_kind	 na_kind;
	bool			 na_show;
	size_t			 na_len;
	char			 na_text[];
};

struct redact {
	TAILQ_HEAD(, name)	 rd_names;
	bool			 rd_ends[256];	/* last bytes of fields */
};

static char	 memory[OUT_MAX];
static char	 places[OUT_MAX];	/* of redact_value(), in between */

struct redact *
redact_new(void)
{
	struct redact	*rd;

	if ((rd = calloc(1, sizeof(*rd))) == NULL)
		fatal("%s", __func__);
	TAILQ_INIT(&rd->rd_names);
	return rd;
}

void
redact_add(struct redact *rd, enum redact_kind kind, const char *text,
    bool show)
{
	struct name	*na;
	size_t		 len = strlen(text);

	if ((na = calloc(1, sizeof(*na) + len + 1)) == NULL)
		fatal("%s", __func__);
	na->na_kind = kind;
	na->na_show = show;
	na->na_len = len;
	memcpy(na->na_text, text, len);
	if (kind == REDACT_FIELD && !show && len > 0) {
		rd->rd_ends[tolower((unsigned char)text[len - 1])] = true;
		rd->rd_ends[toupper((unsigned char)text[len - 1])] = true;
	}
	TAILQ_INSERT_TAIL(&rd->rd_names, na, na_entry);
}

void
redact_free(struct redact *rd)
{
	struct name	*na;

	if (rd == NULL)
		return;
	while ((na = TAILQ_FIRST(&rd->rd_names)) != NULL) {
		TAILQ_REMOVE(&rd->rd_names, na, na_entry);
		free(na);
	}
	free(rd);
}

static bool
listed(const struct redact *rd, enum redact_kind kind, bool show,
    const char *name, size_t len)
{
	const struct name	*na;

	if (rd == NULL)
		return false;
	TAILQ_FOREACH(na, &rd->rd_names, na_entry)
		if (na->na_kind == kind && na->na_show == show &&
		    na->na_len == len &&
		    strncasecmp(na->na_text, name, len) == 0)
			return true;
	return false;
}

bool
redact_hides(const struct redact *rd, enum redact_kind kind, const char *name,
    size_t len)
{
	if (listed(rd, kind, false, name, len))
		return true;
	return redact_known(kind, name, len) &&
	    !listed(rd, kind, true, name, len);
}

bool
redact_may_hide(const struct redact *rd, const char *three)
{
	return redact_known_end(three) ||
	    (rd != NULL && rd->rd_ends[(unsigned char)three[2]]);
}

/* ---- texts --------------------------------------------------------------- */

/* What does not fit is cut off: it shows less, never more. */
void
redact_put(struct redact_out *ro, const char *text, size_t len)
{
	if (len > ro->ro_size - ro->ro_len)
		len = ro->ro_size - ro->ro_len;
	memcpy(ro->ro_buf + ro->ro_len, text, len);
	ro->ro_len += len;
}

/*
 * A parameter's name as origins read it: `%74oken' is a token too, and some
 * of them pass over blanks before it.
 */
static size_t
decode_name(const char *name, size_t len, char *out, size_t size)
{
	char	 c, hex[3] = "";
	size_t	 i, n = 0;

	for (i = 0; i < len && n < size; i++) {
		c = name[i];
		if (c == '%' && len - i >= 3 &&
		    isxdigit((unsigned char)name[i + 1]) &&
		    isxdigit((unsigned char)name[i + 2])) {
			memcpy(hex, name + i + 1, 2);
			c = strtol(hex, NULL, 16);
			i += 2;
		}
		if (n > 0 || (c != '+' && !isspace((unsigned char)c)))
			out[n++] = c;
	}
	return n;
}

static bool
hides_parameter(const struct redact *rd, bool form, const char *name,
    size_t len)
{
	return redact_hides(rd, REDACT_QUERY, name, len) ||
	    (form && redact_hides(rd, REDACT_FIELD, name, len));
}

/* In `user[token][]=1' each word and the whole may be a hidden name. */
static bool
secret_parameter(const struct redact *rd, bool form, const char *p, size_t len)
{
	const char	*bracket, *inner;
	char		 name[NAME_MAX_LEN];

	if (len > sizeof(name)) {
		p += len - sizeof(name);
		len = sizeof(name);
	}
	name[0] = '\0';
	len = decode_name(p, len, name, sizeof(name));
	if (hides_parameter(rd, form, name, len))
		return true;
	if ((bracket = memchr(name, '[', len)) == NULL)
		return false;
	if (hides_parameter(rd, form, name, bracket - name))
		return true;
	for (inner = bracket + 1; (bracket = memchr(inner, ']', name + len -
	    inner)) != NULL; inner = bracket + 1) {
		if (*inner == '[')
			inner++;
		if (bracket > inner &&
		    hides_parameter(rd, form, inner, bracket - inner))
			return true;
	}
	return false;
}

static const char *
find_any(const char *p, const char *end, const char *set)
{
	while (p < end && (*p == '\0' || strchr(set, *p) == NULL))
		p++;
	return p;
}

/*
 * The parameters of a query or, with form, of a body.  An empty value has
 * nothing to hide.
 */
void
redact_parameters(const struct redact *rd, bool form, const char *p,
    size_t len, struct redact_out *ro)
{
	const char	*end = p + len, *from = p, *next, *eq;

	for (; p < end; p = next) {
		next = find_any(p, end, "?&;#");
		eq = memchr(p, '=', next - p);
		if (eq != NULL && secret_parameter(rd, form, p, eq - p)) {
			eq++;
			if ((next = memchr(next, '&', end - next)) == NULL)
				next = end;
			if (next > eq) {
				redact_put(ro, from, eq - from);
				redact_put(ro, REDACTED, sizeof(REDACTED) - 1);
				ro->ro_hidden += next - eq;
				from = next;
			}
		}
		if (next < end)
			next++;
	}
	redact_put(ro, from, end - from);
}

/* The text itself if nothing of it is hidden. */
static struct redacted
redacted_of(const struct redact_out *ro, const char *text, size_t len)
{
	if (ro->ro_hidden == 0)
		return (struct redacted){ text, len, 0 };
	return (struct redacted){ ro->ro_buf, ro->ro_len, ro->ro_hidden };
}

struct redacted
redact_path(const struct redact *rd, const char *path, size_t len)
{
	struct redact_out	 ro = { memory, sizeof(memory), 0, 0 };
	const char		*query = memchr(path, '?', len);

	if (query == NULL)
		return (struct redacted){ path, len, 0 };
	query++;
	redact_put(&ro, path, query - path);
	redact_parameters(rd, false, query, len - (query - path), &ro);
	return redacted_of(&ro, path, len);
}

/* Where `user:password' ends that begins here, or NULL. */
static const char *
userinfo_end(const char *p, const char *end)
{
	const char	*stop = find_any(p, end, "/?# \t<>\",");

	return memrchr(p, '@', stop - p);
}

/* Hide the userinfo of each URL. */
static void
put_places(const char *p, size_t len, struct redact_out *ro)
{
	const char	*end = p + len, *slashes, *at;

	while ((slashes = memmem(p, end - p, "://", 3)) != NULL) {
		slashes += 3;
		redact_put(ro, p, slashes - p);
		p = slashes;
		at = userinfo_end(p, end);
		if (at == NULL || at == p)
			continue;
		redact_put(ro, REDACTED, sizeof(REDACTED) - 1);
		ro->ro_hidden += at - p;
		p = at;
	}
	redact_put(ro, p, end - p);
}

/*
 * Location, Referer, Link and others carry URLs, and these the parameters of
 * a query, also behind `#', where OAuth puts a token.
 */
struct redacted
redact_value(const struct redact *rd, const char *value, size_t len)
{
	struct redact_out	 pl = { places, sizeof(places), 0, 0 };
	struct redact_out	 ro = { memory, sizeof(memory), 0, 0 };
	struct redacted		 re = { value, len, 0 };
	const char		*query;

	if (memchr(value, '@', len) != NULL) {
		put_places(value, len, &pl);
		re = redacted_of(&pl, value, len);
	}
	if (memchr(value, '?', len) == NULL && memchr(value, '#', len) == NULL)
		return re;
	ro.ro_hidden = re.re_hidden;
	query = find_any(re.re_text, re.re_text + re.re_len, "?#");
	redact_put(&ro, re.re_text, query - re.re_text);
	redact_parameters(rd, false, query, re.re_text + re.re_len - query,
	    &ro);
	return redacted_of(&ro, value, len);
}

/* A line that is no field is passed over. */
bool
redact_next(const char **p, size_t *left, struct redact_line *rl)
{
	const char	*line, *end, *colon;
	size_t		 len;

	while (*left > 0) {
		line = *p;
		end = memchr(line, '\n', *left);
		len = end != NULL ? (size_t)(end - line) + 1 : *left;
		*p += len;
		*left -= len;
		while (len > 0 && (line[len - 1] == '\n' ||
		    line[len - 1] == '\r'))
			len--;
		if ((colon = memchr(line, ':', len)) == NULL)
			continue;
		rl->rl_name = line;
		rl->rl_nlen = colon - line;
		rl->rl_value = colon + 1;
		rl->rl_vlen = len - rl->rl_nlen - 1;
		while (rl->rl_vlen > 0 && (*rl->rl_value == ' ' ||
		    *rl->rl_value == '\t')) {
			rl->rl_value++;
			rl->rl_vlen--;
		}
		return true;
	}
	return false;
}
