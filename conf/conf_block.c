/* SPDX-License-Identifier: ISC */

/*
 * Clusters, sandboxes and fixed sessions: objects that, as deciders, are a name
 * and a block of statements.
 */

#include <string.h>

#include "confparse.h"
#include "exposure.h"
#include "name.h"

#define OBJECTS_MAX	1024	/* of each sort */
#define STARTERS_MAX	256	/* users and groups of one sandbox */
#define SIZE_DEFAULT	(256 * 1024 * 1024)	/* bytes, virtual sandbox */

/*
 * What holds for the name of any object; prior is one that has it already.
 * The object joins its list in any case, so that the rest of its block is
 * checked too.
 */
void
conf_block_begin(struct parse *ps, struct conf_pos pos, const char *name,
    unsigned int index, const struct conf_pos *prior)
{
	const char	*noun = ps->ps_block.sx_noun, *why;

	ps->ps_block.sx_parse = ps;
	ps->ps_now = &ps->ps_block;
	if ((why = name_error(name)) != NULL)
		conf_error(ps, pos, "%s \"%s\": %s", noun, name, why);
	else if (prior != NULL)
		conf_error(ps, pos, "%s \"%s\": the name is taken at %s:%u",
		    noun, name, prior->p_file, prior->p_line);
	if (index == OBJECTS_MAX)
		conf_error(ps, pos, "%s \"%s\": more than %d of them", noun,
		    name, OBJECTS_MAX);
}

void
conf_cluster_begin(struct parse *ps, struct conf_pos pos, const char *name)
{
	struct conf_clusters		*list = &ps->ps_conf->cf_clusters;
	const struct conf_cluster	*prior;
	struct conf_cluster		*cl, *last;

	prior = conf_cluster_find(ps->ps_conf, name);
	last = TAILQ_LAST(list, conf_clusters);
	cl = conf_alloc(ps->ps_conf, sizeof(*cl));
	cl->cl_pos = pos;
	cl->cl_index = last == NULL ? 0 : last->cl_index + 1;
	cl->cl_name = name;
	TAILQ_INIT(&cl->cl_exec);
	TAILQ_INSERT_TAIL(list, cl, cl_entry);

	ps->ps_cluster = cl;
	ps->ps_block.sx_table = cluster_table;
	ps->ps_block.sx_object = cl;
	ps->ps_block.sx_set = &cl->cl_set;
	ps->ps_block.sx_kind = 1;
	ps->ps_block.sx_noun = "cluster";
	conf_block_begin(ps, pos, name, cl->cl_index,
	    prior == NULL ? NULL : &prior->cl_pos);
}

static const char *
conf_cluster_error(const struct conf_cluster *cl)
{
	bool	 token = cl->cl_token_file != NULL;
	bool	 cert = cl->cl_cert_file != NULL;
	bool	 user = cl->cl_user != NULL;
	bool	 basic = cl->cl_password_file != NULL;
	bool	 exec = !TAILQ_EMPTY(&cl->cl_exec);
	bool	 server = cl->cl_server != NULL;
	bool	 config = cl->cl_kubeconfig != NULL;

	if (cl->cl_in_cluster + config + server > 1)
		return "in-cluster, kubeconfig and server exclude each "
		    "other";
	if (cl->cl_context != NULL && (cl->cl_in_cluster || server))
		return "context is for kubeconfig";
	if (cert != (cl->cl_key_file != NULL))
		return "certificate file and key file go together";
	if (basic && !user)
		return "password file wants user";
	if (!server && (token || cert || basic || exec ||
	    cl->cl_ca_file != NULL))
		return "ca and credentials want server";
	if (server && user && !basic && !exec)
		return "user wants password file, or exec which it runs";
	if (cl->cl_in_cluster && user)
		return "user is for kubeconfig, password file and exec";
	if (server && token + cert + basic + exec != 1)
		return "server wants one of token file, certificate file, "
		    "password file and exec";
	if (cl->cl_insecure && (cl->cl_in_cluster || cl->cl_ca_file != NULL))
		return "insecure is for a server without ca file";
	return NULL;
}

