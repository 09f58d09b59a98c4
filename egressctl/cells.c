/* SPDX-License-Identifier: ISC */

/*
 * egressctl: requests and durations, in tables and in lines.  The sandbox
 * chose host, method and path of a request, so they are words and stand last
 * in their line.
 */

#include <string.h>

#include "show.h"

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

/* Uncut, for deciding: the end of a path could be what matters. */
void
request_put_whole(FILE *fp, const cJSON *request)
{
	put_request(fp, request, VISIBLE_WHOLE);
}

/* Milliseconds, rounded to the unit that people would use. */
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
