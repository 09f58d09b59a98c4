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
 * The recorder runs this: what must not be written down (promise P7).  Fields
 * that carry credentials everywhere are hidden always; a policy may name more
 * and parts of the query.  A session whose policy we do not know yet gets what
 * any policy names.  Text is hostile: a line that is no field is passed over.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "log.h"
#include "policy.h"
#include "recorder.h"

#define REDACTED	"[redacted]"

struct redact {
	TAILQ_ENTRY(redact)	 rd_entry;
	char			 rd_policy[NAME_LEN + 1];
	uint8_t			 rd_kind;
	char			 rd_name[NAME_LEN + 1];
};

struct belongs {
	TAILQ_ENTRY(belongs)	 be_entry;
	char			 be_session[NAME_LEN + 1];
	char			 be_policy[NAME_LEN + 1];
	uint8_t			 be_on_full;
};

struct redacts {
	TAILQ_HEAD(, redact)	 rs_list;
	TAILQ_HEAD(, belongs)	 rs_sessions;
};

/* Fields that are hidden whatever a policy says. */
#define ALWAYS(W)							\
	W("authorization") W("proxy-authorization") W("cookie")		\
	W("set-cookie") W("x-api-key") W("api-key") W("x-auth-token")	\
	W("x-amz-security-token") W("private-token")
#define WORD(s)		{ s, sizeof(s) - 1 },
#define LENGTH(s)	| UINT32_C(1) << (sizeof(s) - 1)

static const struct {
	const char	*aw_name;
	size_t		 aw_len;
} always[] = { ALWAYS(WORD) };

static struct redacts	 running = {
	TAILQ_HEAD_INITIALIZER(running.rs_list),
	TAILQ_HEAD_INITIALIZER(running.rs_sessions)
};
static struct redacts	 candidate = {
	TAILQ_HEAD_INITIALIZER(candidate.rs_list),
	TAILQ_HEAD_INITIALIZER(candidate.rs_sessions)
};
static uint32_t		 version;	/* of what is running */
static struct belongs	*recent;	/* who was asked about last, or NULL */

static void
redacts_clear(struct redacts *rs)
{
	struct redact	*rd;
	struct belongs	*be;

	while ((rd = TAILQ_FIRST(&rs->rs_list)) != NULL) {
		TAILQ_REMOVE(&rs->rs_list, rd, rd_entry);
		free(rd);
	}
	while ((be = TAILQ_FIRST(&rs->rs_sessions)) != NULL) {
		TAILQ_REMOVE(&rs->rs_sessions, be, be_entry);
		free(be);
	}
}

void
redact_begin(void)
{
	redacts_clear(&candidate);
}

void
redact_commit(void)
{
	version++;
	recent = NULL;
	redacts_clear(&running);
	TAILQ_CONCAT(&running.rs_list, &candidate.rs_list, rd_entry);
	TAILQ_CONCAT(&running.rs_sessions, &candidate.rs_sessions, be_entry);
}

uint32_t
redact_version(void)
{
	return version;
}

int
recorder_parent_conf_redact(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_redact	*mr = &m->conf_redact;
	struct redact			*rd;

	if (mr->kind > REDACT_QUERY)
		return ipc_bad(ip, "redaction of kind %u", mr->kind);
	if ((rd = calloc(1, sizeof(*rd))) == NULL)
		fatal("%s", __func__);
	strlcpy(rd->rd_policy, mr->policy, sizeof(rd->rd_policy));
	strlcpy(rd->rd_name, mr->name, sizeof(rd->rd_name));
	rd->rd_kind = mr->kind;
	TAILQ_INSERT_TAIL(&candidate.rs_list, rd, rd_entry);
	return 0;
}

int
recorder_parent_conf_session(struct ipc *ip, const union msg *m)
{
	struct belongs	*be;

	(void)ip;
	if ((be = calloc(1, sizeof(*be))) == NULL)
		fatal("%s", __func__);
	strlcpy(be->be_session, m->conf_session.session,
	    sizeof(be->be_session));
	strlcpy(be->be_policy, m->conf_session.policy, sizeof(be->be_policy));
	be->be_on_full = m->conf_session.on_full;
	TAILQ_INSERT_TAIL(&candidate.rs_sessions, be, be_entry);
	return 0;
}

