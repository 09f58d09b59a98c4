/* SPDX-License-Identifier: ISC */

/*
 * egressctl: policies without the daemon.  Its own parser reads the file and
 * its own rules decide; nothing is asked, dialled or recorded.
 */

#include <err.h>

#include "offline.h"
#include "show.h"

/* The configuration; says which file it is unless -f named it. */
struct config *
offline_conf(const struct invocation *in)
{
	struct conf_errors	 errors = { .ce_count = 0 };
	struct config		*conf;
	const char		*own, *path = conf_choose(in, &own);
	size_t			 i;

	conf = conf_parse(path != NULL ? path : path_conf, &errors);
	if (conf != NULL) {
		if (in->in_conf == path_conf)
			warnx("configuration %s", path);
		return conf;
	}
	for (i = 0; i < errors.ce_count; i++) {
		visible_put(stderr, errors.ce_msg[i], VISIBLE_TEXT);
		fputc('\n', stderr);
	}
	if (errors.ce_dropped > 0)
		fprintf(stderr, "egressctl: and %zu more errors\n",
		    errors.ce_dropped);
	conf_errors_free(&errors);
	if (path == NULL)
		fprintf(stderr, "egressctl: name your configuration with -f, "
		    "or write %s\n", own != NULL ? own : "one");
	return NULL;
}

static void
explain_unknown(const struct config *conf, const char *name)
{
	const struct conf_policy	*cp, *near = NULL;
	const char			*comma = "";
	int				 d, least = -1;

	TAILQ_FOREACH(cp, &conf->cf_policies, cp_entry)
		if ((d = parser_typos(name, cp->cp_name)) != -1 &&
		    (least == -1 || d < least)) {
			least = d;
			near = cp;
		}
	fputs("egressctl: unknown policy \"", stderr);
	visible_put(stderr, name, VISIBLE_QUOTED);
	if (near != NULL) {
		fprintf(stderr, "\", did you mean \"%s\"?\n", near->cp_name);
		return;
	}
	fputs("\", known are: ", stderr);
	TAILQ_FOREACH(cp, &conf->cf_policies, cp_entry) {
		fprintf(stderr, "%s%s", comma, cp->cp_name);
		comma = ", ";
	}
	fputs(*comma == '\0' ? "none\n" : "\n", stderr);
}

static const struct conf_policy *
only_policy(const struct config *conf)
{
	const struct conf_policy	*cp = TAILQ_FIRST(&conf->cf_policies);

	if (cp != NULL && TAILQ_NEXT(cp, cp_entry) == NULL)
		return cp;
	fputs("egressctl: the configuration does not have exactly one policy; "
	    "name one with -p\n", stderr);
	return NULL;
}

/* The policy of that name, or without a name the only one. */
const struct conf_policy *
offline_policy(const struct config *conf, const char *name)
{
	const struct conf_policy	*cp;

	if (name == NULL)
		return only_policy(conf);
	if ((cp = conf_policy_find(conf, name)) == NULL)
		explain_unknown(conf, name);
	return cp;
}

static struct policy_request
request_of(const struct url *ur, const char *method, enum url_scheme scheme)
{
	return (struct policy_request){
		.pr_host = ur->ur_host,
		.pr_port = ur->ur_port,
		.pr_scheme = scheme,
		.pr_method = method,
		.pr_path = ur->ur_path,
	};
}

/*
 * As the daemon does: first about the connection, and if that has to be looked
 * into, about the request.  What is not HTTP then goes no further.
 */
int
offline_evaluate(const struct policy *pl, const struct url *ur,
    const char *method, struct policy_verdict *pv)
{
	struct policy_request	 pr = request_of(ur, method, URL_TCP);

	policy_evaluate(pl, &pr, pv);
	if (pv->pv_verdict != VERDICT_LOOK)
		return pv->pv_verdict == VERDICT_ALLOW;
	if (ur->ur_scheme == URL_TCP) {
		pv->pv_verdict = VERDICT_DENY;
		pv->pv_reason = REASON_BAD_REQUEST;
		return 0;
	}
	pr.pr_scheme = ur->ur_scheme;
	policy_evaluate(pl, &pr, pv);
	return 0;
}

const struct rule *
offline_missed(const struct policy *pl, const struct url *ur,
    const char *method, const struct policy_verdict *pv)
{
	struct policy_request	 pr = request_of(ur, method, ur->ur_scheme);
	const struct rule	*ru;

	if (ur->ur_scheme == URL_TCP || pv->pv_verdict == VERDICT_ALLOW ||
	    (ru = policy_missed(pl, &pr)) == NULL)
		return NULL;
	return pv->pv_rule == NULL || ru->ru_index < pv->pv_rule->ru_index ?
	    ru : NULL;
}
