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
 * policyd: from a line to a request.  The line comes from a control client
 * and may be anything.  What cJSON lets pass and we do not: control
 * characters between values, escaped NULs (they would cut a name short), a
 * field given twice (two readers would take two different ones), a field
 * that the operation does not know (a misspelt filter would select all).
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "name.h"
#include "policyd.h"

#define ID_MAX	((double)(1LL << 53) - 1)	/* exact as a JSON number */

static int	 is_integer(const cJSON *);
static int	 is_string(const cJSON *);
static int	 is_string_array(const cJSON *);
static int	 is_string_list(const cJSON *);
static int	 is_string_map(const cJSON *);
static int	 is_boolean(const cJSON *);

static const struct {
	const char	 *name;
	const char	 *wanted;
	int		(*is)(const cJSON *);
} fields[FIELD_MAX] = {
	[FIELD_ID] = { "id", "an integer", is_integer },
	[FIELD_OP] = { "op", "a string", is_string },
	[FIELD_LEVEL] = { "level", "a string", is_string },
	[FIELD_SESSION] = { "session_id", "a string", is_string },
	[FIELD_KINDS] = { "kinds", "an array of strings, not empty",
	    is_string_list },
	[FIELD_POLICY] = { "policy", "a string", is_string },
	[FIELD_WHOSE] = { "session", "a string", is_string },
	[FIELD_ROLE] = { "role", "a string", is_string },
	[FIELD_CONTENT] = { "content", "a string", is_string },
	[FIELD_METADATA] = { "metadata", "an object of strings, no name twice",
	    is_string_map },
	[FIELD_VERSION] = { "version", "an integer", is_integer },
	[FIELD_PENDING] = { "pending", "a string", is_string },
	[FIELD_DECISION] = { "decision", "a string", is_string },
	[FIELD_REASON] = { "reason", "a string", is_string },
	[FIELD_REMEMBER] = { "remember", "a boolean", is_boolean },
	[FIELD_HOST] = { "host", "a string", is_string },
	[FIELD_ENVIRONMENT] = { "environment", "an array of strings",
	    is_string_array },
	[FIELD_DECIDER] = { "decider", "a string", is_string },
	[FIELD_SCHEME] = { "scheme", "a string", is_string },
	[FIELD_PORT] = { "port", "an integer", is_integer },
	[FIELD_METHOD] = { "method", "a string", is_string },
	[FIELD_PATH] = { "path", "a string", is_string },
	[FIELD_MESSAGES] = { "messages", "an array of strings",
	    is_string_array },
};

static int
is_integer(const cJSON *v)
{
	double	 d = v->valuedouble;

	return cJSON_IsNumber(v) && d >= -ID_MAX && d <= ID_MAX &&
	    (double)(int64_t)d == d;
}

static int
is_string(const cJSON *v)
{
	return cJSON_IsString(v) && v->valuestring != NULL;
}

static int
is_string_array(const cJSON *v)
{
	const cJSON	*item;

	if (!cJSON_IsArray(v))
		return 0;
	cJSON_ArrayForEach(item, v)
		if (!is_string(item))
			return 0;
	return 1;
}

static int
is_string_list(const cJSON *v)
{
	return is_string_array(v) && v->child != NULL;
}

/* No name twice; METADATA_MAX keeps what is quadratic small. */
static int
is_string_map(const cJSON *v)
{
	const cJSON	*item, *other;

	if (!cJSON_IsObject(v) || cJSON_GetArraySize(v) > METADATA_MAX)
		return 0;
	cJSON_ArrayForEach(item, v) {
		if (!is_string(item))
			return 0;
		for (other = v->child; other != item; other = other->next)
			if (strcmp(other->string, item->string) == 0)
				return 0;
	}
	return 1;
}

static int
is_boolean(const cJSON *v)
{
	return cJSON_IsBool(v);
}

int
request_fail(struct request *rq, const char *code, const char *fmt, ...)
{
	va_list	 ap;

	rq->rq_code = code;
	va_start(ap, fmt);
	vsnprintf(rq->rq_message, sizeof(rq->rq_message), fmt, ap);
	va_end(ap);
	return -1;
}

static int
fail_type(struct request *rq, enum field f)
{
	return request_fail(rq, "bad_request", "%s: wanted %s", fields[f].name,
	    fields[f].wanted);
}

/* A backslash is legal in strings only, so there is no need to find those. */
static const char *
line_fault(const char *line, size_t len)
{
	size_t	 i;

	for (i = 0; i < len; i++) {
		if ((unsigned char)line[i] < ' ' && line[i] != '\t' &&
		    line[i] != '\r')
			return "control character";
		if (line[i] != '\\')
			continue;
		if (len - i >= 6 && memcmp(line + i, "\\u0000", 6) == 0)
			return "NUL in a string";
		if (i + 1 < len && line[i + 1] >= ' ')
			i++;
	}
	return NULL;
}

static int
bad_json(struct request *rq, const char *why)
{
	rq->rq_hangup = 1;
	return request_fail(rq, "bad_json", "%s", why);
}

