/* SPDX-License-Identifier: ISC */

/*
 * The configuration as whoever has read egressd.conf(5) holds it: the parent,
 * and egressctl for its own ends.  Every other process gets a slice of it,
 * encoded field by field.
 *
 * A configuration is made whole by conf_parse() and read-only from then on;
 * all its memory, names and lists included, belongs to it and goes with
 * conf_free().  A text that was not given is NULL, a number that was not
 * given has its default unless its comment says otherwise.  Times are in
 * milliseconds, sizes in bytes, ports in host order.  Lists keep the order of
 * the file, and an object's index is its place in its list, from 0.
 */

#ifndef CONF_H
#define CONF_H

#include <sys/types.h>
#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "addr.h"
#include "decider.h"
#include "log.h"
#include "policy.h"

#define DECIDER_HEADERS_MAX	16	/* besides those that we send */
#define CONF_NAME_MAX		64	/* bytes in the name of an object */
#define CONF_ERRORS_MAX		32	/* messages kept from one run */

/* Where something was written; p_file lives as long as the configuration. */
struct conf_pos {
	const char	*p_file;
	unsigned int	 p_line;
};

/* Start from zero; the messages are "file:line: text" without newline. */
struct conf_errors {
	char		*ce_msg[CONF_ERRORS_MAX];
	size_t		 ce_count;
	size_t		 ce_dropped;	/* found, but beyond the maximum */
};

struct conf_word {
	TAILQ_ENTRY(conf_word)	 wd_entry;
	struct conf_pos		 wd_pos;
	const char		*wd_text;
	const char		*wd_value;	/* parser: of a pair */
	int64_t			 wd_first;	/* parser: ports */
	int64_t			 wd_last;
	bool			 wd_quoted;	/* parser */
};
TAILQ_HEAD(conf_words, conf_word);

struct conf_pair {
	TAILQ_ENTRY(conf_pair)	 pr_entry;
	struct conf_pos		 pr_pos;
	const char		*pr_key;
	const char		*pr_value;
};
TAILQ_HEAD(conf_pairs, conf_pair);

struct conf_net {
	TAILQ_ENTRY(conf_net)	 nt_entry;
	struct conf_pos		 nt_pos;
	struct prefix		 nt_prefix;
};
TAILQ_HEAD(conf_nets, conf_net);

/* An address with a port: a resolver, or a socket to listen on. */
struct conf_endpoint {
	TAILQ_ENTRY(conf_endpoint) ep_entry;
	struct conf_pos		 ep_pos;
	struct addr		 ep_addr;
	uint16_t		 ep_port;
	bool			 ep_transparent;
	bool			 ep_optional;	/* if the machine has it */
};
TAILQ_HEAD(conf_endpoints, conf_endpoint);

/* hosts { name address }: the name is canonical and may occur repeatedly. */
struct conf_host {
	TAILQ_ENTRY(conf_host)	 ho_entry;
	struct conf_pos		 ho_pos;
	const char		*ho_name;
	struct addr		 ho_addr;
};
TAILQ_HEAD(conf_hosts, conf_host);

struct conf_control {
	struct conf_pos	 ct_pos;
	const char	*ct_path;
	const char	*ct_owner;	/* names or decimal ids */
	const char	*ct_group;
	mode_t		 ct_mode;	/* default 0660 */
	bool		 ct_own;	/* clients are in our container */
};

enum conf_limit {
	CONF_LIMIT_SESSIONS,	/* in all */
	CONF_LIMIT_CLIENTS,	/* of the control sockets, in all */
	CONF_LIMIT_CONNECTIONS,	/* per session */
	CONF_LIMIT_PENDING,	/* questions waiting for deciders, in all */
	CONF_NLIMITS
};
#define CONF_SESSIONS_MAX	4096	/* that a limit may permit */

enum conf_timeout {
	CONF_TIMEOUT_DIAL,	/* resolve and connect */
	CONF_TIMEOUT_HANDSHAKE,	/* TLS, either side */
	CONF_TIMEOUT_HEAD,	/* a request's head, from its first byte */
	CONF_TIMEOUT_RESPONSE,	/* the origin's head, after the request */
	CONF_TIMEOUT_IDLE,	/* a kept connection between requests */
	CONF_TIMEOUT_TUNNEL,	/* silence in an upgrade, tcp or pass flow */
	CONF_TIMEOUT_TOTAL,	/* a request or flow as a whole; 0: none */
	CONF_NTIMEOUTS
};

