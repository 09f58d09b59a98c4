/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the answer to "status" as text.
 */

#include <limits.h>
#include <string.h>
#include <time.h>
#include <time.h>

#include "client.h"
#include "egressctl.h"
#include "show.h"

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

/* Seconds from now to a time of the answer; LLONG_MAX if there is none. */
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

/* CAs that clients of a session no longer trust, or soon will not. */
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
		puts("               CANNOT BE WRITTEN: requests are refused "
		    "(audit_full), or, where\n               the policy says "
		    "\"audit on full gap\", go on and records are lost");
}

static void
status_put(const cJSON *answer)
{
	put_line("version", answer, "version");
	fputs("started        ", stdout);
	json_put(stdout, json_get(answer, "started_at"));
	put_uptime(json_string(answer, "started_at"));
	putchar('\n');
	put_line("configuration", answer, "configuration");
	put_line("sha256", answer, "configuration_sha256");
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

/*
 * Whether all sessions of the configuration are served, for the probes of a
 * container.  Engines say that they run when clients find what to trust.
 */
static int
status_probe(const cJSON *answer)
{
	const cJSON	*row;
	const char	*kind, *state;

	cJSON_ArrayForEach(row, json_get(answer, "sessions")) {
		kind = json_string(row, "kind");
		state = json_string(row, "state");
		if (kind == NULL || strcmp(kind, "fixed") != 0 ||
		    (state != NULL && strcmp(state, "running") == 0))
			continue;
		fputs("egressctl: session ", stderr);
		json_put(stderr, json_get(row, "session_id"));
		fputs(": ", stderr);
		json_put(stderr, json_get(row, "state"));
		fputc('\n', stderr);
		return EXIT_REFUSED;
	}
	return 0;
}

#define AGAIN_MS	100

static int		quiet;
static unsigned int	wait_s;

static void
status_option(int ch, const char *value)
{
	if (ch == 't')
		wait_s = seconds_take(value, EXIT_USAGE);
	quiet = 1;
}

static int
status_ask(const struct invocation *in)
{
	struct client	 cl;
	cJSON		*answer;
	char		*line;
	int		 status = EXIT_NO_DAEMON;

	if (client_open(&cl, in->in_socket) == -1)
		return status;
	answer = exchange_ask(&cl, exchange_request("status"), -1, &line);
	if (answer != NULL)
		status = json_get(answer, "error") != NULL ? EXIT_REFUSED :
		    status_probe(answer);
	cJSON_Delete(answer);
	client_close(&cl);
	return status;
}

/* The daemon may not even have its socket yet: nobody could tell us. */
static int
status_run(const struct invocation *in)
{
	static const struct timespec	 again = { 0, AGAIN_MS * 1000000 };
	unsigned int			 ms = 0;
	int				 status;

	if (!quiet)
		return exchange_run(in);
	while ((status = status_ask(in)) != 0 && ms < wait_s * 1000) {
		nanosleep(&again, NULL);
		ms += AGAIN_MS;
	}
	return status;
}

const struct command command_status = {
	.co_name = "status",
	.co_synopsis = "status [-q [-t time]]",
	.co_help = "show the daemon, its processes and its sessions",
	.co_other_name = "sessions",
	.co_options = "qt:",
	.co_option = status_option,
	.co_run = status_run,
	.co_op = "status",
	.co_show = status_put,
};
