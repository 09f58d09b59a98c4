/* SPDX-License-Identifier: ISC */

/*
 * Making and freeing a configuration.  Run by the parent, at start and at each
 * reload, and by egressctl; nothing here outlives a call but the configuration
 * it returns, so a reload that fails leaves no trace.
 */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "confparse.h"

/*
 * All memory of a configuration but its policies hangs on one chain, what the
 * parser threw away included: no error path can leak.
 */
struct conf_chunk {
	struct conf_chunk	*ch_next;
	max_align_t		 ch_data[];
};

void *
conf_alloc(struct config *cf, size_t size)
{
	struct conf_chunk	*ch;

	if ((ch = calloc(1, sizeof(*ch) + size)) == NULL)
		fatal("configuration");
	ch->ch_next = cf->cf_chunks;
	cf->cf_chunks = ch;
	return ch->ch_data;
}

char *
conf_strndup(struct config *cf, const char *text, size_t len)
{
	char	*copy;

	copy = conf_alloc(cf, len + 1);
	memcpy(copy, text, len);
	return copy;
}

void
conf_free(struct config *cf)
{
	struct conf_policy	*cp;
	struct conf_chunk	*ch;

	if (cf == NULL)
		return;
	TAILQ_FOREACH(cp, &cf->cf_policies, cp_entry)
		policy_free(cp->cp_policy);
	while ((ch = cf->cf_chunks) != NULL) {
		cf->cf_chunks = ch->ch_next;
		free(ch);
	}
	free(cf);
}

static void
conf_errors_vadd(struct conf_errors *ce, struct conf_pos pos, const char *fmt,
    va_list ap)
{
	char	*text, *msg;

	if (ce->ce_count == CONF_ERRORS_MAX) {
		ce->ce_dropped++;
		return;
	}
	if (vasprintf(&text, fmt, ap) == -1)
		fatal("configuration");
	if (pos.p_file == NULL) {
		ce->ce_msg[ce->ce_count++] = text;
		return;
	}
	if (asprintf(&msg, "%s:%u: %s", pos.p_file, pos.p_line, text) == -1)
		fatal("configuration");
	free(text);
	ce->ce_msg[ce->ce_count++] = msg;
}

void
conf_error(struct parse *ps, struct conf_pos pos, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	conf_errors_vadd(ps->ps_errs, pos, fmt, ap);
	va_end(ap);
}

void
conf_errors_add(struct conf_errors *ce, struct conf_pos pos, const char *fmt,
    ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	conf_errors_vadd(ce, pos, fmt, ap);
	va_end(ap);
}

void
conf_errors_free(struct conf_errors *ce)
{
	while (ce->ce_count > 0)
		free(ce->ce_msg[--ce->ce_count]);
	ce->ce_dropped = 0;
}

void
conf_word_add(struct parse *ps, struct conf_pos pos, const char *text,
    bool quoted)
{
	struct conf_word	*wd;

	wd = conf_alloc(ps->ps_conf, sizeof(*wd));
	wd->wd_pos = pos;
	wd->wd_text = text;
	wd->wd_quoted = quoted;
	TAILQ_INSERT_TAIL(&ps->ps_words, wd, wd_entry);
}

void
conf_port_add(struct parse *ps, struct conf_pos pos, int64_t first,
    int64_t last)
{
	conf_word_add(ps, pos, "", false);
	TAILQ_LAST(&ps->ps_words, conf_words)->wd_first = first;
	TAILQ_LAST(&ps->ps_words, conf_words)->wd_last = last;
}

/* Two words with a space between. */
const char *
conf_noun(struct parse *ps, const char *one, const char *two)
{
	size_t	 size = strlen(one) + strlen(two) + 2;
	char	*text = conf_alloc(ps->ps_conf, size);

	snprintf(text, size, "%s %s", one, two);
	return text;
}

void
conf_pair_add(struct parse *ps, struct conf_pos pos, const char *key,
    const char *value)
{
	struct conf_pair	*pr;

	pr = conf_alloc(ps->ps_conf, sizeof(*pr));
	pr->pr_pos = pos;
	pr->pr_key = key;
	pr->pr_value = value;
	TAILQ_INSERT_TAIL(&ps->ps_pairs, pr, pr_entry);
}

void
conf_lists_reset(struct parse *ps)
{
	TAILQ_INIT(&ps->ps_words);
	TAILQ_INIT(&ps->ps_pairs);
}