struct conf_decider {
	TAILQ_ENTRY(conf_decider) dc_entry;
	struct conf_pos		 dc_pos;
	unsigned int		 dc_index;
	const char		*dc_name;
	enum decider_kind	 dc_kind;
	uint64_t		 dc_set;	/* statements given: parser */
	struct decider_options	 dc_options;
	struct conf_pairs	 dc_headers;
	struct conf_words	 dc_command;	/* exec: program, arguments */
};
TAILQ_HEAD(conf_deciders, conf_decider);

/* What was said of a rule, beside the rule itself. */
struct conf_rule {
	TAILQ_ENTRY(conf_rule)	 cr_entry;
	struct conf_pos		 cr_pos;
	uint64_t		 cr_set;	/* options given: parser */
	struct conf_words	 cr_deciders;	/* where they are named */
	struct rule		*cr_rule;
};
TAILQ_HEAD(conf_rules, conf_rule);

struct conf_redact {
	TAILQ_ENTRY(conf_redact) rd_entry;
	struct conf_pos		 rd_pos;
	enum redact_kind	 rd_kind;
	bool			 rd_show;	/* else it is hidden */
	const char		*rd_name;	/* a header's is lower case */
};
TAILQ_HEAD(conf_redacts, conf_redact);

/* environment pass, environment drop: the first that matches decides. */
struct conf_variable {
	TAILQ_ENTRY(conf_variable) va_entry;
	bool			 va_pass;
	const char		*va_pattern;
};
TAILQ_HEAD(conf_variables, conf_variable);

struct conf_policy {
	TAILQ_ENTRY(conf_policy) cp_entry;
	struct conf_pos		 cp_pos;
	unsigned int		 cp_index;
	const char		*cp_name;
	uint64_t		 cp_set;	/* statements given: parser */
	struct policy		*cp_policy;	/* not made ready */
	struct conf_rules	 cp_rules;
	struct conf_redacts	 cp_redact;
	struct conf_variables	 cp_environment;
};
TAILQ_HEAD(conf_policies, conf_policy);

/* No statement at all means the order that egressd.conf(5) gives. */
struct conf_cluster {
	TAILQ_ENTRY(conf_cluster) cl_entry;
	struct conf_pos		 cl_pos;
	unsigned int		 cl_index;
	const char		*cl_name;
	uint64_t		 cl_set;	/* statements given: parser */
	bool			 cl_in_cluster;
	const char		*cl_kubeconfig;
	const char		*cl_context;
	const char		*cl_server;
	const char		*cl_ca_file;
	const char		*cl_token_file;
	const char		*cl_cert_file;
	const char		*cl_key_file;
	const char		*cl_user;
	const char		*cl_password_file;
	struct conf_words	 cl_exec;
	const char		*cl_namespace;
	const char		*cl_tls_name;
	const char		*cl_proxy;
	bool			 cl_insecure;
};
TAILQ_HEAD(conf_clusters, conf_cluster);

/* expose, mount below: source only; mount: source on target. */
struct conf_mount {
	TAILQ_ENTRY(conf_mount)	 mn_entry;
	struct conf_pos		 mn_pos;
	const char		*mn_source;
	const char		*mn_target;
	bool			 mn_write;
};
TAILQ_HEAD(conf_mounts, conf_mount);

/* for user "name", for group "name": who may start a sandbox. */
struct conf_starter {
	TAILQ_ENTRY(conf_starter) st_entry;
	struct conf_pos		 st_pos;
	const char		*st_name;	/* or decimal id */
	bool			 st_group;
};
TAILQ_HEAD(conf_starters, conf_starter);

/* Of each process, but for processes; 0: none. */
struct conf_sandbox_limits {
	uint64_t		 sl_memory;
	uint32_t		 sl_processes;	/* of the sandbox together */
	uint64_t		 sl_file;
	uint64_t		 sl_cpu;	/* milliseconds */
};

