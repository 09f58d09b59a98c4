/* SPDX-License-Identifier: ISC */

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
#include <string.h>

#include "offline.h"
#include "records/records.h"
#include "show.h"

#define EXIT_CHANGED	1

static struct {
	const char	*policy;	/* NULL: the only one */
	const char	*file;
	const char	*session_id;	/* NULL: all */
	int		 verbose;
} options;

struct replay {
	const struct invocation	*rp_in;
	const struct policy	*rp_policy;
	struct changes		 rp_changes;
	const char		*rp_file;
	uint64_t		 rp_line;
	uint64_t		 rp_requests;	/* decided again */
	uint64_t		 rp_changed;
	uint64_t		 rp_other;	/* refused for other reasons */
	uint64_t		 rp_bad;	/* lines that are no record */
};

static void
bad_line(struct replay *rp, const char *message)
{
	cJSON	*json = output_object();

	rp->rp_bad++;
	cJSON_AddStringToObject(json, "finding", "bad_line");
	cJSON_AddStringToObject(json, "file", rp->rp_file);
	cJSON_AddNumberToObject(json, "line", (double)rp->rp_line);
	cJSON_AddStringToObject(json, "message", message);
	output_show(rp->rp_in, json);
}

/* ---- a record ------------------------------------------------------------ */

static int
is_final(const char *kind)
{
	int	n = record_kind_find(kind);

	return n == RECORD_REQUEST_DENIED || n == RECORD_REQUEST_CLOSED ||
	    n == RECORD_REQUEST_FAILED;
}

/* Whether a policy, with or without a decider, refused it. */
static int
is_policys(const char *reason)
{
	return reason != NULL &&
	    (strcmp(reason, REASON_MATCHED_DENY_RULE) == 0 ||
	    strcmp(reason, REASON_DEFAULT_DENY) == 0 ||
	    strncmp(reason, REASON_DECIDER, strlen(REASON_DECIDER)) == 0);
}

/* Whether a request ended before there was a verdict. */
static int
is_undecided(const char *reason)
{
	return reason != NULL && strcmp(reason, REASON_CLIENT_LEFT) == 0;
}