static struct config *
conf_new(void)
{
	struct config	*cf;

	if ((cf = calloc(1, sizeof(*cf))) == NULL)
		fatal("configuration");
	TAILQ_INIT(&cf->cf_hosts);
	TAILQ_INIT(&cf->cf_resolvers);
	TAILQ_INIT(&cf->cf_address_deny);
	TAILQ_INIT(&cf->cf_environment);
	TAILQ_INIT(&cf->cf_deciders);
	TAILQ_INIT(&cf->cf_policies);
	TAILQ_INIT(&cf->cf_clusters);
	TAILQ_INIT(&cf->cf_sandboxes);
	TAILQ_INIT(&cf->cf_sessions);

	cf->cf_log = LOG_LVL_INFO;
	cf->cf_limit[CONF_LIMIT_SESSIONS] = 256;
	cf->cf_limit[CONF_LIMIT_CLIENTS] = 64;
	cf->cf_limit[CONF_LIMIT_CONNECTIONS] = 1024;
	cf->cf_limit[CONF_LIMIT_PENDING] = 256;
	cf->cf_timeout[CONF_TIMEOUT_DIAL] = 10 * 1000;
	cf->cf_timeout[CONF_TIMEOUT_HANDSHAKE] = 10 * 1000;
	cf->cf_timeout[CONF_TIMEOUT_HEAD] = 10 * 1000;
	cf->cf_timeout[CONF_TIMEOUT_RESPONSE] = 10 * 60 * 1000;
	cf->cf_timeout[CONF_TIMEOUT_IDLE] = 60 * 1000;
	cf->cf_timeout[CONF_TIMEOUT_TUNNEL] = 60 * 60 * 1000;
	return cf;
}

static void
conf_begin(struct parse *ps, struct conf_errors *errs)
{
	memset(ps, 0, sizeof(*ps));
	ps->ps_conf = conf_new();
	ps->ps_errs = errs;
	ps->ps_now = &ps->ps_global;
	ps->ps_global.sx_parse = ps;
	SHA256Init(&ps->ps_sha256);
	ps->ps_global.sx_table = global_table;
	ps->ps_global.sx_object = ps->ps_conf;
	ps->ps_global.sx_set = &ps->ps_conf->cf_set;
	ps->ps_global.sx_kind = 1;
	ps->ps_global.sx_noun = "configuration";
	TAILQ_INIT(&ps->ps_lex.lx_macros);
	conf_lists_reset(ps);
}

/* The parser fails only after it has reported an error. */
static struct config *
conf_end(struct parse *ps)
{
	if (yyparse(ps) == 0)
		conf_check(ps);
	SHA256End(&ps->ps_sha256, ps->ps_conf->cf_sha256);
	ps->ps_conf->cf_upstream_trust_pos = stmt_pos(&ps->ps_global,
	    "upstream trust file");
	while (ps->ps_lex.lx_source != NULL)
		lex_pop(ps);
	if (ps->ps_errs->ce_count == 0)
		return ps->ps_conf;
	conf_free(ps->ps_conf);
	return NULL;
}

struct config *
conf_parse(const char *path, struct conf_errors *errs)
{
	struct parse	 ps;

	conf_begin(&ps, errs);
	if (!lex_open(&ps, path)) {
		conf_free(ps.ps_conf);
		return NULL;
	}
	return conf_end(&ps);
}

struct config *
conf_parse_buffer(const char *name, const void *buf, size_t len,
    struct conf_errors *errs)
{
	struct parse	 ps;

	conf_begin(&ps, errs);
	lex_open_buffer(&ps, name, buf, len);
	return conf_end(&ps);
}

#define CONF_FIND(name, object, head, entry, member)			\
const struct object *							\
name(const struct config *cf, const char *key)				\
{									\
	const struct object	*o;					\
									\
	TAILQ_FOREACH(o, &cf->head, entry)				\
		if (strcmp(o->member, key) == 0)			\
			return o;					\
	return NULL;							\
}

CONF_FIND(conf_policy_find, conf_policy, cf_policies, cp_entry, cp_name)
CONF_FIND(conf_decider_find, conf_decider, cf_deciders, dc_entry, dc_name)
CONF_FIND(conf_cluster_find, conf_cluster, cf_clusters, cl_entry, cl_name)
CONF_FIND(conf_sandbox_find, conf_sandbox, cf_sandboxes, sb_entry, sb_name)
CONF_FIND(conf_session_find, conf_session, cf_sessions, ss_entry, ss_name)

int
conf_secrets(const struct config *conf, conf_visitor *visit, void *arg)
{
	const struct conf_decider	*dc;
	const struct conf_cluster	*cl;
	const struct conf_session	*ss;

	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry)
		if (visit(&dc->dc_pos, dc->dc_options.do_key_file, arg))
			return 1;
	TAILQ_FOREACH(cl, &conf->cf_clusters, cl_entry)
		if (visit(&cl->cl_pos, cl->cl_kubeconfig, arg) ||
		    visit(&cl->cl_pos, cl->cl_token_file, arg) ||
		    visit(&cl->cl_pos, cl->cl_key_file, arg) ||
		    visit(&cl->cl_pos, cl->cl_password_file, arg))
			return 1;
	TAILQ_FOREACH(ss, &conf->cf_sessions, ss_entry)
		if (visit(&ss->ss_pos, ss->ss_ca_key, arg))
			return 1;
	return 0;
}
