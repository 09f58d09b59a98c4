/* SPDX-License-Identifier: ISC */

/*
 * What the lexer, the grammar and the builders of the configuration share.
 * Private to this folder: who links it includes conf.h alone.
 */

#ifndef CONFPARSE_H
#define CONFPARSE_H

#include <sha2.h>

#include "conf.h"

/*
 * The semantic value of every token and nonterminal.  A number keeps its
 * text, and whatever begins a nonterminal lends it its position.
 */
struct lex_value {
	const char	*text;
	int64_t		 number;	/* ms, bytes, or first of a range */
	int64_t		 last;		/* of a range */
	bool		 quoted;
	struct conf_pos	 pos;
};
#define YYSTYPE struct lex_value
#define YYSTYPE_IS_DECLARED 1

struct parse;

/* A file, or a buffer, in the stack of those being read. */
struct lex_source {
	struct lex_source	*sr_outer;
	const char		*sr_name;
	char			*sr_buf;
	size_t			 sr_len;
	size_t			 sr_next;	/* offset of what comes next */
	unsigned int		 sr_line;
	dev_t			 sr_dev;	/* both 0 for a buffer */
	ino_t			 sr_ino;
	bool			 sr_ended;	/* final newline was given */
};

struct lex_macro {
	TAILQ_ENTRY(lex_macro)	 mc_entry;
	const char		*mc_name;
	struct conf_words	 mc_words;
	bool			 mc_list;
};
TAILQ_HEAD(lex_macros, lex_macro);

/* How the words that follow are read. */
enum lex_mode {
	LEX_NORMAL,
	LEX_RAW_NEXT,	/* the next word, or list, is just text */
	LEX_RAW_LIST,	/* up to the brace that closes it */
};

struct lexer {
	struct lex_source	*lx_source;	/* innermost */
	unsigned int		 lx_nfiles;
	unsigned int		 lx_depth;	/* open braces */
	bool			 lx_opener;	/* next brace opens a block */
	bool			 lx_block;	/* outermost brace is a block */
	int			 lx_keyword;	/* the one that began it */
	struct conf_pos		 lx_open;	/* of the outermost brace */
	enum lex_mode		 lx_mode;
	const struct conf_word	*lx_replay;	/* rest of a macro */
	bool			 lx_replay_list; /* owes a closing brace */
	struct lex_macros	 lx_macros;
	int			 lx_token;	/* last one, for messages */
	struct lex_value	 lx_value;
	const char		*lx_before;	/* text of the one before */
	struct conf_pos		 lx_error;	/* last syntax error */
	bool			 lx_lost;	/* skipped a block or file */
};

/* An object whose statements are being read. */
struct stmt_ctx {
	struct parse		*sx_parse;
	const struct option	*sx_table;
	void			*sx_object;
	uint64_t		*sx_set;
	struct conf_pos		 sx_pos[64];	/* of each that is set */
	uint32_t		 sx_kind;	/* all bits must be permitted */
	const char		*sx_noun;
};

struct parse {
	struct config		*ps_conf;
	struct conf_errors	*ps_errs;
	struct lexer		 ps_lex;
	SHA2_CTX		 ps_sha256;	/* of what was read */
	struct stmt_ctx		 ps_global;
	struct stmt_ctx		 ps_block;	/* object of the open block */
	struct stmt_ctx		*ps_now;	/* one of these two */
	struct stmt_ctx		 ps_option;	/* rule or control socket */
	struct conf_control	*ps_control;
	uint64_t		 ps_control_set;
	struct conf_words	 ps_words;	/* list being read */
	struct conf_pairs	 ps_pairs;
	struct conf_policy	*ps_policy;
	bool			 ps_show;	/* in `capture show' */
	bool			 ps_nocase;	/* paths being read */
	struct conf_rule	*ps_rule;
	struct conf_decider	*ps_decider;
	struct conf_cluster	*ps_cluster;
	struct conf_sandbox	*ps_sandbox;
	struct conf_session	*ps_session;
};

extern const struct option	 global_table[];
extern const struct option	 cluster_table[];
extern const struct option	 sandbox_table[];
extern const struct option	 session_table[];


/* parse.y */
int	 yyparse(struct parse *);

/* lex.c */
int	 yylex(struct lex_value *, struct parse *);
void	 yyerror(struct parse *, const char *);
void	 lex_resync(struct parse *);
void	 lex_macro_set(struct parse *, struct conf_pos, const char *name,
	    bool list);

