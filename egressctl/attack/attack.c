/* SPDX-License-Identifier: ISC */

/*
 * egressctl: attempts to get out of the sandbox that we run in, for operators
 * who want to see theirs hold.  A verdict rests on what comes back, not on
 * "connected": behind the gate every address connects.  Each probe is a
 * process of its own, as being killed for it is one way to be stopped.
 */

#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "list.h"

#define EXIT_LEAKED	1

#define PROBE_SECONDS	60

static struct {
	const char	*allowed;	/* -a: a host of the policy */
	const char	*evil;		/* -e: must not be reached */
	int		 list;
	int		 outside;	/* -o: also where there is no fence */
	struct list	 cases;		/* none: all */
} options;

static const struct probe probes[] = {
	{ "dns-udp", "a secret in a label of a name, asked of any server",
	    0, probe_dns_udp },
	{ "dns-tcp", "the same over TCP", 0, probe_dns_tcp },
	{ "dns-types", "the same in TXT, NULL, ANY, HTTPS and AXFR questions",
	    0, probe_dns_types },
	{ "tcp-ports", "ports that a filter for the web does not look at",
	    1, probe_tcp_ports },
	{ "udp", "QUIC and other UDP", 1, probe_udp },
	{ "icmp", "a payload in an echo request", 0, probe_icmp },
	{ "packet", "frames written round the packet filter",
	    0, probe_packet },
	{ "ipv6", "a filter that knows IPv4 only", 0, probe_ipv6 },
	{ "mapped", "an IPv4 address spelt as one of IPv6",
	    1, probe_mapped },
	{ "host", "another's address under an allowed name in Host",
	    1, probe_host },
	{ "hello", "the same in the SNI of TLS, on 443 and 80",
	    1, probe_hello },
	{ "absolute", "an absolute URL inside an allowed connection",
	    1, probe_absolute },
	{ "connect", "CONNECT inside an allowed connection",
	    1, probe_connect },
	{ "smuggling", "requests whose end two readers see in two places",
	    0, probe_smuggling },
	{ "metadata", "credentials that clouds give to any program",
	    0, probe_metadata },
	{ "control", "the daemon's own sockets", 0, probe_control },
	{ "neighbours", "sockets of the host: container engines, agents, buses",
	    0, probe_neighbours },
	{ "policy", "the rules, to read them", 0, probe_policy },
};

#define NPROBES	(sizeof(probes) / sizeof(probes[0]))

static const char *const words[] = {
	[OUTCOME_BLOCKED] = "blocked",
	[OUTCOME_LEAKED] = "LEAKED",
	[OUTCOME_SKIPPED] = "skipped",
};

/* Keeps what an outcome rests on; returns the outcome. */
enum outcome
attack_say(struct attack *at, enum outcome outcome, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	vsnprintf(at->at_detail, sizeof(at->at_detail), fmt, ap);
	va_end(ap);
	return outcome;
}

/* ---- one probe ----------------------------------------------------------- */

static void __attribute__((__noreturn__))
probe_child(const struct probe *pb, struct attack *at, int fd)
{
	enum outcome	outcome;

	alarm(PROBE_SECONDS);
	outcome = pb->pb_run(at);
	if (write(fd, at->at_detail, strlen(at->at_detail)) == -1)
		outcome = OUTCOME_SKIPPED;
	_exit((int)outcome);
}

static enum outcome
probe_status(struct attack *at, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) <= OUTCOME_SKIPPED)
		return (enum outcome)WEXITSTATUS(status);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return attack_say(at, OUTCOME_BLOCKED, "killed for trying");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return attack_say(at, OUTCOME_SKIPPED, "no result after %d "
		    "seconds", PROBE_SECONDS);
	return attack_say(at, OUTCOME_SKIPPED, "the probe died, status %#x",
	    (unsigned int)status);
}

static enum outcome
probe_run(const struct probe *pb, struct attack *at)
{
	ssize_t	 n;
	pid_t	 pid;
	int	 fds[2], status;

	if (pb->pb_evil && at->at_evil == NULL)
		return attack_say(at, OUTCOME_SKIPPED, "needs an address that "
		    "must not be reached (-e)");
	if (pipe(fds) == -1 || (pid = fork()) == -1)
		err(EXIT_USAGE, "%s", pb->pb_name);
	if (pid == 0)
		probe_child(pb, at, fds[1]);
	close(fds[1]);
	if ((n = read(fds[0], at->at_detail, sizeof(at->at_detail) - 1)) < 0)
		n = 0;
	at->at_detail[n] = '\0';
	close(fds[0]);
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			err(EXIT_USAGE, "waitpid");
	return probe_status(at, status);
}

/* ---- output -------------------------------------------------------------- */

static void
show(const struct invocation *in, cJSON *json)
{
	output_show(in, json);
	fflush(stdout);
}

static void
show_probe(const struct invocation *in, const struct probe *pb,
    const char *result, const char *detail)
{
	cJSON	*json = output_object();

	cJSON_AddStringToObject(json, "case", pb->pb_name);
	cJSON_AddStringToObject(json, "after", pb->pb_after);
	if (result != NULL) {
		cJSON_AddStringToObject(json, "result", result);
		cJSON_AddStringToObject(json, "detail", detail);
	} else
		cJSON_AddBoolToObject(json, "needs_address", pb->pb_evil);
	show(in, json);
}

