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
 * egressctl: the answer to "status" as text.
 */

#include <limits.h>
#include <time.h>

#include "egressctl.h"

#define CA_WARN_S	(30 * 86400)

static const struct column processes[] = {
	{ "PROCESS",	"role", NULL },
	{ "PID",	"pid", NULL },
	{ "SESSION",	"session_id", NULL },
};

static const struct column sessions[] = {
	{ "SESSION",	"session_id", NULL },
	{ "KIND",	"kind", NULL },
	{ "POLICY",	"policy", NULL },
	{ "STATE",	"state", NULL },
	{ "STARTED",	"started_at", NULL },
	{ "RESTARTS",	"restarts", NULL },
};

static void
put_section(const cJSON *rows, const struct column *columns, size_t n)
{
	if (table_is_empty(rows))
		return;
	putchar('\n');
	table_put(rows, columns, n);
}

static void
put_line(const char *label, const cJSON *answer, const char *member)
{
	printf("%-15s", label);
	json_put(stdout, json_get(answer, member));
	putchar('\n');
}

/* Seconds from now to a time of the answer; without one, never. */
static long long
seconds_to(const char *text)
{
	struct tm	tm = { 0 };

	if (text == NULL ||
	    strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
		return LLONG_MAX;
	return (long long)(timegm(&tm) - time(NULL));
}

static void
put_uptime(const char *started)
{
	long long	up = -seconds_to(started);

	if (up >= 0)
		printf(" (%lldd %02lldh %02lldm ago)", up / 86400,
		    up / 3600 % 24, up / 60 % 60);
}

static void
put_ca_line(const cJSON *session, const char *member, const char *text)
{
	fputs("session ", stdout);
	json_put(stdout, json_get(session, "session_id"));
	printf(": %s ", text);
	json_put(stdout, json_get(json_get(session, "ca"), member));
	putchar('\n');
}

/* What clients of a session will stumble over, or already do. */
static void
put_cas(const cJSON *rows)
{
	const cJSON	*row, *ca;
	long long	 left;

	cJSON_ArrayForEach(row, rows) {
		ca = json_get(row, "ca");
		if (cJSON_GetNumberValue(json_get(ca, "changes")) > 0)
			put_ca_line(row, "since", "NEW CA, clients must load "
			    "it again, since");
		left = seconds_to(json_string(ca, "not_after"));
		if (left <= CA_WARN_S)
			put_ca_line(row, "not_after", left > 0 ?
			    "CA EXPIRES at" :
			    "CA HAS EXPIRED, TLS is refused since");
	}
}

static void
put_audit(const cJSON *audit)
{
	fputs("audit          ", stdout);
	json_put(stdout, json_get(audit, "file"));
	fputs(", record ", stdout);
	json_put(stdout, json_get(audit, "seq"));
	fputs(", followers ", stdout);
	json_put(stdout, json_get(audit, "followers"));
	putchar('\n');
	if (cJSON_IsTrue(json_get(audit, "full")))
		puts("               CANNOT BE WRITTEN, records are lost");
}

void
status_put(const cJSON *answer)
{
	put_line("version", answer, "version");
	fputs("started        ", stdout);
	json_put(stdout, json_get(answer, "started_at"));
	put_uptime(json_string(answer, "started_at"));
	putchar('\n');
	put_line("configuration", answer, "configuration");
	put_line("generation", answer, "generation");
	put_line("privileged", answer, "privileged");
	put_line("log level", answer, "log_level");
	put_line("clients", answer, "clients");
	put_audit(json_get(answer, "audit"));
	put_section(json_get(answer, "processes"), processes,
	    sizeof(processes) / sizeof(processes[0]));
	put_section(json_get(answer, "sessions"), sessions,
	    sizeof(sessions) / sizeof(sessions[0]));
	put_cas(json_get(answer, "sessions"));
}
