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
 * The parent, and whoever else reads egressd.conf(5), runs this: deciders.
 */

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "confparse.h"
#include "name.h"

#define HEADER_MAX	1024	/* bytes of a header's value */

void
conf_decider_begin(struct parse *ps, struct conf_pos pos, const char *name,
    unsigned int kind)
{
	static const char *const	 nouns[] = {
		"agent decider", "webhook decider", "exec decider",
		"socket decider", "operator decider"
	};
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
	dc->dc_timeout = kind == DECIDER_OPERATOR ? 120000 : 5000;
	dc->dc_concurrency = 8;
	TAILQ_INIT(&dc->dc_command);
	TAILQ_INIT(&dc->dc_headers);
	TAILQ_INSERT_TAIL(list, dc, dc_entry);

	ps->ps_decider = dc;
	ps->ps_block.sx_table = stmt_decider;
	ps->ps_block.sx_object = dc;
	ps->ps_block.sx_set = &dc->dc_set;
	ps->ps_block.sx_kind = 1U << kind;
	ps->ps_block.sx_noun = nouns[kind];
	conf_block_begin(ps, pos, name, dc->dc_index,
	    prior == NULL ? NULL : &prior->dc_pos);
}

/* What we or libcurl say ourselves, by which a request is framed. */
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

static const char *
header_error(const char *name)
{
	const char	*why;

	if ((why = value_token_error(name)) != NULL)
		return why;
	return header_is_ours(name) ? "is set by egressd" : NULL;
}

/* Secrets do not stand in this file. */
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
	if ((why = header_error(name)) != NULL)
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
conf_decider_key_header(struct parse *ps, struct conf_pos pos,
    const char *name)
{
	const char	*why;

	if ((why = header_error(name)) != NULL)
		conf_error(ps, pos, "key header \"%s\": %s", name, why);
	stmt_text(&ps->ps_block, pos, "key header", name);
}

void
conf_decider_end(struct parse *ps)
{
	const struct conf_decider	*dc = ps->ps_decider;
	const char			*why;

	stmt_needed(&ps->ps_block, dc->dc_pos, dc->dc_name);
	if (dc->dc_form == FORM_JSON && dc->dc_api != API_OPENAI)
		conf_error(ps, dc->dc_pos, "answer json: is for api openai");
	if (dc->dc_url != NULL && (why = value_clear_error(dc->dc_url,
	    dc->dc_insecure)) != NULL)
		conf_error(ps, dc->dc_url_pos, "url \"%s\": %s", dc->dc_url,
		    why);
	if (dc->dc_key_header != NULL && dc->dc_key_file == NULL)
		conf_error(ps, dc->dc_pos, "key header \"%s\": there is no "
		    "key file", dc->dc_key_header);
	if (dc->dc_path != NULL && dc->dc_path[0] == '/' &&
	    (why = value_socket_error(dc->dc_path)) != NULL)
		conf_error(ps, dc->dc_pos, "path \"%s\": %s", dc->dc_path,
		    why);
}

/* Thousandths, or -1: 0 to 2 in decimal, as `0.2'. */
int
conf_temperature(const char *text)
{
	int	 n, unit;

	if (text[0] < '0' || text[0] > '2' || (text[1] != '\0' &&
	    (text[1] != '.' || text[2] == '\0')))
		return -1;
	n = (text[0] - '0') * 1000;
	for (unit = 100, text += text[1] == '\0' ? 1 : 2; *text != '\0';
	    text++, unit /= 10) {
		if (!isdigit((unsigned char)*text) || unit == 0)
			return -1;
		n += (*text - '0') * unit;
	}
	return n <= 2000 ? n : -1;
}

void
conf_decider_temperature(struct parse *ps, struct conf_pos pos,
    const char *text)
{
	if (conf_temperature(text) == -1)
		conf_error(ps, pos, "temperature \"%s\": must be between 0 and "
		    "2, with three digits after the point at most", text);
	stmt_text(&ps->ps_block, pos, "temperature", text);
}

/* What an API knows changes; that it is a word does not. */
void
conf_decider_effort(struct parse *ps, struct conf_pos pos, const char *text)
{
	size_t	 len = strspn(text, "abcdefghijklmnopqrstuvwxyz");

	if (text[len] != '\0' || len > 16)
		conf_error(ps, pos, "effort \"%s\": must be a word in lower "
		    "case, such as low or high", text);
	stmt_text(&ps->ps_block, pos, "effort", text);
}

/* What loads, and is hardly what was meant. */
void
conf_deciders_warn(const struct config *conf)
{
	const struct conf_decider	*dc;
	const char			*path;

	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry) {
		if (dc->dc_kind != DECIDER_AGENT)
			continue;
		path = strchr(strstr(dc->dc_url, "://") + 3, '/');
		if (path == NULL || path[1] == '\0')
			log_warnx("%s:%u: url \"%s\": has no path, such as %s",
			    dc->dc_pos.p_file, dc->dc_pos.p_line, dc->dc_url,
			    dc->dc_api == API_ANTHROPIC ? "/v1/messages" :
			    "/v1/chat/completions");
	}
}