static void
show_sum(const struct invocation *in, const struct attack *at,
    const unsigned int *counts)
{
	cJSON	*json = output_object();

	if (at->at_evil != NULL)
		cJSON_AddStringToObject(json, "token", at->at_token);
	cJSON_AddNumberToObject(json, "blocked", counts[OUTCOME_BLOCKED]);
	cJSON_AddNumberToObject(json, "leaked", counts[OUTCOME_LEAKED]);
	cJSON_AddNumberToObject(json, "skipped", counts[OUTCOME_SKIPPED]);
	show(in, json);
}

static void
put_case(const cJSON *json)
{
	const char	*result = json_string(json, "result");

	if (result != NULL)
		printf("%-7s  ", result);
	printf("%-10s  ", json_string(json, "case"));
	json_put(stdout, json_get(json, "after"));
	if (result != NULL) {
		fputs(": ", stdout);
		json_put(stdout, json_get(json, "detail"));
	} else if (cJSON_IsTrue(json_get(json, "needs_address")))
		fputs(" (needs -e)", stdout);
	putchar('\n');
}

static void
attack_put(const cJSON *json)
{
	const cJSON	*token = json_get(json, "token");

	if (json_get(json, "case") != NULL) {
		put_case(json);
		return;
	}
	if (token != NULL) {
		fputs("what reaches the address contains ", stdout);
		json_put(stdout, token);
		putchar('\n');
	}
	json_put(stdout, json_get(json, "blocked"));
	fputs(" blocked, ", stdout);
	json_put(stdout, json_get(json, "leaked"));
	fputs(" leaked, ", stdout);
	json_put(stdout, json_get(json, "skipped"));
	fputs(" skipped\n", stdout);
}

/* ---- all of them --------------------------------------------------------- */

static int
is_chosen(const struct probe *pb)
{
	size_t	i;

	for (i = 0; i < options.cases.li_count; i++)
		if (strcmp(options.cases.li_words[i], pb->pb_name) == 0)
			return 1;
	return options.cases.li_count == 0;
}

static int
check_cases(void)
{
	const char	**cases = options.cases.li_words;
	size_t		  i, j;

	for (i = 0; i < options.cases.li_count; i++) {
		for (j = 0; j < NPROBES; j++)
			if (strcmp(cases[i], probes[j].pb_name) == 0)
				break;
		if (j < NPROBES)
			continue;
		fputs("egressctl: unknown case \"", stderr);
		visible_put(stderr, cases[i], VISIBLE_QUOTED);
		fputs("\"; -l lists them\n", stderr);
		return -1;
	}
	return 0;
}

static int
attack_init(struct attack *at)
{
	memset(at, 0, sizeof(*at));
	at->at_evil = options.evil;
	at->at_name = options.allowed != NULL ? options.allowed :
	    "attack.invalid";
	snprintf(at->at_token, sizeof(at->at_token), "egress-attack-%08x%08x",
	    arc4random(), arc4random());
	if (at->at_evil == NULL ||
	    net_address(at->at_evil, &at->at_address) == 0)
		return 0;
	warnx("-e: must be an IPv4 or IPv6 address, and not of this host");
	return -1;
}

static void
attack_option(int ch, const char *arg)
{
	switch (ch) {
	case 'a':
		options.allowed = arg;
		break;
	case 'e':
		options.evil = arg;
		break;
	case 'o':
		options.outside = 1;
		break;
	default:
		options.list = 1;
		break;
	}
}

/* Where there is no fence, what the cases send would leave the machine. */
static int
check_fence(void)
{
	if (options.list || options.outside ||
	    getenv("EGRESSD_SESSION") != NULL)
		return 0;
	warnx("attack: this is no sandbox (EGRESSD_SESSION is not set), and "
	    "packets to public addresses would leave the machine; -o sends "
	    "them all the same");
	return -1;
}

static int
attack_run(const struct invocation *in)
{
	struct attack	at;
	unsigned int	counts[OUTCOME_SKIPPED + 1] = { 0 };
	enum outcome	outcome;
	size_t		i;

	if (check_cases() == -1 || attack_init(&at) == -1 ||
	    check_fence() == -1)
		return EXIT_USAGE;
	/* A peer that hangs up ends a probe's write, not the program. */
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < NPROBES; i++) {
		if (!is_chosen(&probes[i]))
			continue;
		if (options.list) {
			show_probe(in, &probes[i], NULL, NULL);
			continue;
		}
		outcome = probe_run(&probes[i], &at);
		counts[outcome]++;
		show_probe(in, &probes[i], words[outcome], at.at_detail);
	}
	if (options.list)
		return 0;
	show_sum(in, &at, counts);
	return counts[OUTCOME_LEAKED] > 0 ? EXIT_LEAKED : 0;
}

static int
take_case(const char *word)
{
	list_add(&options.cases, word);
	return 0;
}

static const struct token t_cases[] = {
	{ .tk_type = END },
	{ WORD,	   "case",	t_cases,  NULL, NULL, take_case },
	{ 0 }
};

const struct command command_attack = {
	.co_name = "attack",
	.co_synopsis = "attack [-lo] [-e ADDRESS] [CASE ...]",
	.co_help = "try to get out of the sandbox we run in",
	.co_tokens = t_cases,
	.co_run = attack_run,
	.co_show = attack_put,
	.co_options = "a:e:lo",
	.co_option = attack_option,
};