/* One record asks many times about one session. */
static const struct belongs *
belongs_find(const char *session)
{
	struct belongs	*be;

	if (recent != NULL && strcmp(recent->be_session, session) == 0)
		return recent;
	TAILQ_FOREACH(be, &running.rs_sessions, be_entry)
		if (strcmp(be->be_session, session) == 0)
			return recent = be;
	return NULL;
}

/* Whether a session goes on while records are lost; in doubt it does not. */
int
redact_may_lose(const char *session)
{
	const struct belongs	*be = belongs_find(session);

	return be != NULL && be->be_on_full == FULL_GAP;
}

static int
same_name(const char *name, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(name, word, len) == 0;
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

static int
named(const char *session, uint8_t kind, const char *name, size_t len)
{
	const struct belongs	*be;
	struct redact		*rd;

	if (TAILQ_EMPTY(&running.rs_list))
		return 0;
	be = belongs_find(session);
	TAILQ_FOREACH(rd, &running.rs_list, rd_entry)
		if (rd->rd_kind == kind && (be == NULL ||
		    strcmp(rd->rd_policy, be->be_policy) == 0) &&
		    same_name(name, len, rd->rd_name))
			return 1;
	return 0;
}

static int
secret_field(const char *session, const char *name, size_t len)
{
	const uint32_t	 lengths = 0 ALWAYS(LENGTH);
	size_t		 i;

	/* Few names have as many letters as one of these. */
	if (len < 32 && (lengths >> len & 1) != 0)
		for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
			if (always[i].aw_len == len &&
			    strncasecmp(name, always[i].aw_name, len) == 0)
				return 1;
	return named(session, REDACT_HEADER, name, len);
}

/* The next field line of a head; 0 when there is none. */
int
redact_next(const char *session, const char **p, size_t *left,
    struct redact_field *f)
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
		f->rf_name = line;
		f->rf_nlen = colon - line;
		f->rf_value = colon + 1;
		f->rf_vlen = len - f->rf_nlen - 1;
		while (f->rf_vlen > 0 && (*f->rf_value == ' ' ||
		    *f->rf_value == '\t')) {
			f->rf_value++;
			f->rf_vlen--;
		}
		f->rf_secret = secret_field(session, f->rf_name, f->rf_nlen);
		return 1;
	}
	return 0;
}

/* Members of an array, as in `token[]=1', are values of it too. */
static int
secret_parameter(const char *session, const char *p, size_t len)
{
	const char	*bracket;
	char		 name[NAME_LEN + 1];

	len = decode_name(p, len, name, sizeof(name));
	if (named(session, REDACT_QUERY, name, len))
		return 1;
	bracket = memchr(name, '[', len);
	return bracket != NULL &&
	    named(session, REDACT_QUERY, name, bracket - name);
}

/*
 * The path with the values of secret parameters replaced.  Origins do not
 * agree on what stands between parameters: a name may begin wherever one of
 * them would look for it, a value ends only where all of them see its end.
 */
const char *
redact_path(const char *session, const char *path, char *buf, size_t size)
{
	const char	*p = strchr(path, '?'), *end, *eq;
	size_t		 n;

	if (p == NULL || TAILQ_EMPTY(&running.rs_list))
		return path;
	n = ++p - path;
	strlcpy(buf, path, n + 1);
	for (; *p != '\0' && n < size - 1; p = end) {
		end = p + strcspn(p, "?&;");
		eq = memchr(p, '=', end - p);
		if (eq != NULL && secret_parameter(session, p, eq - p)) {
			n += snprintf(buf + n, size - n, "%.*s" REDACTED,
			    (int)(eq + 1 - p), p);
			end += strcspn(end, "&");
			continue;
		}
		if (*end != '\0')
			end++;
		n += snprintf(buf + n, size - n, "%.*s", (int)(end - p), p);
	}
	return buf;
}
