/* SPDX-License-Identifier: ISC */

/*
 * Private header of egressctl, the operator's tool: how a command looks to
 * the rest.  egressctl runs with the operator's own rights and trusts its
 * command line.  It believes the daemon's answers, but not the strings inside
 * them: host names, paths and reasons were chosen by whoever lives in the
 * sandbox.
 *
 * A command stands in one file of its group's folder: its options, the table
 * of the words that follow its name, what it does, and a struct command at the
 * end of the file.  One row of COMMANDS makes it known.
 */

#ifndef EGRESSCTL_H
#define EGRESSCTL_H

#include <stddef.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#ifndef EGRESSD_VERSION
#error "EGRESSD_VERSION must be given on the compiler's command line"
#endif

#define SOCKET_VARIABLE		"EGRESSD_SOCKET"

#define EXIT_REFUSED		1		/* the daemon said no */
#define EXIT_USAGE		2
#define EXIT_NO_DAEMON		3		/* could not talk to it */

/* Of "run", when the command did not run; as env(1) has it. */
#define EXIT_LATE		124	/* as timeout(1) has it */
#define EXIT_NO_RUN		125
#define EXIT_NOT_FOUND		127

/* The table of commands, by their first word, in the order of the help. */
#define COMMANDS(X)							\
	X(status)							\
	X(reload)							\
	X(log)								\
	X(events)							\
	X(pending)							\
	X(answer)							\
	X(watch)							\
	X(ask)								\
	X(cache)							\
	X(message)							\
	X(metadata)							\
	X(session)							\
	X(reap)								\
	X(terminate)							\
	X(heartbeat)							\
	X(logs)								\
	X(cluster)							\
	X(pump)								\
	X(run)								\
	X(exec)								\
	X(shell)							\
	X(read)								\
	X(write)							\
	X(edit)								\
	X(glob)								\
	X(grep)								\
	X(ls)								\
	X(stat)								\
	X(mkdir)							\
	X(rm)								\
	X(cp)								\
	X(forward)							\
	X(mount)							\
	X(instructions)							\
	X(mcp)								\
	X(profile)							\
	X(test)								\
	X(replay)							\
	X(verify)							\
	X(attack)							\
	X(help)

struct command;

/* How answers look; `line` is what arrived, `json` the same, parsed. */
struct output {
	void	(*ou_answer)(const struct command *, const char *line,
		    const cJSON *json);
	void	(*ou_refusal)(const struct command *, const char *line,
		    const cJSON *json);
};

/* What the command line says to any command. */
struct invocation {
	const struct command	*in_command;
	const struct output	*in_output;
	const char		*in_socket;	/* path_socket by default */
	const char		*in_conf;	/* path_conf by default */
};

enum token_type {
	LAST = 0,	/* ends a table */
	END,		/* the command may end here */
	KEYWORD,
	WORD,		/* any word; tk_word says what it stands for */
	SESSION_ID	/* a word, not empty, once in a command line */
};

/* What may stand next in the command line, and what comes after it. */
struct token {
	enum token_type		  tk_type;
	const char		 *tk_word;
	const struct token	 *tk_next;	/* NULL: nothing follows */
	const struct command	 *tk_command;	/* this word completes it */
	const char		**tk_value;	/* is given the word */
	int			(*tk_take)(const char *);	/* takes it */
};

/*
 * A command either talks to the daemon through exchange_run or
 * exchange_follow, or brings its own co_run and then nothing connects.  One
 * without co_run is the first word of others, which co_tokens names.
 */
struct command {
	const char	 *co_name;
	const char	 *co_synopsis;
	const char	 *co_help;
	const char	 *co_other_name;	/* people look for this */
	const struct token	*co_tokens;	/* NULL: nothing follows */
	int		(*co_run)(const struct invocation *);
	const char	 *co_op;	/* of the request, egressd.sock(5) */
	void		(*co_ask)(cJSON *);	/* adds the request's fields */
	void		(*co_show)(const cJSON *);
	int		  co_slow;	/* the answer may take any time */
	/* Options of the command's own, for getopt(3), and who takes them. */
	const char	 *co_options;
	void		(*co_option)(int, const char *);
	/* Parses all that follows the name itself, options included. */
	void		(*co_take)(struct invocation *, int, char *[]);
};

#define DECLARE_COMMAND(name)	extern const struct command command_##name;
COMMANDS(DECLARE_COMMAND)

struct parser {
	const struct token	*pa_table;	/* what may come next */
	const char		*pa_after;	/* the word before that */
};

/* exchange.c */
int	 exchange_run(const struct invocation *);
int	 exchange_follow(const struct invocation *);

/* output.c */
extern const struct output	 output_text;
extern const struct output	 output_json;
void	 output_show(const struct invocation *, cJSON *);
cJSON	*output_object(void);
int	 output_finish(int);

/* parser.c */
void	 parser_init(struct parser *);
int	 parser_word(struct parser *, struct invocation *, const char *);
const struct command *
	 parser_end(const struct parser *, const struct invocation *);
void	 parser_list_commands(FILE *);
int	 parser_typos(const char *, const char *);

/* paths.c */
extern const char	*path_egressd;
extern const char	*path_box;
extern const char	 path_conf[];
extern const char	 path_socket[];
extern const char	 path_profiles[];
void	 paths_init(void);

/* session/mount.c */
char	*mount_path(const char *, const char *);
cJSON	*mount_object(const char *, int);

/* seconds.c */
unsigned int	 seconds_take(const char *, int);

/* user.c */
const char *user_home(void);
int	 conf_of_user(const char *, char *, size_t);
const char *conf_choose(const struct invocation *, const char **);

#endif /* EGRESSCTL_H */
