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
 * egressctl: policies without the daemon.  Its own parser reads the file and
 * its own rules decide; nothing is asked, dialled or recorded.
 */

#include <unistd.h>

#include "egressctl.h"
#include "offline.h"

struct config *
offline_conf(const char *path)
{
	struct conf_errors	 errors = { .ce_count = 0 };
	struct config		*conf;
	size_t			 i;

	if ((conf = conf_parse(path, &errors)) != NULL)
		return conf;
	for (i = 0; i < errors.ce_count; i++) {
		visible_put(stderr, errors.ce_msg[i], VISIBLE_TEXT);
		fputc('\n', stderr);
	}
	if (errors.ce_dropped > 0)
		fprintf(stderr, "egressctl: and %zu more errors\n",
		    errors.ce_dropped);
	conf_errors_free(&errors);
	if (path == path_conf && access(path, R_OK) == -1)
		fputs("egressctl: name your configuration with -f\n", stderr);
	return NULL;
}

static void
explain_unknown(const struct config *conf, const char *name)
{
	const struct conf_policy	*pl, *near = NULL;
	const char			*comma = "";
	int				 d, least = -1;

	TAILQ_FOREACH(pl, &conf->cf_policies, pl_entry)
		if ((d = parser_typos(name, pl->pl_name)) != -1 &&
		    (least == -1 || d < least)) {
			least = d;
			near = pl;
		}
	fputs("egressctl: unknown policy \"", stderr);
	visible_put(stderr, name, VISIBLE_QUOTED);
	if (near != NULL) {
		fprintf(stderr, "\", did you mean \"%s\"?\n", near->pl_name);
		return;
	}
	fputs("\", known are: ", stderr);
	TAILQ_FOREACH(pl, &conf->cf_policies, pl_entry) {
		fprintf(stderr, "%s%s", comma, pl->pl_name);
		comma = ", ";
	}
	fputs(*comma == '\0' ? "none\n" : "\n", stderr);
}

static const struct conf_policy *
only_policy(const struct config *conf)
{
	const struct conf_policy	*pl = TAILQ_FIRST(&conf->cf_policies);

	if (pl != NULL && TAILQ_NEXT(pl, pl_entry) == NULL)
		return pl;
	fputs("egressctl: the configuration does not have exactly one policy; "
	    "name one with -p\n", stderr);
	return NULL;
}

/* Without a name, the one that has no other beside it. */
const struct conf_policy *
offline_policy(const struct config *conf, const char *name)
{
	const struct conf_policy	*pl;

	if (name == NULL)
		return only_policy(conf);
	if ((pl = conf_policy_find(conf, name)) == NULL)
		explain_unknown(conf, name);
	return pl;
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
		pv->pv_reason = "bad_request";
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
