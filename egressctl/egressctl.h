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
 * Private header of egressctl, the operator's tool.  It runs with the
 * operator's own rights and trusts its command line.  It believes the
 * daemon's answers, but not the strings inside them: host names, paths
 * and reasons were chosen by whoever lives in the sandbox.
 */

#ifndef EGRESSCTL_H
#define EGRESSCTL_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "hostname.h"
#include "msgtab.h"
#include "urlpath.h"

#ifndef EGRESSD_VERSION
#error "EGRESSD_VERSION must be given on the compiler's command line"
#endif

#define SOCKET_VARIABLE		"EGRESSD_SOCKET"

#define REQUEST_MAX		65536		/* bytes before the newline */
#define ANSWER_MAX		1048576		/* bytes, newline included */
#define ANSWER_DEPTH_MAX	32
#define ANSWER_TIMEOUT_MS	10000
#define FOREVER			(-1)

#define EXIT_REFUSED		1		/* the daemon said no */
#define EXIT_USAGE		2
#define EXIT_NO_DAEMON		3		/* could not talk to it */

/* Of "test", which talks to nobody. */
#define EXIT_DENIED		1
#define EXIT_DECIDER		3		/* a decider would be asked */

/* Of "replay", which reads files, and of "attack". */
#define EXIT_CHANGED		1
#define EXIT_LEAKED		1

/* Of "verify", which reads files. */
#define EXIT_BROKEN		1
#define EXIT_UNREADABLE		3

/* Of "run", for what is not the command's; as env(1) has it. */
#define EXIT_NO_RUN		125
#define EXIT_NOT_FOUND		127

/*
 * The kinds of records, in one place: the command line completes and
 * checks them from here, the text output takes its words and colours from
 * here.
 */
#define RECORD_KINDS(X)							\
	X("request_opened",	"opened",	COLOUR_DIM)		\
	X("request_allowed",	"allowed",	COLOUR_GREEN)		\
	X("request_denied",	"denied",	COLOUR_RED)		\
	X("request_closed",	"closed",	COLOUR_PLAIN)		\
	X("request_failed",	"failed",	COLOUR_RED)		\
	X("decider_failure",	"decider",	COLOUR_YELLOW)		\
	X("session_started",	"started",	COLOUR_CYAN)		\
	X("session_ended",	"ended",	COLOUR_CYAN)		\
	X("connection_refused",	"refused",	COLOUR_RED)		\
	X("name_asked",		"asked",	COLOUR_DIM)		\
	X("gap",		"gap",		COLOUR_YELLOW)		\
	X("file_opened",	"file",		COLOUR_DIM)

#define RECORD_KIND_COUNT_ONE(name, word, colour)	+ 1
#define RECORD_KIND_COUNT	(0 RECORD_KINDS(RECORD_KIND_COUNT_ONE))

struct invocation;

/*
 * A command either talks to the daemon through command_ask or
 * command_follow, or brings its own co_run and then nothing connects.
 */
struct command {
	const char	 *co_synopsis;
	const char	 *co_help;
	const char	 *co_other_name;	/* that people look for */
	int		(*co_run)(const struct invocation *);
	const char	 *co_op;	/* of the request, egressd.sock(5) */
	void		(*co_ask)(const struct invocation *, cJSON *);
	void		(*co_show)(const cJSON *);
	int		  co_slow;	/* the answer may take any time */
	/* What getopt(3) takes after its name, besides the common ones. */
	const char	 *co_options;
	void		(*co_option)(struct invocation *, int, const char *);
	/* Takes what follows its name on the command line, options and all. */
	void		(*co_take)(struct invocation *, int, char *[]);
};

/* How answers look; `line` is what arrived, `json` the same, parsed. */
struct output {
	void	(*ou_answer)(const struct command *, const char *line,
		    const cJSON *json);
	void	(*ou_refusal)(const struct command *, const char *line,
		    const cJSON *json);
	void	(*ou_record)(const char *line, const cJSON *json);
};

struct invocation {
	const struct command	*in_command;
	const struct output	*in_output;
	const char		*in_socket;	/* path_socket by default */
	const char		*in_conf;	/* path_conf by default */
	const char		*in_level;
	const char		*in_session;
	const char		*in_kinds[RECORD_KIND_COUNT];
	size_t			 in_nkinds;
	const char		*in_policy;
	const char		*in_decider;
	const char		*in_method;
	const char		*in_url;
	const char		*in_question;	/* ID of a pending one */
	const char		*in_decision;
	const char		*in_reason;
	const char		*in_host;
	const char		*in_role;
	const char		*in_text;
	const char		*in_evil;	/* must not be reached */
	const char		**in_words;	/* files, pairs or cases */
	size_t			 in_nwords;
	int			 in_remember;
	int			 in_verbose;
	int			 in_list;
	int			 in_outside;
};