void
conf_cluster_end(struct parse *ps)
{
	const struct conf_cluster	*cl = ps->ps_cluster;
	const char			*why;

	ps->ps_now = &ps->ps_global;
	if ((why = conf_cluster_error(cl)) != NULL)
		conf_error(ps, cl->cl_pos, "cluster \"%s\": %s", cl->cl_name,
		    why);
	if (cl->cl_tls_name != NULL &&
	    (why = value_hostname_error(cl->cl_tls_name)) != NULL)
		conf_error(ps, stmt_pos(&ps->ps_block, "tls-server-name"),
		    "tls-server-name \"%s\": %s", cl->cl_tls_name, why);
}

void
conf_sandbox_begin(struct parse *ps, struct conf_pos pos, const char *name,
    unsigned int kind, const char *program)
{
	static const char *const	 nouns[] = {
		"local sandbox", "virtual sandbox", "kubernetes sandbox",
		"custom sandbox"
	};
	struct conf_sandboxes		*list = &ps->ps_conf->cf_sandboxes;
	const struct conf_sandbox	*prior;
	struct conf_sandbox		*sb, *last;

	prior = conf_sandbox_find(ps->ps_conf, name);
	last = TAILQ_LAST(list, conf_sandboxes);
	sb = conf_alloc(ps->ps_conf, sizeof(*sb));
	sb->sb_pos = pos;
	sb->sb_index = last == NULL ? 0 : last->sb_index + 1;
	sb->sb_name = name;
	sb->sb_kind = kind;
	sb->sb_program = kind == SANDBOX_CUSTOM ? program : NULL;
	sb->sb_deadline = 8 * 60 * 60 * 1000;
	sb->sb_size = SIZE_DEFAULT;
	TAILQ_INIT(&sb->sb_for);
	TAILQ_INIT(&sb->sb_expose);
	TAILQ_INIT(&sb->sb_mounts);
	TAILQ_INIT(&sb->sb_below);
	TAILQ_INIT(&sb->sb_environment);
	conf_pod_begin(sb);
	TAILQ_INSERT_TAIL(list, sb, sb_entry);

	ps->ps_sandbox = sb;
	ps->ps_block.sx_table = sandbox_table;
	ps->ps_block.sx_object = sb;
	ps->ps_block.sx_set = &sb->sb_set;
	ps->ps_block.sx_kind = 1U << kind;
	ps->ps_block.sx_noun = nouns[kind];
	conf_block_begin(ps, pos, name, sb->sb_index,
	    prior == NULL ? NULL : &prior->sb_pos);
}

void
conf_sandbox_policy(struct parse *ps, struct conf_pos pos, const char *name)
{
	stmt_text(&ps->ps_block, pos, "policy", name);
	ps->ps_sandbox->sb_policy_pos = pos;
}

static void
conf_sandbox_path(struct parse *ps, struct conf_pos pos, const char *what,
    const char *path)
{
	const char	*why;

	if ((why = value_path_error(path)) != NULL)
		conf_error(ps, pos, "%s \"%s\": %s", what, path, why);
	else if (path[strspn(path, "/")] == '\0')
		conf_error(ps, pos, "%s \"%s\": must not be the whole file "
		    "system", what, path);
}

static void
conf_sandbox_mount_add(struct parse *ps, struct conf_mounts *list,
    struct conf_pos pos, const char *source, const char *target, bool write)
{
	struct conf_mount	*mn;

	mn = conf_alloc(ps->ps_conf, sizeof(*mn));
	mn->mn_pos = pos;
	mn->mn_source = source;
	mn->mn_target = target;
	mn->mn_write = write;
	TAILQ_INSERT_TAIL(list, mn, mn_entry);
}

void
conf_sandbox_expose(struct parse *ps, struct conf_pos pos, const char *path,
    bool write)
{
	if (!stmt_permitted(&ps->ps_block, pos, "expose"))
		return;
	conf_sandbox_path(ps, pos, "expose", path);
	conf_sandbox_mount_add(ps, &ps->ps_sandbox->sb_expose, pos, path, NULL,
	    write);
}

void
conf_sandbox_mount(struct parse *ps, struct conf_pos pos, const char *source,
    const char *target, bool write)
{
	if (!stmt_permitted(&ps->ps_block, pos, "mount"))
		return;
	conf_sandbox_path(ps, pos, "mount", source);
	conf_sandbox_path(ps, pos, "mount", target);
	/* box takes both in one word. */
	if (strchr(target, ':') != NULL)
		conf_error(ps, pos, "mount \"%s\": must not contain a colon",
		    target);
	conf_sandbox_mount_add(ps, &ps->ps_sandbox->sb_mounts, pos, source,
	    target, write);
}

