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
 * egressctl: recorded requests under another policy, without the daemon.  The
 * audit file is evidence and nothing in it is believed.  It may be larger than
 * memory: one line is held at a time, and of distinct requests as many as a
 * table of fixed size takes (change.c).
 *
 * Only what a policy decided is decided again.  What was refused for another
 * reason, such as a name that did not fit, would be refused under any policy.
 * Deciders are not asked: what only one of them could answer is `ask'.
 */

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "egressctl.h"
#include "offline.h"

struct replay {
	const struct invocation	*rp_in;
	const struct policy	*rp_policy;
	struct changes		 rp_changes;
	const char		*rp_file;
	uint64_t		 rp_line;
	uint64_t		 rp_requests;	/* decided again */
	uint64_t		 rp_changed;
	uint64_t		 rp_other;	/* not for a policy to decide */
	uint64_t		 rp_bad;	/* lines */
};

static void
show(const struct replay *rp, cJSON *json)
{
	char	*line;

	if ((line = cJSON_PrintUnformatted(json)) == NULL)
		err(EXIT_USAGE, NULL);
	rp->rp_in->in_output->ou_answer(rp->rp_in->in_command, line, json);
	cJSON_free(line);
	cJSON_Delete(json);
}

static void
bad_line(struct replay *rp, const char *message)
{
	cJSON	*json;

	rp->rp_bad++;
	if ((json = cJSON_CreateObject()) == NULL)
		err(EXIT_USAGE, NULL);
	cJSON_AddStringToObject(json, "finding", "bad_line");
	cJSON_AddStringToObject(json, "file", rp->rp_file);
	cJSON_AddNumberToObject(json, "line", (double)rp->rp_line);
	cJSON_AddStringToObject(json, "message", message);
	show(rp, json);
}

/* ---- a record ------------------------------------------------------------ */

static int
is_final(const char *kind)
{
	return strcmp(kind, "request_denied") == 0 ||
	    strcmp(kind, "request_closed") == 0 ||
	    strcmp(kind, "request_failed") == 0;
}

/* Whether a policy, with or without a decider, refused it. */
static int
is_policys(const char *reason)
{
	return reason != NULL && (strcmp(reason, "matched_deny_rule") == 0 ||
	    strcmp(reason, "default_deny") == 0 ||
	    strncmp(reason, "decider", strlen("decider")) == 0);
}

/* Whether it ended before anyone had ruled on it. */
static int
is_undecided(const char *reason)
{
	return reason != NULL && strcmp(reason, "client_left") == 0;
}

static int
parse_scheme(const char *name, enum url_scheme *scheme)
{
	int	i;

	for (i = 0; name != NULL && i < URL_SCHEME_MAX; i++)
		if (strcmp(name, url_scheme_name(i)) == 0) {
			*scheme = i;
			return 0;
		}
	return -1;
}

/*
 * No rule looks at the query, and the record may have parts of it redacted,
 * or cut off.
 */
static const char *
parse_path(const cJSON *request, struct url *ur)
{
	const char	*path = json_string(request, "path"), *why;

	if (path == NULL)
		return "the request has no path";
	if (cJSON_IsTrue(json_get(request, "path_truncated")) &&
	    strchr(path, '?') == NULL)
		return "the record has only the beginning of the path";
	if (strcmp(path, "*") == 0) {
		strlcpy(ur->ur_path, path, sizeof(ur->ur_path));
		return NULL;
	}
	if (*path != '/' || urlpath_canon(path, strcspn(path, "?"),
	    ur->ur_path, sizeof(ur->ur_path), &why) == -1)
		return "the path is not one that egressd would record";
	return NULL;
}

/* NULL, or what is wrong with it. */
static const char *
parse_request(const cJSON *request, struct url *ur)
{
	const cJSON	*port = json_get(request, "port");
	const char	*host = json_string(request, "host");

	memset(ur, 0, sizeof(*ur));
	if (parse_scheme(json_string(request, "scheme"), &ur->ur_scheme) == -1)
		return "the scheme is not http, https or tcp";
	if (host == NULL || hostname_canon(host, strlen(host), ur->ur_host,
	    sizeof(ur->ur_host), NULL) == -1)
		return "the host is no host name";
	if (!cJSON_IsNumber(port) || port->valuedouble < 1 ||
	    port->valuedouble > 65535)
		return "the port is not between 1 and 65535";
	ur->ur_port = (uint16_t)port->valuedouble;
	if (ur->ur_scheme == URL_TCP)
		return NULL;
	if (json_string(request, "method") == NULL)
		return "the request has no method";
	return parse_path(request, ur);
}

/* What was decided by a decider then is compared with asking one now. */
static void
parse_was(const cJSON *record, int denied, struct ruling *was)
{
	const cJSON	*rule = json_get(record, "matched_rule");
	const cJSON	*index = json_get(rule, "index");
	const char	*kind = json_string(rule, "kind");

	was->rl_word = denied ? RULED_DENY : RULED_ALLOW;
	was->rl_rule = NO_RULE;
	if (cJSON_IsNumber(index) && index->valuedouble >= 0 &&
	    index->valuedouble < NO_RULE)
		was->rl_rule = (uint32_t)index->valuedouble;
	was->rl_asked = json_get(record, "decider") != NULL ||
	    (kind != NULL && (strcmp(kind, "decide") == 0 ||
	    strcmp(kind, "narrow") == 0));
}

static void
evaluate(const struct replay *rp, const struct url *ur, const char *method,
    struct ruling *now)
{
	struct policy_verdict	pv;

	offline_evaluate(rp->rp_policy, ur, method, &pv);
	now->rl_word = pv.pv_verdict == VERDICT_ALLOW ? RULED_ALLOW :
	    RULED_DENY;
	now->rl_asked = pv.pv_asks > 0;
	if (now->rl_asked)
		now->rl_word = RULED_ASK;
	now->rl_rule = pv.pv_rule != NULL ? pv.pv_rule->ru_index : NO_RULE;
}

/* Who was asked then and would be asked now may answer the same. */
static int
differs(const struct ruling *was, const struct ruling *now)
{
	if (was->rl_asked || now->rl_asked)
		return was->rl_asked != now->rl_asked;
	return was->rl_word != now->rl_word;
}

static void
replay_request(struct replay *rp, const cJSON *record, int denied)
{
	const cJSON	*request = json_get(record, "request");
	const char	*method = json_string(request, "method"), *why;
	struct change	 ch = { .ch_count = 1 };
	static struct url url;

	if ((why = parse_request(request, &url)) != NULL) {
		bad_line(rp, why);
		return;
	}
	if (url.ur_scheme == URL_TCP || method == NULL)
		method = "-";
	parse_was(record, denied, &ch.ch_was);
	evaluate(rp, &url, method, &ch.ch_now);
	ch.ch_differs = differs(&ch.ch_was, &ch.ch_now);
	rp->rp_requests++;
	rp->rp_changed += (uint64_t)ch.ch_differs;
	if (ch.ch_differs || rp->rp_in->in_verbose)
		changes_add(&rp->rp_changes, &ch, method, &url);
}

/* What was never read as a request has no scheme, or no method. */
static int
is_request(const cJSON *request)
{
	const char	*scheme = json_string(request, "scheme");

	return scheme != NULL && (strcmp(scheme, "tcp") == 0 ||
	    json_string(request, "method") != NULL);
}

static void
replay_record(struct replay *rp, const cJSON *record)
{
	const char	*kind = json_string(record, "kind");
	const char	*session = json_string(record, "session_id");
	const char	*only = rp->rp_in->in_session;
	int		 denied;

	if (kind == NULL) {
		bad_line(rp, "there is no kind");
		return;
	}
	if (!is_final(kind) || (only != NULL && (session == NULL ||
	    strcmp(session, only) != 0)))
		return;
	denied = strcmp(kind, "request_denied") == 0;
	if (!is_request(json_get(record, "request")) || (denied ?
	    !is_policys(json_string(record, "reason")) :
	    is_undecided(json_string(record, "reason"))))
		rp->rp_other++;
	else
		replay_request(rp, record, denied);
}

/* ---- the file ------------------------------------------------------------ */

static void
replay_line(struct replay *rp, const char *line, size_t len)
{
	cJSON	*record;

	if ((record = json_parse(line, len)) == NULL)
		bad_line(rp, "not a record: no JSON object");
	else
		replay_record(rp, record);
	cJSON_Delete(record);
}

/* 0, or -1 if there may be more that could not be read. */
static int
replay_file(struct replay *rp, struct source *so)
{
	char	*line;
	size_t	 len;

	rp->rp_file = so->so_name;
	for (rp->rp_line = 1;; rp->rp_line++) {
		switch (source_line(so, &line, &len)) {
		case NEXT_LINE:
			replay_line(rp, line, len);
			break;
		case NEXT_END:
			return 0;
		case NEXT_TORN:
			bad_line(rp, "torn: no newline at the end");
			return 0;
		case NEXT_TOO_LONG:
			bad_line(rp, "longer than any record, stopped here");
			return 0;
		case NEXT_FAILED:
			warn("%s", rp->rp_file);
			return -1;
		}
	}
}

static void
show_summary(const struct replay *rp)
{
	cJSON	*json;

	if ((json = cJSON_CreateObject()) == NULL)
		err(EXIT_USAGE, NULL);
	cJSON_AddNumberToObject(json, "requests", (double)rp->rp_requests);
	cJSON_AddNumberToObject(json, "changed", (double)rp->rp_changed);
	cJSON_AddNumberToObject(json, "not_listed",
	    (double)rp->rp_changes.cs_dropped);
	cJSON_AddNumberToObject(json, "not_policy", (double)rp->rp_other);
	cJSON_AddNumberToObject(json, "bad_lines", (double)rp->rp_bad);
	show(rp, json);
}

static int
replay_with(const struct invocation *in, const struct policy *pl)
{
	struct replay	 rp = { .rp_in = in, .rp_policy = pl };
	struct source	*so;
	struct change	*ch;
	int		 rv;

	if ((so = source_open(in->in_words[0])) == NULL)
		return EXIT_USAGE;
	changes_init(&rp.rp_changes);
	rv = replay_file(&rp, so);
	for (ch = TAILQ_FIRST(&rp.rp_changes.cs_list); ch != NULL;
	    ch = TAILQ_NEXT(ch, ch_entry))
		show(&rp, change_json(ch));
	show_summary(&rp);
	changes_free(&rp.rp_changes);
	source_close(so);
	if (rv == -1 || rp.rp_bad > 0)
		return EXIT_USAGE;
	return rp.rp_changed > 0 ? EXIT_CHANGED : 0;
}

void
replay_option(struct invocation *in, int ch, const char *arg)
{
	if (ch == 'p')
		in->in_policy = arg;
	else
		in->in_verbose = 1;
}

int
replay_run(const struct invocation *in)
{
	const struct conf_policy	*conf_policy;
	struct config			*conf;
	struct policy			*pl;
	int				 status = EXIT_USAGE;

	log_init("egressctl", LOG_LVL_INFO, 0);
	if ((conf = offline_conf(in->in_conf)) == NULL)
		return status;
	if ((conf_policy = offline_policy(conf, in->in_policy)) != NULL) {
		pl = conf_policy_compile(conf_policy);
		policy_ready(pl);
		status = replay_with(in, pl);
		policy_free(pl);
	}
	conf_free(conf);
	return status;
}