struct client {
	int		 cl_fd;
	int		 cl_own;	/* of a daemon that we have started */
	const char	*cl_path;
	char		*cl_buf;
	size_t		 cl_size;	/* allocated */
	size_t		 cl_len;	/* received */
	size_t		 cl_used;	/* given out as lines */
};

enum client_result {
	CLIENT_LINE,
	CLIENT_HUNG_UP,		/* the daemon closed between two lines */
	CLIENT_NO_READER,	/* nobody reads our output any more */
	CLIENT_FAILED		/* already explained on stderr */
};

/* Where a string will stand, hence what must not appear in it. */
enum visible {
	VISIBLE_TEXT,		/* by itself, or in a column of a table */
	VISIBLE_QUOTED,		/* between double quotes */
	VISIBLE_WORD,		/* among other words: no space of any sort */
	VISIBLE_WHOLE		/* a word of which nothing is cut off */
};

/* A part of a line, not terminated. */
struct piece {
	const char	*pc_text;
	size_t		 pc_len;
};

#define SOURCE_LINE_MAX	(256 * 1024)	/* of a record, with its newline */

enum next {
	NEXT_LINE,
	NEXT_END,
	NEXT_TORN,		/* the file ends without a newline */
	NEXT_TOO_LONG,
	NEXT_FAILED		/* errno says why */
};

struct source {
	const char	*so_name;
	int		 so_fd;
	size_t		 so_at;		/* of the next line */
	size_t		 so_len;
	char		 so_buf[SOURCE_LINE_MAX];
};

#define COLUMNS_MAX	8

/* A member of the row, or the row, and who puts it if not json_put. */
struct column {
	const char	 *cn_title;
	const char	 *cn_member;
	size_t		(*cn_put)(FILE *, const cJSON *);
};

struct strict {
	const char	*st_line;
	const char	*st_at;
	const char	*st_end;
};

/* What a URL is about, in canonical form. */
struct url {
	enum url_scheme	 ur_scheme;
	char		 ur_host[HOSTNAME_MAX];
	uint16_t	 ur_port;
	char		 ur_path[URLPATH_MAX];
};

struct words {
	char		**ws_words;	/* NULL after the last */
	size_t		  ws_count;
};

/* What a program that lives in its user's home needs in a sandbox. */
struct profile {
	char		*pf_name;
	const char	*pf_home;	/* the caller's, for ~ */
	struct words	 pf_commands;
	struct words	 pf_read;
	struct words	 pf_write;
	struct words	 pf_pass;
	struct words	 pf_hosts;
};

/* An egressd of our own, for one run. */
struct private {
	pid_t		 pv_pid;	/* 0: there is none */
	int		 pv_log;	/* what it says, or -1 */
	int		 pv_quiet;	/* show it only if all has failed */
	char		 pv_socket[PATH_LEN];	/* "": none in the file system */
};

enum token_type {
	LAST = 0,	/* ends a table */
	END,		/* the command may end here */
	KEYWORD,
	WORD		/* any word; tk_word says what it stands for */
};

struct token {
	enum token_type		  tk_type;
	const char		 *tk_word;
	const struct token	 *tk_next;	/* NULL: nothing follows */
	const struct command	 *tk_command;
	int			(*tk_set)(struct invocation *, const char *);
};

struct parser {
	const struct token	*pa_table;	/* what may come next */
	const char		*pa_after;	/* the word before it */
};

/* paths.c */
extern const char	*path_egressd;
extern const char	*path_box;
extern const char	 path_conf[];
extern const char	 path_socket[];
extern const char	 path_profiles[];
void	 paths_init(void);

/* ask.c */
void	 decider_ask(const struct invocation *, cJSON *);
void	 decider_option(struct invocation *, int, const char *);
void	 decider_put(const cJSON *);

/* attack.c */
void	 attack_option(struct invocation *, int, const char *);
int	 attack_run(const struct invocation *);
void	 attack_put(const cJSON *);

/* box.c */
int	 box_run(char *const [], int, struct private *);
int	 box_end_as(int);

/* client.c */
int	 client_open(struct client *, const char *);
int	 client_try(struct client *, const char *);
void	 client_adopt(struct client *, int, const char *);
int	 client_send(struct client *, const cJSON *, int);
int	 client_has_line(const struct client *);
enum client_result
	 client_line(struct client *, char **, size_t *, int);
void	 client_close(struct client *);

/* commands.c */
extern const struct command	 command_status;
extern const struct command	 command_reload;
extern const struct command	 command_log_level;
extern const struct command	 command_events;
extern const struct command	 command_ask_decider;
extern const struct command	 command_test;
extern const struct command	 command_verify;
extern const struct command	 command_replay;
extern const struct command	 command_pending;
extern const struct command	 command_answer;
extern const struct command	 command_watch;
extern const struct command	 command_cache_show;
extern const struct command	 command_cache_clear;
extern const struct command	 command_message;
extern const struct command	 command_metadata;
extern const struct command	 command_attack;
extern const struct command	 command_profile;
extern const struct command	 command_run;
extern const struct command	 command_help;
int	 command_has_name(const struct command *, const char *);