/* Where clients may find what they have mounted; links are not followed. */
void
conf_sandbox_below(struct parse *ps, struct conf_pos pos, const char *path,
    bool write)
{
	if (!stmt_permitted(&ps->ps_block, pos, "mount below"))
		return;
	conf_sandbox_path(ps, pos, "mount below", path);
	if (path[0] == '/' && path[1] != '\0' && !exposure_is_plain(path))
		conf_error(ps, pos, "mount below \"%s\": must not contain . or "
		    ".., nor a slash too many", path);
	conf_sandbox_mount_add(ps, &ps->ps_sandbox->sb_below, pos, path, NULL,
	    write);
}

void
conf_sandbox_cluster(struct parse *ps, struct conf_pos pos, const char *name)
{
	stmt_text(&ps->ps_block, pos, "cluster", name);
	ps->ps_sandbox->sb_cluster_pos = pos;
}

/* A user who is called caller is written in quotes. */
void
conf_sandbox_user(struct parse *ps, struct conf_pos pos, const char *name,
    bool quoted)
{
	if (!stmt_once(&ps->ps_block, pos, "user"))
		return;
	if (name[0] == '\0')
		conf_error(ps, pos, "user \"\": must not be empty");
	if (!quoted && strcmp(name, "caller") == 0)
		ps->ps_sandbox->sb_user_caller = true;
	else
		ps->ps_sandbox->sb_user = name;
}

/* What is limited says whether a size, a time or a count has to follow. */
void
conf_sandbox_limit(struct parse *ps, struct conf_pos pos, const char *name,
    const char *text, int64_t n, bool time)
{
	const struct option	*op;
	bool			 plain;

	op = stmt_pair_row(&ps->ps_block, pos, "limit ", name);
	if (op == NULL)
		return;
	plain = text[strspn(text, "0123456789")] == '\0';
	if (op->op_type == OPTION_MS && plain)
		n = value_unitless(ps, pos, n);
	else if ((op->op_type == OPTION_MS) != time ||
	    (op->op_type == OPTION_COUNT && !plain)) {
		conf_error(ps, pos, "%s \"%s\": must be a %s", op->op_word,
		    text, op->op_type == OPTION_MS ? "time" :
		    op->op_type == OPTION_COUNT ? "number" : "size");
		n = VALUE_BAD;
	}
	stmt_number(&ps->ps_block, pos, op->op_word, n);
}

static void
conf_sandbox_starter(struct parse *ps, const struct conf_word *wd, bool group)
{
	const char		*noun = group ? "group" : "user";
	struct conf_starters	*list = &ps->ps_sandbox->sb_for;
	struct conf_starter	*st;
	unsigned int		 n = 0;

	if (wd->wd_text[0] == '\0')
		conf_error(ps, wd->wd_pos, "for %s \"\": must not be empty",
		    noun);
	TAILQ_FOREACH(st, list, st_entry) {
		n++;
		if (st->st_group == group &&
		    strcmp(st->st_name, wd->wd_text) == 0)
			conf_error(ps, wd->wd_pos, "for %s \"%s\" is given "
			    "twice", noun, wd->wd_text);
	}
	if (n == STARTERS_MAX)
		conf_error(ps, wd->wd_pos, "for %s \"%s\": more than %d users "
		    "and groups", noun, wd->wd_text, STARTERS_MAX);
	st = conf_alloc(ps->ps_conf, sizeof(*st));
	st->st_pos = wd->wd_pos;
	st->st_name = wd->wd_text;
	st->st_group = group;
	TAILQ_INSERT_TAIL(list, st, st_entry);
}

void
conf_sandbox_for(struct parse *ps, struct conf_pos pos, bool group)
{
	const struct conf_word	*wd;

	if (stmt_permitted(&ps->ps_block, pos, "for"))
		TAILQ_FOREACH(wd, &ps->ps_words, wd_entry)
			conf_sandbox_starter(ps, wd, group);
	conf_lists_reset(ps);
}

