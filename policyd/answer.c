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
 * policyd: the bodies of answers to control clients.  One is made at a time
 * and may go to several clients; the id that makes it somebody's answer is
 * put in front by client_send().
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "policyd.h"

static struct jsonw	 writer;

static struct jsonw *
answer_begin(void)
{
	if (writer.jw_max == 0)
		jsonw_init(&writer, ANSWER_LEN);
	jsonw_reset(&writer);
	jsonw_object(&writer);
	return &writer;
}

/* The caller adds what else there is to say. */
struct jsonw *
answer_ok(void)
{
	struct jsonw	*w = answer_begin();

	jsonw_key(w, "ok");
	jsonw_bool(w, 1);
	return w;
}

/* The caller may add to the error object, which is left open. */
struct jsonw *
answer_error(const char *code, const char *message, size_t len)
{
	struct jsonw	*w = answer_begin();

	jsonw_key(w, "error");
	jsonw_object(w);
	jsonw_key(w, "code");
	jsonw_str(w, code);
	jsonw_key(w, "message");
	jsonw_string(w, message, len);
	return w;
}

/* The whole body, valid until the next one is begun. */
const char *
answer_end(size_t *len)
{
	static const char	 internal[] = "{\"error\":{\"code\":"
	    "\"internal\",\"message\":\"the answer cannot be written\"}}";
	const char		*body;

	while (writer.jw_depth > 0 && jsonw_error(&writer) == NULL)
		jsonw_end(&writer);
	if ((body = jsonw_finish(&writer, len)) != NULL)
		return body;
	log_warnx("answer: %s", jsonw_error(&writer));
	*len = sizeof(internal) - 1;
	return internal;
}

void
put_str(struct jsonw *w, const char *key, const char *value)
{
	jsonw_key(w, key);
	jsonw_str(w, value);
}

void
put_uint(struct jsonw *w, const char *key, uint64_t value)
{
	jsonw_key(w, key);
	jsonw_uint(w, value);
}

void
put_bool(struct jsonw *w, const char *key, int value)
{
	jsonw_key(w, key);
	jsonw_bool(w, value);
}

/* To the millisecond, as in records; null if there is no such time. */
static void
put_date(struct jsonw *w, const char *key, uint64_t seconds, unsigned int ms)
{
	char		 date[sizeof("2026-01-02T03:04:05")], text[40];
	struct tm	 tm;
	time_t		 t = (time_t)seconds;

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
		put_str(w, key, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%s.%03uZ", date, ms);
	put_str(w, key, text);
}

/* Null for what has not begun. */
void
put_time(struct jsonw *w, const char *key, uint64_t ns)
{
	if (ns == 0)
		put_str(w, key, NULL);
	else
		put_date(w, key, ns / 1000000000,
		    (unsigned int)(ns / 1000000 % 1000));
}

/* Dates of certificates go beyond what nanoseconds can count. */
void
put_seconds(struct jsonw *w, const char *key, uint64_t seconds)
{
	put_date(w, key, seconds, 0);
}