/* lex_source.c */
bool	 lex_open(struct parse *, const char *path);
void	 lex_open_buffer(struct parse *, const char *, const void *, size_t);
void	 lex_include(struct parse *, struct conf_pos, const char *path);
void	 lex_pop(struct parse *);

/* lex_keyword.c */
int	 lex_keyword(int block, int before, const char *);
const char *lex_nearest(const char *);

/* conf.c */
void	*conf_alloc(struct config *, size_t);
char	*conf_strndup(struct config *, const char *, size_t);
void	 conf_error(struct parse *, struct conf_pos, const char *, ...)
	    __attribute__((__format__(printf, 3, 4)));
void	 conf_word_add(struct parse *, struct conf_pos, const char *text,
	    bool quoted);
void	 conf_port_add(struct parse *, struct conf_pos, int64_t first,
	    int64_t last);
const char *conf_noun(struct parse *, const char *, const char *);
void	 conf_pair_add(struct parse *, struct conf_pos, const char *key,
	    const char *value);
void	 conf_lists_reset(struct parse *);

/* conf_stmt.c: each setter reports what is wrong and then stores nothing */
bool	 stmt_permitted(struct stmt_ctx *, struct conf_pos, const char *name);
bool	 stmt_once(struct stmt_ctx *, struct conf_pos, const char *name);
const struct option *stmt_row(struct stmt_ctx *, struct conf_pos,
	    const char *name);
void	 stmt_text(struct stmt_ctx *, struct conf_pos, const char *name,
	    const char *value);
void	 stmt_number(struct stmt_ctx *, struct conf_pos, const char *name,
	    int64_t value);
const struct option *stmt_pair_row(struct stmt_ctx *, struct conf_pos,
	    const char *what, const char *name);
void	 stmt_off(struct stmt_ctx *, struct conf_pos, const char *name,
	    const char *value);
void	 stmt_flag(struct stmt_ctx *, struct conf_pos, const char *name);
void	 stmt_words(struct stmt_ctx *, struct conf_pos, const char *name,
	    struct conf_words *);
void	 stmt_variables(struct stmt_ctx *, struct conf_pos, const char *name,
	    struct conf_pairs *);
void	 stmt_pairs(struct stmt_ctx *, struct conf_pos, const char *name);
void	 stmt_names(struct stmt_ctx *, struct conf_pos, const char *name);
void	 stmt_pairs_check(struct parse *, const char *name, bool variables);
void	 stmt_needed(struct stmt_ctx *, struct conf_pos, const char *object);
bool	 stmt_isset(const struct stmt_ctx *, const char *name);
struct conf_pos stmt_pos(const struct stmt_ctx *, const char *name);
uint64_t stmt_bit(const struct option *, const char *name);
const struct option *stmt_find(const struct option *, const char *name);

/* conf_value.c: NULL, or what is wrong with the value */
const char *value_path_error(const char *);
const char *value_socket_error(const char *);
const char *value_url_error(const char *, bool);
const char *value_clear_error(const char *, bool);
const char *value_method_error(const char *);
const char *value_urlpath_error(const char *);
const char *value_token_error(const char *);
const char *value_label_error(const char *);
const char *value_lower_error(const char *);
const char *value_subdomain_error(const char *);
const char *value_image_error(const char *);
const char *value_quantity_error(const char *);
const char *value_qualified_error(const char *);
const char *value_labelled_error(const char *);
const char *value_ref_error(const char *);
const char *value_taint_error(const char *);
const char *value_hostname_error(const char *);
const char *value_header_error(const char *);
/* The functions from here report errors themselves. */
#define VALUE_BAD	-1
int64_t	 value_unitless(struct parse *, struct conf_pos, int64_t);
int64_t	 value_port(struct parse *, struct conf_pos, int64_t);
bool	 value_addr(struct parse *, struct conf_pos, const char *,
	    struct addr *);
struct conf_net *value_net(struct parse *, struct conf_pos, const char *);
/* A number the way the file writes it; buf is VALUE_STRLEN bytes. */
#define VALUE_STRLEN	24
const char *value_format(enum option_type, uint64_t, char *buf);