/* What a pod is made of: sandboxes of the kind kubernetes. */
struct conf_pod {
	const char		*pd_id;		/* NULL: the session's */
	const char		*pd_image;
	const char		*pd_box_image;	/* NULL: of our version */
	uint32_t		 pd_pull_policy; /* always, if-not-present... */
	struct conf_words	 pd_pull_secrets;
	uint64_t		 pd_size;	/* of the workspace; 0: any */
	const char		*pd_claim;	/* instead of an emptyDir */
	const char		*pd_git;
	const char		*pd_git_ref;
	uint64_t		 pd_git_timeout;	/* default 5m */
	struct conf_pairs	 pd_labels;
	struct conf_pairs	 pd_annotations;
	struct conf_pairs	 pd_requests;
	struct conf_pairs	 pd_limits;
	struct conf_pairs	 pd_node_selector;
	struct conf_words	 pd_tolerations; /* as taints are written */
	const char		*pd_account;
	bool			 pd_account_token;
	const char		*pd_runtime_class;
	uint32_t		 pd_run_as_user;	/* CONF_UNSAID or id */
	uint32_t		 pd_run_as_group;
	uint32_t		 pd_fs_group;
	bool			 pd_read_only_root;
	const char		*pd_merge_file;
	uint64_t		 pd_heartbeat;	/* default 60s; 0: off */
	uint64_t		 pd_ready_timeout;	/* default 120s */
	uint32_t		 pd_on_stale;	/* error, recreate */
	bool			 pd_delete_on_stop;
	bool			 pd_delete_said; /* else: is there an id? */
	bool			 pd_pull_said;
	struct conf_pairs	 pd_gate_requests;
	struct conf_pairs	 pd_gate_limits;
	struct conf_words	 pd_gate_resolvers; /* empty: ours */
	bool			 pd_overlay;	/* of the image's bundles */
	bool			 pd_network_policy; /* default yes */
};
#define CONF_UNSAID	UINT32_MAX
#define CONF_IMAGE	"debian:bookworm-slim"
#define CONF_POD_CWD	"/workspace"

struct conf_sandbox {
	TAILQ_ENTRY(conf_sandbox) sb_entry;
	struct conf_pos		 sb_pos;
	unsigned int		 sb_index;
	const char		*sb_name;
	enum sandbox_kind	 sb_kind;
	uint64_t		 sb_set;	/* statements given: parser */
	const char		*sb_program;	/* custom */
	struct conf_pos		 sb_policy_pos;
	const char		*sb_policy_name;
	const struct conf_policy *sb_policy;
	const char		*sb_user;	/* NULL: not given, or caller */
	bool			 sb_user_caller;
	struct conf_starters	 sb_for;	/* empty: whoever may connect */
	const char		*sb_cwd;
	bool			 sb_forward;
	struct conf_sandbox_limits sb_limits;
	struct conf_mounts	 sb_expose;	/* local */
	struct conf_mounts	 sb_mounts;	/* virtual, custom */
	struct conf_mounts	 sb_below;	/* virtual: of clients */
	uint64_t		 sb_size;	/* virtual: default 256M */
	bool			 sb_ungated;	/* custom: always */
	struct conf_pairs	 sb_environment;
	uint64_t		 sb_deadline;	/* default 8h */
	struct conf_pos		 sb_cluster_pos; /* from here: kubernetes */
	const char		*sb_cluster_name;
	const struct conf_cluster *sb_cluster;	/* NULL: found by itself */
	const char		*sb_namespace;
	struct conf_pod		 sb_pod;
};
TAILQ_HEAD(conf_sandboxes, conf_sandbox);

/* A fixed session. */
struct conf_session {
	TAILQ_ENTRY(conf_session) ss_entry;
	struct conf_pos		 ss_pos;
	unsigned int		 ss_index;
	const char		*ss_name;
	uint64_t		 ss_set;	/* statements given: parser */
	struct conf_pos		 ss_policy_pos;
	const char		*ss_policy_name;
	const struct conf_policy *ss_policy;
	struct conf_endpoints	 ss_listen;
	struct conf_endpoints	 ss_dns;	/* UDP and TCP */
	uint32_t		 ss_refused_group;	/* of NFLOG; 0: none */
	const char		*ss_trust_directory;
	const char		*ss_ca_cert;	/* both or none */
	const char		*ss_ca_key;
	const char		*ss_upstream_trust; /* NULL: global one */
};
TAILQ_HEAD(conf_sessions, conf_session);