void
conf_sandbox_end(struct parse *ps)
{
	const struct conf_sandbox	*sb = ps->ps_sandbox;
	const char			*why;

	ps->ps_now = &ps->ps_global;
	stmt_needed(&ps->ps_block, sb->sb_pos, sb->sb_name);
	if (sb->sb_program != NULL &&
	    (why = value_path_error(sb->sb_program)) != NULL)
		conf_error(ps, sb->sb_pos, "custom \"%s\": %s",
		    sb->sb_program, why);
	if (sb->sb_kind == SANDBOX_CUSTOM && !sb->sb_ungated)
		conf_error(ps, sb->sb_pos, "custom sandbox \"%s\" has no "
		    "\"ungated\": its policy holds nothing that the program "
		    "does, and the block must say so", sb->sb_name);
	if (sb->sb_kind == SANDBOX_KUBERNETES)
		conf_pod_check(ps);
}

void
conf_session_begin(struct parse *ps, struct conf_pos pos, const char *name)
{
	struct conf_sessions		*list = &ps->ps_conf->cf_sessions;
	const struct conf_session	*prior;
	struct conf_session		*ss, *last;

	prior = conf_session_find(ps->ps_conf, name);
	last = TAILQ_LAST(list, conf_sessions);
	ss = conf_alloc(ps->ps_conf, sizeof(*ss));
	ss->ss_pos = pos;
	ss->ss_index = last == NULL ? 0 : last->ss_index + 1;
	ss->ss_name = name;
	TAILQ_INIT(&ss->ss_listen);
	TAILQ_INIT(&ss->ss_dns);
	TAILQ_INSERT_TAIL(list, ss, ss_entry);

	ps->ps_session = ss;
	ps->ps_block.sx_table = session_table;
	ps->ps_block.sx_object = ss;
	ps->ps_block.sx_set = &ss->ss_set;
	ps->ps_block.sx_kind = 1;
	ps->ps_block.sx_noun = "session";
	conf_block_begin(ps, pos, name, ss->ss_index,
	    prior == NULL ? NULL : &prior->ss_pos);
}

static void
conf_session_endpoint(struct parse *ps, struct conf_endpoints *list,
    struct conf_pos pos, const char *addr, int64_t port, bool transparent,
    bool optional)
{
	struct conf_endpoint	*ep;

	ep = conf_alloc(ps->ps_conf, sizeof(*ep));
	ep->ep_pos = pos;
	ep->ep_port = (uint16_t)port;
	ep->ep_transparent = transparent;
	ep->ep_optional = optional;
	if (value_addr(ps, pos, addr, &ep->ep_addr) && port != VALUE_BAD)
		TAILQ_INSERT_TAIL(list, ep, ep_entry);
}

void
conf_session_listen(struct parse *ps, struct conf_pos pos, const char *addr,
    int64_t port, bool transparent, bool optional)
{
	stmt_permitted(&ps->ps_block, pos, "listen");
	conf_session_endpoint(ps, &ps->ps_session->ss_listen, pos, addr, port,
	    transparent, optional);
}

void
conf_session_dns(struct parse *ps, struct conf_pos pos, const char *addr,
    int64_t port, bool optional)
{
	stmt_permitted(&ps->ps_block, pos, "dns");
	conf_session_endpoint(ps, &ps->ps_session->ss_dns, pos, addr, port,
	    false, optional);
}

void
conf_session_policy(struct parse *ps, struct conf_pos pos, const char *name)
{
	stmt_text(&ps->ps_block, pos, "policy", name);
	ps->ps_session->ss_policy_pos = pos;
}

void
conf_session_ca(struct parse *ps, struct conf_pos pos, const char *cert,
    const char *key)
{
	const char	*why;

	if (!stmt_once(&ps->ps_block, pos, "ca certificate"))
		return;
	if ((why = value_path_error(cert)) != NULL)
		conf_error(ps, pos, "ca certificate \"%s\": %s", cert, why);
	if ((why = value_path_error(key)) != NULL)
		conf_error(ps, pos, "key \"%s\": %s", key, why);
	ps->ps_session->ss_ca_cert = cert;
	ps->ps_session->ss_ca_key = key;
}

void
conf_session_end(struct parse *ps)
{
	ps->ps_now = &ps->ps_global;
	stmt_needed(&ps->ps_block, ps->ps_session->ss_pos,
	    ps->ps_session->ss_name);
}