/* conf_global.c */
void	 conf_global_uids(struct parse *, struct conf_pos, int64_t, int64_t);
void	 conf_global_hosts(struct parse *);
void	 conf_global_resolver(struct parse *, struct conf_pos, const char *addr,
	    int64_t port);
void	 conf_global_address_deny(struct parse *);
void	 conf_environment(struct parse *, struct conf_variables *,
	    struct conf_pos, const char *action);
void	 conf_global_limit(struct parse *, struct conf_pos, const char *name,
	    int64_t);
void	 conf_global_timeout(struct parse *, struct conf_pos, const char *name,
	    int64_t);
void	 conf_control_begin(struct parse *, struct conf_pos, const char *path);
void	 conf_control_mode(struct parse *, struct conf_pos, int64_t);
void	 conf_control_end(struct parse *, struct conf_pos);

/* conf_decider.c, conf_block.c */
void	 conf_block_begin(struct parse *, struct conf_pos, const char *name,
	    unsigned int index, const struct conf_pos *prior);
void	 conf_decider_begin(struct parse *, struct conf_pos, const char *name,
	    const char *kind);
void	 conf_decider_header(struct parse *, struct conf_pos, const char *,
	    const char *);
void	 conf_decider_end(struct parse *);
void	 conf_cluster_begin(struct parse *, struct conf_pos, const char *name);
void	 conf_cluster_end(struct parse *);
void	 conf_sandbox_begin(struct parse *, struct conf_pos, const char *name,
	    unsigned int kind, const char *program);
void	 conf_sandbox_policy(struct parse *, struct conf_pos, const char *);
void	 conf_sandbox_expose(struct parse *, struct conf_pos, const char *,
	    bool write);
void	 conf_sandbox_below(struct parse *, struct conf_pos, const char *,
	    bool);
void	 conf_sandbox_mount(struct parse *, struct conf_pos, const char *source,
	    const char *target, bool write);
void	 conf_sandbox_cluster(struct parse *, struct conf_pos, const char *);
void	 conf_sandbox_user(struct parse *, struct conf_pos, const char *,
	    bool quoted);
void	 conf_sandbox_for(struct parse *, struct conf_pos, bool group);
void	 conf_sandbox_limit(struct parse *, struct conf_pos, const char *name,
	    const char *text, int64_t, bool time);
void	 conf_sandbox_end(struct parse *);
void	 conf_session_begin(struct parse *, struct conf_pos, const char *name);
void	 conf_session_listen(struct parse *, struct conf_pos, const char *addr,
	    int64_t port, bool transparent, bool optional);
void	 conf_session_dns(struct parse *, struct conf_pos, const char *addr,
	    int64_t port, bool optional);
void	 conf_session_policy(struct parse *, struct conf_pos, const char *);
void	 conf_session_ca(struct parse *, struct conf_pos, const char *cert,
	    const char *key);
void	 conf_session_end(struct parse *);

/* conf_policy.c */
void	 conf_policy_begin(struct parse *, struct conf_pos, const char *name);
void	 conf_policy_default(struct parse *, struct conf_pos, bool allow);
void	 conf_policy_pause(struct parse *, struct conf_pos, int64_t denials,
	    int64_t window);
void	 conf_policy_redact(struct parse *, struct conf_pos,
	    enum redact_kind, const char *);
void	 conf_policy_end(struct parse *);
void	 conf_rule_begin(struct parse *, struct conf_pos, enum rule_kind,
	    bool tcp);
void	 conf_rule_deciders(struct parse *);
void	 conf_rule_end(struct parse *);

/* conf_pod.c */
void	 conf_pod_begin(struct conf_sandbox *);
void	 conf_pod_check(struct parse *);

/* conf_cond.c */
void	 conf_cond(struct parse *, struct conf_pos, const char *name);
void	 conf_cond_take(struct parse *, unsigned int kind);
void	 conf_cond_print(const struct rule *, unsigned int kind, FILE *);

/* printconf.c */
void	 print_quoted(FILE *, const char *);
void	 print_addr(FILE *, const struct addr *);
void	 print_stmts(FILE *, const struct option *, uint64_t, const void *,
	    const char *, const char *);
void	 print_hosts(FILE *, const struct conf_hosts *);
void	 print_address_deny(FILE *, const struct conf_nets *);
void	 print_policy(FILE *, const struct conf_policy *);

/* conf_check.c */
void	 conf_check(struct parse *);

#endif /* CONFPARSE_H */
