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
 * egressctl: a record as one line of text.  The sandbox chose most of its
 * strings, so every one passes visible_put, and all but plain words are
 * quoted: a path or a reason must not look like the fields after it.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egressctl.h"

#define WIDTH_AT	24
#define WIDTH_SEQ	6
#define WIDTH_SESSION	16
#define WIDTH_KIND	18

#define COLOUR_PLAIN	""
#define COLOUR_DIM	"\033[2m"
#define COLOUR_RED	"\033[31m"
#define COLOUR_GREEN	"\033[32m"
#define COLOUR_YELLOW	"\033[33m"
#define COLOUR_CYAN	"\033[36m"
#define COLOUR_OFF	"\033[0m"

#define KIND_COLOUR(name, colour)	{ name, colour },

static const struct {
	const char	*name;
	const char	*colour;
} kinds[] = {
	RECORD_KINDS(KIND_COLOUR)
};

static int
want_colour(void)
{
	const char	*term = getenv("TERM");

	return isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL &&
	    term != NULL && strcmp(term, "dumb") != 0;
}

static const char *
kind_colour(const char *kind)
{
	size_t	i;

	for (i = 0; kind != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, kind) == 0)
			return kinds[i].colour;
	return COLOUR_PLAIN;
}

static void
put_space(size_t columns, size_t width)
{
	printf("%*s", columns < width ? (int)(width - columns) : 0, "");
}

static size_t
put_word(const char *s)
{
	return visible_put(stdout, s != NULL ? s : "-", VISIBLE_WORD);
}

static void
put_column(const cJSON *record, const char *name, size_t width)
{
	put_space(put_word(json_string(record, name)), width);
}

static void
put_kind(const cJSON *record)
{
	const char	*colour = "";

	if (want_colour())
		colour = kind_colour(json_string(record, "kind"));
	fputs(colour, stdout);
	put_column(record, "kind", WIDTH_KIND);
	if (*colour != '\0')
		fputs(COLOUR_OFF, stdout);
}

static int
is_word(const char *s)
{
	if (*s == '\0')
		return 0;
	while (*s > ' ' && *s < 0x7f && *s != '"')
		s++;
	return *s == '\0';
}

static void
put_value(const cJSON *value)
{
	if (!cJSON_IsString(value)) {
		json_put(stdout, value);
	} else if (!is_word(value->valuestring)) {
		putchar('"');
		visible_put(stdout, value->valuestring, VISIBLE_QUOTED);
		putchar('"');
	} else
		put_word(value->valuestring);
}

static void
put_field(const char *label, const cJSON *object, const char *name)
{
	const cJSON	*value = json_get(object, name);

	if (value == NULL)
		return;
	putchar(' ');
	put_word(label);
	putchar('=');
	put_value(value);
}

static int
is_default_port(const char *scheme, double port)
{
	return (strcmp(scheme, "https") == 0 && port == 443) ||
	    (strcmp(scheme, "http") == 0 && port == 80);
}

static void
put_request(const cJSON *record, const cJSON *request)
{
	const cJSON	*port = json_get(request, "port");
	const char	*method = json_string(request, "method");
	const char	*scheme = json_string(request, "scheme");
	const char	*host = json_string(request, "host");
	const char	*path = json_string(request, "path");

	putchar(' ');
	put_word(method);
	putchar(' ');
	put_word(scheme);
	fputs("://", stdout);
	if (host != NULL && strchr(host, ':') != NULL) {
		putchar('[');
		put_word(host);
		putchar(']');
	} else
		put_word(host);
	if (cJSON_IsNumber(port) && (scheme == NULL ||
	    !is_default_port(scheme, port->valuedouble))) {
		putchar(':');
		json_put(stdout, port);
	}
	if (path != NULL)
		put_word(path);
	put_field("status", request, "response_status");
	put_field("in", record, "bytes_in");
	put_field("out", record, "bytes_out");
}

static void
put_rule(const cJSON *rule)
{
	if (!cJSON_IsObject(rule))
		return;
	fputs(" rule=", stdout);
	put_value(json_get(rule, "index"));
	putchar('/');
	put_value(json_get(rule, "kind"));
}

/* Fields that the fixed part of the line shows, or nobody reads there. */
static int
is_placed(const char *name, int has_request)
{
	static const char *const	always[] = { "seq", "kind", "at",
	    "session_id", "prev", "reason", "matched_rule" };
	static const char *const	request[] = { "request", "bytes_in",
	    "bytes_out" };
	size_t				i;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (strcmp(name, always[i]) == 0)
			return 1;
	for (i = 0; has_request && i < sizeof(request) / sizeof(request[0]);
	    i++)
		if (strcmp(name, request[i]) == 0)
			return 1;
	return 0;
}

/*
 * Any field of any kind is shown, if plainly, so that a newer daemon's
 * records are not silently shortened.
 */
void
record_put(const cJSON *record)
{
	const cJSON	*seq = json_get(record, "seq");
	const cJSON	*request = json_get(record, "request"), *field;
	int		 has_request = cJSON_IsObject(request);

	put_column(record, "at", WIDTH_AT);
	fputs("  ", stdout);
	put_space(json_put(NULL, seq), WIDTH_SEQ);
	json_put(stdout, seq);
	fputs("  ", stdout);
	put_column(record, "session_id", WIDTH_SESSION);
	fputs("  ", stdout);
	put_kind(record);
	putchar(' ');
	if (has_request)
		put_request(record, request);
	put_field("reason", record, "reason");
	put_rule(json_get(record, "matched_rule"));
	cJSON_ArrayForEach(field, record)
		if (!is_placed(field->string, has_request))
			put_field(field->string, record, field->string);
	putchar('\n');
}