struct conf_chunk;

struct config {
	struct conf_chunk	*cf_chunks;	/* all memory below */
	uint64_t		 cf_set;	/* statements given: parser */
	char			 cf_sha256[64 + 1];	/* of its files */

	enum log_level		 cf_log;	/* default info */
	uid_t			 cf_uid_first;	/* both 0: named users */
	uid_t			 cf_uid_last;
	struct conf_control	*cf_control;	/* NULL: not given */
	struct conf_control	*cf_control_ro;	/* NULL: none */
	const char		*cf_audit_file;	/* NULL: none */
	uint64_t		 cf_spool;	/* its bytes; 0: it is kept */
	enum policy_full	 cf_audit_full;
	bool			 cf_audit_stdout;
	struct conf_hosts	 cf_hosts;
	struct conf_endpoints	 cf_resolvers;	/* empty: the system's */
	uint32_t		 cf_dial_mark;	/* of the dialer's sockets; 0 */
	struct conf_pos		 cf_upstream_trust_pos;
	const char		*cf_upstream_trust; /* NULL: the system's */
	struct conf_nets	 cf_address_deny;
	struct conf_variables	 cf_environment; /* after a policy's own */
	unsigned int		 cf_limit[CONF_NLIMITS];
	uint64_t		 cf_timeout[CONF_NTIMEOUTS];

	struct conf_deciders	 cf_deciders;
	struct conf_policies	 cf_policies;
	struct conf_clusters	 cf_clusters;
	struct conf_sandboxes	 cf_sandboxes;
	const char		*cf_default_sandbox_name;
	const struct conf_sandbox *cf_default_sandbox; /* NULL: not given */
	struct conf_sessions	 cf_sessions;
};

/*
 * NULL on any error, which errs then tells; nothing is printed and no file
 * but the configuration and its includes is opened.
 */
struct config	*conf_parse(const char *path, struct conf_errors *errs);
/* As conf_parse(), from memory, where `include' is refused. */
struct config	*conf_parse_buffer(const char *name, const void *buf,
		    size_t len, struct conf_errors *errs);
void		 conf_free(struct config *);
/* For who checks more of a configuration than can be told from its text. */
void		 conf_errors_add(struct conf_errors *, struct conf_pos,
		    const char *, ...)
		    __attribute__((__format__(printf, 3, 4)));
void		 conf_errors_free(struct conf_errors *);

/* Prints what parses to the same; 0, or -1 if writing failed. */
int		 conf_print(const struct config *, FILE *);
/*
 * Prints the configuration of the gate in a pod, with one of the policies and
 * the name servers that the pod is to ask.
 */
struct conf_server {
	struct addr	 sv_addr;
	uint16_t	 sv_port;
};
int		 conf_print_pod(const struct config *,
		    const struct conf_policy *, const struct conf_server *,
		    size_t, FILE *);
/* Whether a rule of it opens what is not on the Internet. */
bool		 conf_policy_is_private(const struct conf_policy *);
/* One rule, in one line without its newline. */
void		 conf_print_rule(const struct conf_rule *, FILE *);

const struct conf_policy  *conf_policy_find(const struct config *,
			    const char *name);
void			   conf_deciders_warn(const struct config *);
const struct conf_decider *conf_decider_find(const struct config *,
			    const char *name);
const struct conf_cluster *conf_cluster_find(const struct config *,
			    const char *name);
const struct conf_sandbox *conf_sandbox_find(const struct config *,
			    const char *name);
const struct conf_session *conf_session_find(const struct config *,
			    const char *name);

/* What is wrong with a value from elsewhere, as if the file had said it. */
const char	*conf_value_error(enum option_type, const char *);

/*
 * Calls the visitor for each file that holds a secret, and for each that could
 * with NULL; 1 as soon as the visitor returns 1, else 0.
 */
typedef int	 conf_visitor(const struct conf_pos *, const char *path,
		    void *);
int		 conf_secrets(const struct config *, conf_visitor *, void *);

#endif /* CONF_H */