static int
parse_json(struct request *rq, const char *line, size_t len)
{
	const char	*why, *end;

	if ((why = line_fault(line, len)) != NULL)
		return bad_json(rq, why);
	rq->rq_json = cJSON_ParseWithLengthOpts(line, len, &end, 0);
	if (rq->rq_json == NULL)
		return bad_json(rq, "not JSON, or nested too deeply");
	for (; end < line + len; end++)
		if (strchr(" \t\r", *end) == NULL)
			return bad_json(rq, "more than one value in a line");
	if (!cJSON_IsObject(rq->rq_json))
		return bad_json(rq, "not an object");
	return 0;
}

static enum field
find_field(const char *name)
{
	enum field	 f;

	for (f = 0; f < FIELD_MAX; f++)
		if (strcmp(fields[f].name, name) == 0)
			break;
	return f;
}

/* One walk over the object, however many members it has. */
static void
collect_fields(struct request *rq)
{
	const cJSON	*v;
	enum field	 f;

	cJSON_ArrayForEach(v, rq->rq_json) {
		if ((f = find_field(v->string)) == FIELD_MAX)
			rq->rq_stray = v->string;
		else if (rq->rq_fields[f] != NULL)
			rq->rq_twice = fields[f].name;
		else
			rq->rq_fields[f] = v;
	}
}

/* As far as it can go without knowing the operation. */
int
request_parse(struct request *rq, const char *line, size_t len)
{
	const cJSON	*id, *op;

	memset(rq, 0, sizeof(*rq));
	if (parse_json(rq, line, len) == -1)
		return -1;
	collect_fields(rq);
	if ((id = rq->rq_fields[FIELD_ID]) != NULL) {
		if (!is_integer(id))
			return fail_type(rq, FIELD_ID);
		rq->rq_id.ri_given = 1;
		rq->rq_id.ri_value = (int64_t)id->valuedouble;
	}
	if (rq->rq_twice != NULL)
		return request_fail(rq, "bad_request", "%s: given twice",
		    rq->rq_twice);
	op = rq->rq_fields[FIELD_OP];
	if (op == NULL || !is_string(op))
		return fail_type(rq, FIELD_OP);
	return 0;
}

/* Sets of fields, as 1 << enum field: those permitted, those required. */
int
request_check(struct request *rq, uint32_t may, uint32_t must)
{
	enum field	 f;

	may |= 1U << FIELD_ID | 1U << FIELD_OP | must;
	if (rq->rq_stray != NULL)
		return request_fail(rq, "bad_request",
		    "%.64s: no such field", rq->rq_stray);
	for (f = 0; f < FIELD_MAX; f++) {
		if (rq->rq_fields[f] == NULL) {
			if (must & 1U << f)
				return fail_type(rq, f);
			continue;
		}
		if (!(may & 1U << f))
			return request_fail(rq, "bad_request",
			    "%s: not a field of %s", fields[f].name,
			    request_op(rq));
		if (!fields[f].is(rq->rq_fields[f]))
			return fail_type(rq, f);
	}
	return 0;
}

const char *
request_op(const struct request *rq)
{
	return rq->rq_fields[FIELD_OP]->valuestring;
}

int
request_level(struct request *rq, uint8_t *level)
{
	const char	*word = rq->rq_fields[FIELD_LEVEL]->valuestring;
	int		 n;

	if ((n = log_level_parse(word)) == -1)
		return request_fail(rq, "bad_request", "level: wanted error, "
		    "warn, info or debug, not \"%.64s\"", word);
	*level = n;
	return 0;
}

/* "" for none; and whether a boolean is there and true. */
const char *
request_text(const struct request *rq, enum field f)
{
	return rq->rq_fields[f] != NULL ? rq->rq_fields[f]->valuestring : "";
}

int
request_is(const struct request *rq, enum field f)
{
	return rq->rq_fields[f] != NULL && cJSON_IsTrue(rq->rq_fields[f]);
}

/* A name as egressd.conf(5) has them; "" for none. */
int
request_name(struct request *rq, enum field f, const char **name)
{
	const char	*why;

	*name = "";
	if (rq->rq_fields[f] == NULL)
		return 0;
	*name = rq->rq_fields[f]->valuestring;
	if ((why = name_error(*name)) != NULL)
		return request_fail(rq, "bad_request", "%s: %s",
		    fields[f].name, why);
	return 0;
}

int
request_session(struct request *rq, const char **name)
{
	return request_name(rq, FIELD_SESSION, name);
}

int
request_policy(struct request *rq, const char **name)
{
	return request_name(rq, FIELD_POLICY, name);
}

static int
find_kind(const char *name)
{
	int	 kind;

	for (kind = 0; kind < RECORD_KIND_MAX; kind++)
		if (strcmp(record_kind_name(kind), name) == 0)
			return kind;
	return -1;
}

/* A set of 1 << record kind; all of them by default. */
int
request_kinds(struct request *rq, uint32_t *kinds)
{
	const cJSON	*v;
	int		 kind;

	*kinds = (1U << RECORD_KIND_MAX) - 1;
	if (rq->rq_fields[FIELD_KINDS] == NULL)
		return 0;
	*kinds = 0;
	cJSON_ArrayForEach(v, rq->rq_fields[FIELD_KINDS]) {
		if ((kind = find_kind(v->valuestring)) == -1)
			return request_fail(rq, "bad_request",
			    "kinds: no such kind \"%.64s\"", v->valuestring);
		*kinds |= 1U << kind;
	}
	return 0;
}

void
request_free(struct request *rq)
{
	cJSON_Delete(rq->rq_json);
	rq->rq_json = NULL;
}