static int
parse_scheme(const char *name, enum url_scheme *scheme)
{
	int	n = name == NULL ? -1 : url_scheme_find(name);

	if (n == -1)
		return -1;
	*scheme = n;
	return 0;
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

/* NULL, or what is wrong with the request. */
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

/* The recorded verdict, and whether a decider was asked for it. */
static void
parse_was(const cJSON *record, int denied, struct replay_verdict *was)
{
	const cJSON	*rule = json_get(record, "matched_rule");
	const cJSON	*index = json_get(rule, "index");
	const char	*word = json_string(rule, "kind");
	int		 kind = word == NULL ? -1 : rule_kind_find(word);

	was->rv_says = denied ? REPLAY_DENY : REPLAY_ALLOW;
	was->rv_rule = NO_RULE;
	if (cJSON_IsNumber(index) && index->valuedouble >= 0 &&
	    index->valuedouble < NO_RULE)
		was->rv_rule = (uint32_t)index->valuedouble;
	was->rv_asked = json_get(record, "decider") != NULL ||
	    kind == RULE_DECIDE || kind == RULE_NARROW;
}

static void
evaluate(const struct replay *rp, const struct url *ur, const char *method,
    struct replay_verdict *now)
{
	struct policy_verdict	pv;

	offline_evaluate(rp->rp_policy, ur, method, &pv);
	now->rv_says = pv.pv_verdict == VERDICT_ALLOW ? REPLAY_ALLOW :
	    REPLAY_DENY;
	now->rv_asked = pv.pv_asks > 0;
	if (now->rv_asked)
		now->rv_says = REPLAY_ASK;
	now->rv_rule = pv.pv_rule != NULL ? pv.pv_rule->ru_index : NO_RULE;
}

/* A decider asked then and now may answer the same: no difference. */
static int
differs(const struct replay_verdict *was, const struct replay_verdict *now)
{
	if (was->rv_asked || now->rv_asked)
		return was->rv_asked != now->rv_asked;
	return was->rv_says != now->rv_says;
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
	if (ch.ch_differs || options.verbose)
		changes_add(&rp->rp_changes, &ch, method, &url);
}

/* Whether it was read as a request: then scheme and method are known. */
static int
is_request(const cJSON *request)
{
	const char	*scheme = json_string(request, "scheme");

	return scheme != NULL && (url_scheme_find(scheme) == URL_TCP ||
	    json_string(request, "method") != NULL);
}

static void
replay_record(struct replay *rp, const cJSON *record)
{
	const char	*kind = json_string(record, "kind");
	const char	*session = json_string(record, "session_id");
	const char	*only = options.session_id;
	int		 denied;

	if (kind == NULL) {
		bad_line(rp, "there is no kind");
		return;
	}
	if (!is_final(kind) || (only != NULL && (session == NULL ||
	    strcmp(session, only) != 0)))
		return;
	denied = record_kind_find(kind) == RECORD_REQUEST_DENIED;
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

/* 0, or -1 if reading failed before the end. */
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
	cJSON	*json = output_object();

	cJSON_AddNumberToObject(json, "requests", (double)rp->rp_requests);
	cJSON_AddNumberToObject(json, "changed", (double)rp->rp_changed);
	cJSON_AddNumberToObject(json, "not_listed",
	    (double)rp->rp_changes.cs_dropped);
	cJSON_AddNumberToObject(json, "not_policy", (double)rp->rp_other);
	cJSON_AddNumberToObject(json, "bad_lines", (double)rp->rp_bad);
	output_show(rp->rp_in, json);
}

static int
replay_with(const struct invocation *in, const struct policy *pl)
{
	struct replay	 rp = { .rp_in = in, .rp_policy = pl };
	struct source	*so;
	struct change	*ch;
	int		 rv;

	if ((so = source_open(options.file)) == NULL)
		return EXIT_USAGE;
	changes_init(&rp.rp_changes);
	rv = replay_file(&rp, so);
	for (ch = TAILQ_FIRST(&rp.rp_changes.cs_list); ch != NULL;
	    ch = TAILQ_NEXT(ch, ch_entry))
		output_show(in, change_json(ch));
	show_summary(&rp);
	changes_free(&rp.rp_changes);
	source_close(so);
	if (rv == -1 || rp.rp_bad > 0)
		return EXIT_USAGE;
	return rp.rp_changed > 0 ? EXIT_CHANGED : 0;
}

static void
replay_option(int ch, const char *arg)
{
	if (ch == 'p')
		options.policy = arg;
	else
		options.verbose = 1;
}

static int
replay_run(const struct invocation *in)
{
	const struct conf_policy	*cp;
	struct config			*conf;
	int				 status = EXIT_USAGE;

	log_init("egressctl", LOG_LVL_INFO, 0);
	if ((conf = offline_conf(in)) == NULL)
		return status;
	if ((cp = offline_policy(conf, options.policy)) != NULL) {
		policy_ready(cp->cp_policy);
		status = replay_with(in, cp->cp_policy);
	}
	conf_free(conf);
	return status;
}

static const struct token t_session[] = {
	{ SESSION_ID, "session ID", NULL, NULL, &options.session_id, NULL },
	{ 0 }
};

static const struct token t_after_file[] = {
	{ .tk_type = END },
	{ KEYWORD, "session",	t_session, NULL, NULL, NULL },
	{ 0 }
};

static const struct token t_file[] = {
	{ WORD,	   "file",	t_after_file, NULL, &options.file, NULL },
	{ 0 }
};

const struct command command_replay = {
	.co_name = "replay",
	.co_synopsis = "replay [-p POLICY] FILE [session ID]",
	.co_help = "show what another policy would change",
	.co_tokens = t_file,
	.co_run = replay_run,
	.co_show = replay_put,
	.co_options = "p:v",
	.co_option = replay_option,
};
