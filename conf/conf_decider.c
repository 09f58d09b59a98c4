/* SPDX-License-Identifier: ISC */

/*
 * The parent, and whoever else reads egressd.conf(5), runs this: deciders.
 */

#include <string.h>
#include <strings.h>

#include "confparse.h"
#include "name.h"

#define HEADER_MAX		1024	/* bytes of a header's value */
#define OPERATOR_TIMEOUT_MS	(2 * 60 * 1000)

void
conf_decider_begin(struct parse *ps, struct conf_pos pos, const char *name,
    const char *word)
{
	unsigned int			 kind = (unsigned int)
					    decider_kind_find(word);
	struct conf_deciders		*list = &ps->ps_conf->cf_deciders;
	const struct conf_decider	*prior;
	struct conf_decider		*dc, *last;

	prior = conf_decider_find(ps->ps_conf, name);
	last = TAILQ_LAST(list, conf_deciders);
	dc = conf_alloc(ps->ps_conf, sizeof(*dc));
	dc->dc_pos = pos;
	dc->dc_index = last == NULL ? 0 : last->dc_index + 1;
	dc->dc_name = name;
	dc->dc_kind = kind;
	option_presets(decider_table, &dc->dc_options);
	if (kind == DECIDER_OPERATOR)
		dc->dc_options.do_timeout_ms = OPERATOR_TIMEOUT_MS;
	TAILQ_INIT(&dc->dc_command);
	TAILQ_INIT(&dc->dc_headers);
	TAILQ_INSERT_TAIL(list, dc, dc_entry);

	ps->ps_decider = dc;
	ps->ps_block.sx_table = decider_table;
	ps->ps_block.sx_object = &dc->dc_options;
	ps->ps_block.sx_set = &dc->dc_set;
	ps->ps_block.sx_kind = 1U << kind;
	ps->ps_block.sx_noun = conf_noun(ps, decider_kind_name(kind),
	    "decider");
	conf_block_begin(ps, pos, name, dc->dc_index,
	    prior == NULL ? NULL : &prior->dc_pos);
}

/* Headers that deciderd or libcurl set, and by which a request is framed. */
static bool
header_is_ours(const char *name)
{
	static const char *const	 ours[] = {
		"accept", "connection", "content-length", "content-type",
		"expect", "host", "te", "trailer", "transfer-encoding",
		"upgrade"
	};
	size_t				 i;

	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strcasecmp(name, ours[i]) == 0)
			return true;
	return false;
}

const char *
value_header_error(const char *name)
{
	const char	*why;

	if ((why = value_token_error(name)) != NULL)
		return why;
	return header_is_ours(name) ? "is set by egressd" : NULL;
}

/* A header must not carry a secret: the configuration holds none. */
void
conf_decider_header(struct parse *ps, struct conf_pos pos, const char *name,
    const char *value)
{
	struct conf_decider	*dc = ps->ps_decider;
	struct conf_pair	*pr;
	const char		*why, *p;
	unsigned int		 n = 0;

	if (!stmt_permitted(&ps->ps_block, pos, "header"))
		return;
	if ((why = value_header_error(name)) != NULL)
		conf_error(ps, pos, "header \"%s\": %s", name, why);
	else if (redact_known(REDACT_HEADER, name, strlen(name)))
		conf_error(ps, pos, "header \"%s\": carries a credential, use "
		    "key file and key header", name);
	for (p = value; *p >= ' ' && *p < 0x7f; p++)
		continue;
	if (*p != '\0' || value[0] == '\0' || p - value > HEADER_MAX)
		conf_error(ps, pos, "header \"%s\": must have a value of 1 to "
		    "%d printable characters", name, HEADER_MAX);
	TAILQ_FOREACH(pr, &dc->dc_headers, pr_entry) {
		n++;
		if (strcasecmp(pr->pr_key, name) == 0)
			conf_error(ps, pos, "header \"%s\" is given twice",
			    name);
	}
	if (n == DECIDER_HEADERS_MAX)
		conf_error(ps, pos, "header \"%s\": more than %d headers",
		    name, DECIDER_HEADERS_MAX);
	conf_pair_add(ps, pos, name, value);
	TAILQ_CONCAT(&dc->dc_headers, &ps->ps_pairs, pr_entry);
	conf_lists_reset(ps);
}

void
conf_decider_end(struct parse *ps)
{
	const struct conf_decider	*dc = ps->ps_decider;
	const struct decider_options	*op = &dc->dc_options;
	const char			*why;

	ps->ps_now = &ps->ps_global;
	stmt_needed(&ps->ps_block, dc->dc_pos, dc->dc_name);
	if (op->do_form == FORM_JSON && op->do_api != API_OPENAI)
		conf_error(ps, dc->dc_pos, "answer json: is for api openai");
	if (op->do_url != NULL && (why = value_clear_error(op->do_url,
	    op->do_insecure)) != NULL)
		conf_error(ps, stmt_pos(&ps->ps_block, "url"), "url \"%s\": "
		    "%s", op->do_url, why);
	if (op->do_key_header != NULL && op->do_key_file == NULL)
		conf_error(ps, dc->dc_pos, "key header \"%s\": there is no "
		    "key file", op->do_key_header);
	if (op->do_path != NULL && op->do_path[0] == '/' &&
	    (why = value_socket_error(op->do_path)) != NULL)
		conf_error(ps, dc->dc_pos, "path \"%s\": %s", op->do_path,
		    why);
}

/* Warn of URLs that are legal and hardly what was meant. */
void
conf_deciders_warn(const struct config *conf)
{
	const struct conf_decider	*dc;
	const char			*path;

	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry) {
		if (dc->dc_kind != DECIDER_AGENT)
			continue;
		path = strchr(strstr(dc->dc_options.do_url, "://") + 3, '/');
		if (path == NULL || path[1] == '\0')
			log_warnx("%s:%u: url \"%s\": has no path, such as %s",
			    dc->dc_pos.p_file, dc->dc_pos.p_line,
			    dc->dc_options.do_url,
			    dc->dc_options.do_api == API_ANTHROPIC ?
			    "/v1/messages" : "/v1/chat/completions");
	}
}
