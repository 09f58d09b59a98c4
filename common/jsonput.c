/* SPDX-License-Identifier: ISC */

/*
 * Members of JSON objects; see jsonput.h.  Runs in controld and policyd.
 */

#include <stdio.h>
#include <time.h>

#include "jsonput.h"

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
