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

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#ifndef EGRESSD_VERSION
#error "EGRESSD_VERSION must be given on the compiler's command line"
#endif

#define SOCKET_DEFAULT		"/run/egressd.sock"
#define SOCKET_VARIABLE		"EGRESSD_SOCKET"

#define REQUEST_MAX		65536		/* bytes before the newline */
#define ANSWER_MAX		1048576		/* bytes, newline included */
#define ANSWER_DEPTH_MAX	32
#define ANSWER_TIMEOUT_MS	10000
#define FOREVER			(-1)

#define EXIT_REFUSED		1		/* the daemon said no */
#define EXIT_USAGE		2
#define EXIT_NO_DAEMON		3		/* could not talk to it */

/*
 * The kinds of records, in one place: the command line completes and
 * checks them from here, the text output takes its colours from here.
 */
#define RECORD_KINDS(X)							\
	X("request_opened",	COLOUR_DIM)				\
	X("request_allowed",	COLOUR_GREEN)				\
	X("request_denied",	COLOUR_RED)				\
	X("request_closed",	COLOUR_PLAIN)				\
	X("request_failed",	COLOUR_RED)				\
	X("decider_failure",	COLOUR_YELLOW)				\
	X("session_started",	COLOUR_CYAN)				\
	X("session_ended",	COLOUR_CYAN)				\
	X("connection_refused",	COLOUR_RED)				\
	X("name_asked",		COLOUR_DIM)				\
	X("gap",		COLOUR_YELLOW)

#define RECORD_KIND_COUNT_ONE(name, colour)	+ 1
#define RECORD_KIND_COUNT	(0 RECORD_KINDS(RECORD_KIND_COUNT_ONE))

struct invocation;

/*
 * A command either talks to the daemon through command_ask or
 * command_follow, or brings its own co_run and then nothing connects.
 */
struct command {
	const char	 *co_synopsis;
	const char	 *co_help;
	int		(*co_run)(const struct invocation *);
	const char	 *co_op;	/* of the request, egressd.sock(5) */
	void		(*co_ask)(const struct invocation *, cJSON *);
	void		(*co_show)(const cJSON *);
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
	const char		*in_socket;
	const char		*in_level;
	const char		*in_session;
	const char		*in_kinds[RECORD_KIND_COUNT];
	size_t			 in_nkinds;
};

struct client {
	int		 cl_fd;
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
	VISIBLE_WORD		/* among other words: no space of any sort */
};

struct parser {
	const struct token	*pa_table;	/* what may come next */
	const char		*pa_after;	/* the word before it */
};

/* client.c */
int	 client_open(struct client *, const char *);
int	 client_send(struct client *, const cJSON *);
int	 client_has_line(const struct client *);
enum client_result
	 client_line(struct client *, char **, size_t *, int);
void	 client_close(struct client *);

/* commands.c */
extern const struct command	 command_status;
extern const struct command	 command_reload;
extern const struct command	 command_log_level;
extern const struct command	 command_events;
extern const struct command	 command_help;

/* exchange.c */
int	 command_ask(const struct invocation *);
int	 command_follow(const struct invocation *);

/* explain.c */
void	 explain_connect(const char *, int);
void	 explain_hung_up(void);
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

/* record.c */
void	 record_put(const cJSON *);

/* status.c */
void	 status_put(const cJSON *);

/* visible.c */
size_t	 visible_put(FILE *, const char *, enum visible);
void	 visible_put_json(FILE *, const char *);

#endif /* EGRESSCTL_H */