/* context.c */
void	 check_text(const char *, const char *);
void	 message_ask(const struct invocation *, cJSON *);
void	 metadata_ask(const struct invocation *, cJSON *);

/* environment.c */
void	 environment_clean(void);
void	 environment_option(const char *);
void	 environment_pass(const char *);
void	 environment_choose(const cJSON *);
int	 environment_names(cJSON *);
void	 environment_explain(void);
char	*const *environment_kept(void);

/* exchange.c */
int	 command_ask(const struct invocation *);
int	 command_follow(const struct invocation *);
cJSON	*exchange_request(const char *);
cJSON	*exchange_ask(struct client *, cJSON *, int, char **);

/* explain.c */
void	 explain_connect(const char *, int);
void	 explain_hung_up(const struct client *);
void	 explain_stopped(void);
void	 explain_refusal(const struct command *, const cJSON *);

/* json.c */
cJSON		*json_parse(const char *, size_t);
const cJSON	*json_get(const cJSON *, const char *);
const char	*json_string(const cJSON *, const char *);
size_t		 json_put(FILE *, const cJSON *);

/* output.c */
extern const struct output	 output_text;
extern const struct output	 output_json;
int	 output_finish(int);

/* parser.c */
void	 parser_init(struct parser *);
int	 parser_word(struct parser *, struct invocation *, const char *);
const struct command *
	 parser_end(const struct parser *, const struct invocation *);
void	 parser_list_commands(FILE *);
int	 parser_typos(const char *, const char *);

/* pending.c */
size_t	 request_put(FILE *, const cJSON *);
void	 request_put_whole(FILE *, const cJSON *);
size_t	 duration_put(FILE *, const cJSON *);
void	 pending_put(const cJSON *);
void	 answer_ask(const struct invocation *, cJSON *);
void	 answer_option(struct invocation *, int, const char *);
void	 answer_put(const cJSON *);
void	 cache_show_ask(const struct invocation *, cJSON *);
void	 cache_show_put(const cJSON *);
void	 cache_clear_ask(const struct invocation *, cJSON *);
void	 cache_clear_put(const cJSON *);

/* home.c */
const char	*user_home(void);

/* private.c */
int	 private_start(struct private *, struct client *, const char *,
	    const char *, int);
const char *private_conf(const struct invocation *, const struct profile *);
int	 conf_of_user(const char *, char *, size_t);
void	 private_reap(struct private *);
void	 private_stop(struct private *, int);

/* profile.c */
int	 profile_load(struct profile *, const char *, const char *);
int	 profile_choose(struct profile *, const char *, const char *);
void	 profile_drop_links(struct profile *);
int	 profile_make(const struct profile *);
void	 profile_list(struct words *);
void	 profile_policy(const struct profile *, FILE *);
void	 profile_say(const struct profile *);
void	 profile_free(struct profile *);
int	 profile_run(const struct invocation *);

/* record.c */
void	 record_put(const cJSON *);

/* replay.c */
void	 replay_option(struct invocation *, int, const char *);
int	 replay_run(const struct invocation *);
void	 replay_put(const cJSON *);

/* run.c */
void	 run_take(struct invocation *, int, char *[]);
int	 run_run(const struct invocation *);

/* secrets.c */
int	 secrets_check(const char *, int (*)(const char *));

/* seek.c */
int	 seek_command(const char *, int (*)(const char *));

/* source.c */
struct source	*source_open(const char *);
enum next	 source_line(struct source *, char **, size_t *);
void		 source_close(struct source *);
void		 finding_put(const cJSON *);

/* status.c */
void	 status_put(const cJSON *);

/* strict.c */
void	 strict_init(struct strict *, const char *, size_t);
int	 strict_member(struct strict *, struct piece *, struct piece *);

/* table.c */
void	 table_put(const cJSON *, const struct column *, size_t);
int	 table_is_empty(const cJSON *);

/* test.c */
int	 test_run(const struct invocation *);
void	 test_put(const cJSON *);
int	 test_request(const struct invocation *, struct url *);

/* tokens.c */
extern const struct token	 tokens_main[];

/* tty.c */
int	 tty_raw(void);
void	 tty_restore(void);
void	 tty_forget_input(void);
size_t	 tty_width(void);

/* url.c */
const char *url_scheme_name(enum url_scheme);
const char *url_parse(const char *, struct url *);

/* verify.c */
int	 verify_run(const struct invocation *);
void	 verify_put(const cJSON *);

/* visible.c */
size_t	 visible_put(FILE *, const char *, enum visible);
void	 visible_put_json(FILE *, const char *);

/* watch.c */
int	 watch_run(const struct invocation *);

/* words.c */
void	 words_add(struct words *, char *);
int	 words_have(const struct words *, const char *);
void	 words_free(struct words *);

#endif /* EGRESSCTL_H */
