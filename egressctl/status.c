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

#include <time.h>

#include "egressctl.h"

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

static void
put_uptime(const char *started)
{
	struct tm	tm = { 0 };
	time_t		up;

	if (started == NULL ||
	    strptime(started, "%Y-%m-%dT%H:%M:%S", &tm) == NULL ||
	    (up = time(NULL) - timegm(&tm)) < 0)
		return;
	printf(" (%lldd %02lldh %02lldm ago)", (long long)up / 86400,
	    (long long)up / 3600 % 24, (long long)up / 60 % 60);
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
}
