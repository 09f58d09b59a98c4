/* SPDX-License-Identifier: ISC */

/*
 * controld: from a line to a request.  The line comes from a control client
 * and may be anything.  What cJSON lets pass and we do not: control
 * characters between values, escaped NULs (they would cut a name short), a
 * field given twice (two readers would take two different ones), a field
 * that the operation does not know (a misspelt filter would select all).
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "name.h"
#include "controld.h"

#define ID_MAX	((double)(1LL << 53) - 1)	/* exact as a JSON number */

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
is_from(const cJSON *v)
{
	return (is_integer(v) && v->valuedouble >= 1) || (is_string(v) &&
	    strcmp(v->valuestring, "acknowledged") == 0);
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
is_object_array(const cJSON *v)
{
	const cJSON	*item;

	if (!cJSON_IsArray(v))
		return 0;
	cJSON_ArrayForEach(item, v)
		if (!cJSON_IsObject(item))
			return 0;
	return 1;
}

static int
is_boolean(const cJSON *v)
{
	return cJSON_IsBool(v);
}

static const struct {
	const char	 *wanted;
	int		(*is)(const cJSON *);
} types[] = {
	[FIELD_INTEGER] = { "an integer", is_integer },
	[FIELD_STRING] = { "a string", is_string },
	[FIELD_FROM] = { "the number of a record, or \"acknowledged\"",
	    is_from },
	[FIELD_BOOLEAN] = { "a boolean", is_boolean },
	[FIELD_STRINGS] = { "an array of strings", is_string_array },
	[FIELD_STRINGS_SOME] = { "an array of strings, not empty",
	    is_string_list },
	[FIELD_STRING_MAP] = { "an object of strings, no name twice",
	    is_string_map },
	[FIELD_OBJECTS] = { "an array of objects", is_object_array },
};

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
fail_type(struct request *rq, const char *name, enum field_type type)
{
	return request_fail(rq, CODE_BAD_REQUEST, "%s: wanted %s", name,
	    types[type].wanted);
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
	return request_fail(rq, CODE_BAD_JSON, "%s", why);
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

static int
fail_twice(struct request *rq, const char *name)
{
	return request_fail(rq, CODE_BAD_REQUEST, "%s: given twice", name);
}

/* The fields that every operation has; the others wait for request_check(). */
static void
collect_common(struct request *rq)
{
	const cJSON	*v, **to;

	cJSON_ArrayForEach(v, rq->rq_json) {
		if (strcmp(v->string, "id") == 0)
			to = &rq->rq_id_field;
		else if (strcmp(v->string, "op") == 0)
			to = &rq->rq_op_field;
		else
			continue;
		if (*to != NULL && rq->rq_twice == NULL)
			rq->rq_twice = v->string;
		*to = v;
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
	collect_common(rq);
	if ((id = rq->rq_id_field) != NULL) {
		if (!is_integer(id))
			return fail_type(rq, "id", FIELD_INTEGER);
		rq->rq_id.ri_given = 1;
		rq->rq_id.ri_value = (int64_t)id->valuedouble;
	}
	if (rq->rq_twice != NULL)
		return fail_twice(rq, rq->rq_twice);
	op = rq->rq_op_field;
	if (op == NULL || !is_string(op))
		return fail_type(rq, "op", FIELD_STRING);
	return 0;
}

static size_t
field_count(const struct field *fields)
{
	size_t	 n;

	for (n = 0; fields != NULL && fields[n].fi_name != NULL; n++)
		if (n == REQUEST_FIELDS)
			fatalx("%s: one field too many", fields[n].fi_name);
	return n;
}

/* The place of a field in its operation's table; REQUEST_FIELDS for none. */
static size_t
find_field(const struct field *fields, const char *name)
{
	size_t	 i;

	for (i = 0; i < field_count(fields); i++)
		if (strcmp(fields[i].fi_name, name) == 0)
			return i;
	return REQUEST_FIELDS;
}

int
field_known(const struct field *fields, const char *name)
{
	return find_field(fields, name) != REQUEST_FIELDS;
}

/* One walk over the object, however many members it has. */
static void
collect_fields(struct request *rq)
{
	const cJSON	*v;
	size_t		 i;

	cJSON_ArrayForEach(v, rq->rq_json) {
		if (v == rq->rq_id_field || v == rq->rq_op_field)
			continue;
		i = find_field(rq->rq_fields, v->string);
		if (i == REQUEST_FIELDS)
			rq->rq_stray = v->string;
		else if (rq->rq_values[i] != NULL)
			rq->rq_twice = v->string;
		else
			rq->rq_values[i] = v;
	}
}

/*
 * Now that the operation is known: are these its fields?  Of one that is not,
 * rq_stray is the name.
 */
int
request_check(struct request *rq, const struct field *fields)
{
	size_t	 i;

	rq->rq_fields = fields;
	collect_fields(rq);
	if (rq->rq_twice != NULL)
		return fail_twice(rq, rq->rq_twice);
	if (rq->rq_stray != NULL)
		return request_fail(rq, CODE_BAD_REQUEST,
		    "%.64s: no such field", rq->rq_stray);
	for (i = 0; i < field_count(fields); i++) {
		if (rq->rq_values[i] == NULL && !fields[i].fi_must)
			continue;
		if (rq->rq_values[i] == NULL ||
		    !types[fields[i].fi_type].is(rq->rq_values[i]))
			return fail_type(rq, fields[i].fi_name,
			    fields[i].fi_type);
	}
	return 0;
}

const char *
request_op(const struct request *rq)
{
	return rq->rq_op_field->valuestring;
}

/* NULL if it was not given; the operation's table has to have the name. */
const cJSON *
request_field(const struct request *rq, const char *name)
{
	size_t	 i = find_field(rq->rq_fields, name);

	if (i == REQUEST_FIELDS)
		fatalx("%s: no field of %s", name, request_op(rq));
	return rq->rq_values[i];
}

int
request_has(const struct request *rq, const char *name)
{
	return request_field(rq, name) != NULL;
}

/* "" for none. */
const char *
request_text(const struct request *rq, const char *name)
{
	const cJSON	*v = request_field(rq, name);

	return v != NULL ? v->valuestring : "";
}

/* 0 for none. */
double
request_number(const struct request *rq, const char *name)
{
	const cJSON	*v = request_field(rq, name);

	return v != NULL ? v->valuedouble : 0;
}

/* Whether it is there and true. */
int
request_is(const struct request *rq, const char *name)
{
	const cJSON	*v = request_field(rq, name);

	return v != NULL && cJSON_IsTrue(v);
}

/* A name as egressd.conf(5) has them; "" for none. */
int
request_name(struct request *rq, const char *field, const char **name)
{
	const char	*why;

	*name = request_text(rq, field);
	if (request_has(rq, field) && (why = name_error(*name)) != NULL)
		return request_fail(rq, CODE_BAD_REQUEST, "%s: %s", field, why);
	return 0;
}

int
request_session(struct request *rq, const char **name)
{
	const char	*why;

	*name = request_text(rq, "session_id");
	if (request_has(rq, "session_id") &&
	    (why = name_session_error(*name)) != NULL)
		return request_fail(rq, CODE_BAD_REQUEST, "session_id: %s",
		    why);
	return 0;
}

int
request_level(struct request *rq, uint8_t *level)
{
	const char	*word = request_text(rq, "level");
	char		 list[128];
	int		 n;

	if ((n = log_level_find(word)) == -1) {
		words_join(log_level_words, list, sizeof(list));
		return request_fail(rq, CODE_BAD_REQUEST, "level: wanted %s, "
		    "not \"%.64s\"", list, word);
	}
	*level = n;
	return 0;
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
	if (!request_has(rq, "kinds"))
		return 0;
	*kinds = 0;
	cJSON_ArrayForEach(v, request_field(rq, "kinds")) {
		if ((kind = find_kind(v->valuestring)) == -1)
			return request_fail(rq, CODE_BAD_REQUEST,
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
