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
 * egressctl: questions that wait for a person, and answers that deciders gave
 * before.  The sandbox chose host, method and path of what is asked about, so
 * they are words and stand last in their line.
 */

#include <string.h>

#include "egressctl.h"

/* ---- cells --------------------------------------------------------------- */

static size_t
put_word(FILE *fp, const char *s, enum visible where)
{
	return visible_put(fp, s != NULL ? s : "-", where);
}

static size_t
put_plain(FILE *fp, const char *s)
{
	return visible_put(fp, s, VISIBLE_TEXT);
}

static size_t
put_host(FILE *fp, const char *host, enum visible where)
{
	if (host == NULL || strchr(host, ':') == NULL)
		return put_word(fp, host, where);
	return put_plain(fp, "[") + put_word(fp, host, where) +
	    put_plain(fp, "]");
}

/*
 * METHOD scheme://host:port/path, with the port even if it is the usual one:
 * who is asked should not have to know it.
 */
static size_t
put_request(FILE *fp, const cJSON *request, enum visible where)
{
	const cJSON	*port = json_get(request, "port");
	const char	*path = json_string(request, "path");
	size_t		 columns;

	columns = put_word(fp, json_string(request, "method"), where);
	columns += put_plain(fp, " ");
	columns += put_word(fp, json_string(request, "scheme"), where);
	columns += put_plain(fp, "://");
	columns += put_host(fp, json_string(request, "host"), where);
	columns += put_plain(fp, ":");
	columns += json_put(fp, cJSON_IsNumber(port) ? port : NULL);
	if (path != NULL)
		columns += put_word(fp, path, where);
	return columns;
}

size_t
request_put(FILE *fp, const cJSON *request)
{
	return put_request(fp, request, VISIBLE_WORD);
}

/* For whoever decides by it: what is cut off could be what matters. */
void
request_put_whole(FILE *fp, const cJSON *request)
{
	put_request(fp, request, VISIBLE_WHOLE);
}

/* Milliseconds as people say them. */
size_t
duration_put(FILE *fp, const cJSON *item)
{
	char	buf[32];
	double	s;

	if (!cJSON_IsNumber(item))
		return put_plain(fp, "-");
	if ((s = item->valuedouble / 1000) < 0)
		s = 0;
	if (s < 10)
		snprintf(buf, sizeof(buf), "%.1fs", s);
	else if (s < 600)
		snprintf(buf, sizeof(buf), "%.0fs", s);
	else if (s < 86400)
		snprintf(buf, sizeof(buf), "%.0fm", s / 60);
	else
		snprintf(buf, sizeof(buf), "%.0fd", s / 86400);
	return put_plain(fp, buf);
}

/* An answer for a whole host has neither method nor path. */
static size_t
put_entry(FILE *fp, const cJSON *row)
{
	const cJSON	*reason = json_get(row, "reason");
	size_t		 columns = request_put(fp, row);

	if (!cJSON_IsString(reason) || *reason->valuestring == '\0')
		return columns;
	columns += put_plain(fp, " (");
	columns += json_put(fp, reason);
	return columns + put_plain(fp, ")");
}

/* The answer has a bound, and says what it left out. */
static void
put_more(const cJSON *answer)
{
	const cJSON	*more = json_get(answer, "more");

	if (more == NULL)
		return;
	fputs("and ", stdout);
	json_put(stdout, more);
	puts(" more");
}

/* ---- pending, answer ----------------------------------------------------- */

void
pending_put(const cJSON *answer)
{
	static const struct column	 columns[] = {
		{ "ID",		"id",		NULL },
		{ "SESSION",	"session",	NULL },
		{ "DECIDER",	"decider",	NULL },
		{ "WAITED",	"waiting_ms",	duration_put },
		{ "LEFT",	"left_ms",	duration_put },
		{ "REQUEST",	"request",	request_put },
	};
	const cJSON			*rows = json_get(answer, "pending");

	if (table_is_empty(rows))
		puts("no question is waiting");
	else
		table_put(rows, columns, sizeof(columns) / sizeof(columns[0]));
	put_more(answer);
}

void
answer_option(struct invocation *in, int ch, const char *arg)
{
	(void)ch;
	(void)arg;
	in->in_remember = 1;
}

void
answer_ask(const struct invocation *in, cJSON *request)
{
	cJSON_AddStringToObject(request, "pending", in->in_question);
	cJSON_AddStringToObject(request, "decision", in->in_decision);
	if (in->in_reason != NULL)
		cJSON_AddStringToObject(request, "reason", in->in_reason);
	if (in->in_remember)
		cJSON_AddBoolToObject(request, "remember", 1);
}

void
answer_put(const cJSON *answer)
{
	puts(cJSON_IsTrue(json_get(answer, "remembered")) ?
	    "answered, remembered" : "answered");
}

/* ---- cache --------------------------------------------------------------- */

void
cache_show_ask(const struct invocation *in, cJSON *request)
{
	if (in->in_session != NULL)
		cJSON_AddStringToObject(request, "session", in->in_session);
}

void
cache_show_put(const cJSON *answer)
{
	static const struct column	 columns[] = {
		{ "SESSION",	"session",	NULL },
		{ "DECIDER",	"decider",	NULL },
		{ "AGE",	"age_ms",	duration_put },
		{ "DECISION",	"decision",	NULL },
		{ "REQUEST",	NULL,		put_entry },
	};
	const cJSON			*rows = json_get(answer, "cache");

	if (table_is_empty(rows))
		puts("nothing is remembered");
	else
		table_put(rows, columns, sizeof(columns) / sizeof(columns[0]));
	put_more(answer);
}

void
cache_clear_ask(const struct invocation *in, cJSON *request)
{
	cache_show_ask(in, request);
	if (in->in_host != NULL)
		cJSON_AddStringToObject(request, "host", in->in_host);
}

void
cache_clear_put(const cJSON *answer)
{
	json_put(stdout, json_get(answer, "cleared"));
	puts(" forgotten");
}
