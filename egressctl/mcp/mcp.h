/* SPDX-License-Identifier: ISC */

/*
 * Private header of egressctl/mcp: a server of the Model Context Protocol on
 * standard input and output, whose tools are the operations of a sandbox.
 *
 *	client --- lines of JSON-RPC --- server --- frames --- box
 *	                                   |
 *	                                control socket: refusals, the end
 *
 * The client started us and has our rights; its lines are bounded and checked,
 * so that a fault of its own does not end the server.  The sandbox is hostile:
 * what files, commands and origins say reaches a model, so it is bounded and
 * stands between lines with a mark that nobody in the sandbox can know.
 *
 *	job	a request of the client's that is not answered yet
 *	tool	what a client may call; one for each operation
 */

#ifndef MCP_H
#define MCP_H

#include <sys/queue.h>

#include <stdint.h>
#include <stdio.h>

#include "client.h"
#include "egressctl.h"
#include "hands/hands.h"

#define LINE_MAX_BYTES		(4 * 1024 * 1024)	/* from the client */
#define VALUES_MAX		100000	/* commas in a line, of JSON's own */
#define BATCH_MAX		256	/* messages in a line */
#define JOBS_MAX		512	/* requests not yet answered */
#define READ_DEFAULT		(256 * 1024)	/* bytes of a file */
#define READ_MOST		(1024 * 1024)
#define OUTPUT_MAX		(256 * 1024)	/* of a command, each stream */
#define ITEMS_BYTES_MAX		(256 * 1024)	/* of glob, grep and list */
#define EXEC_DEFAULT_MS		600000
#define EXEC_MOST_MS		86400000

#define INTEGER_MAX		9007199254740991.0	/* 2^53 - 1 */

/* JSON-RPC 2.0, and what MCP adds. */
#define RPC_PARSE		(-32700)
#define RPC_REQUEST		(-32600)
#define RPC_METHOD		(-32601)
#define RPC_PARAMS		(-32602)
#define RPC_INTERNAL		(-32603)
#define RPC_NO_RESOURCE		(-32002)	/* before 2026-07-28 */
#define RPC_VERSION		(-32022)

/* Versions, oldest first: later ones compare greater. */
enum version {
	VERSION_NONE,		/* not agreed on */
	VERSION_2024_11_05,
	VERSION_2025_03_26,	/* batches, annotations */
	VERSION_2025_06_18,	/* structured results, titles; no batches */
	VERSION_2025_11_25,	/* a model is told what is wrong with a call */
	VERSION_2026_07_28,	/* without a handshake */
	VERSION_MAX
};

/* The first that begins without "initialize". */
#define VERSION_MODERN		VERSION_2026_07_28

/* A line on which several messages came; answered together. */
struct batch {
	cJSON		*ba_answers;
	unsigned int	 ba_open;	/* not answered yet */
};

/* The beginning and the end of what may be much. */
struct collect {
	char		*co_buf;	/* co_head bytes, then a ring */
	size_t		 co_head;
	size_t		 co_tail;
	uint64_t	 co_total;	/* as it came */
};

/* How a call in the sandbox has ended; owned, as opposed to an outcome. */
struct ending {
	char		*en_code;	/* NULL: well */
	char		*en_message;
	cJSON		*en_body;	/* strings are bytes */
};

/* What the gate has refused by a certain time. */
struct refused {
	double		 re_total;
	cJSON		*re_list;
};

struct server;
struct tool;

struct job {
	TAILQ_ENTRY(job)	 jo_entry;
	struct server		*jo_server;
	cJSON			*jo_id;
	enum version		 jo_version;
	struct batch		*jo_batch;	/* or NULL */
	cJSON			*jo_token;	/* for progress, or NULL */
	int			 jo_silent;	/* cancelled: no answer */

	/* Of one that works in the sandbox. */
	const struct tool	*jo_tool;	/* NULL: a resource */
	cJSON			*jo_args;
	struct call		*jo_call;
	void			(*jo_show)(struct job *);
	struct ending		 jo_ending;
	struct collect		 jo_out;
	struct collect		 jo_err;
	cJSON			*jo_items;	/* array */
	size_t			 jo_items_bytes;
	int			 jo_full;	/* more items than we take */
	char			*jo_in;		/* to be sent, or NULL */
	size_t			 jo_in_len;
	size_t			 jo_in_sent;
	uint64_t		 jo_started;	/* ms */
	int			 jo_in_ended;
	uint64_t		 jo_told;	/* ms, last progress */
	double			 jo_progress;	/* the value told then */

	uint32_t		 jo_asked;	/* of egressd, or 0 */
	void			(*jo_answer)(struct job *, const cJSON *);
	struct refused		 jo_before;
	struct refused		 jo_after;
};

TAILQ_HEAD(jobs, job);

struct server {
	struct link	*sv_link;
	struct client	 sv_control;	/* cl_fd -1: lost */
	const char	*sv_session;
	enum version	 sv_version;	/* by "initialize" */
	struct jobs	 sv_jobs;
	uint32_t	 sv_next;	/* number of a question to egressd */
	char		*sv_reason;	/* why the session ended, or NULL */
	int		 sv_over;	/* and so is the session */

	char		*sv_in;
	size_t		 sv_in_len;
	size_t		 sv_in_size;
	size_t		 sv_in_seen;	/* without a newline */
	int		 sv_eof;
	int		 sv_broken;	/* a line without an end */
	char		*sv_out;
	size_t		 sv_out_len;
	size_t		 sv_out_sent;
	size_t		 sv_out_size;

	const struct list *sv_mounts;	/* directories of --allow-mount */
	int		 sv_mountable;	/* by egressd */
};

/* ---- tools: tables, from which schemas and checks are made --------------- */

enum value_kind {
	VALUE_NONE,		/* ends a table */
	VALUE_PATH,		/* a string, not empty; bytes as U+EFXX */
	VALUE_TEXT,		/* a string */
	VALUE_NUMBER,
	VALUE_FRACTION,
	VALUE_BOOL,
	VALUE_WORDS,		/* array of strings */
	VALUE_MAP,		/* object of strings */
	VALUE_ENCODING,		/* utf-8 or base64 */
	VALUE_MATCHES,
	VALUE_ENTRIES,
	VALUE_REFUSALS
};

#define VALUE_NEEDED	0x1
#define VALUE_OURS	0x2	/* an argument that the sandbox is not told */

struct value {
	const char	*va_name;
	enum value_kind	 va_kind;
	int		 va_flags;
	const char	*va_about;
	double		 va_min;	/* of a number */
	double		 va_max;
	double		 va_preset;	/* -1: none */
};

#define TOOL_READS	0x1	/* changes nothing */
#define TOOL_DESTROYS	0x2
#define TOOL_AGAIN	0x4	/* twice is as good as once */
#define TOOL_WORLD	0x8	/* reaches the network, through the gate */

struct tool {
	const char		*to_name;	/* and the operation's */
	const char		*to_title;
	const char		*to_about;
	int			 to_flags;
	const struct value	*to_args;
	const struct value	*to_gives;
	const struct call_ops	*to_ops;
	/* NULL, or what is wrong with the arguments; prepares the job. */
	const char		*(*to_prepare)(struct job *);
	void			(*to_members)(struct job *, struct jsonw *);
	void			(*to_show)(struct job *);
};

/* What a result is made of. */
struct result {
	struct job	*rs_job;
	cJSON		*rs_content;
	cJSON		*rs_values;	/* structuredContent */
	FILE		*rs_text;
	char		*rs_text_buf;
	size_t		 rs_text_len;
	char		 rs_mark[16];
	int		 rs_untrusted;
};

/* args.c */
char	*args_check(const struct tool *, const cJSON *);
void	 args_put(struct jsonw *, const struct tool *, const cJSON *);
uint64_t args_number(const cJSON *, const char *, uint64_t);

/* collect.c */
void	 collect_init(struct collect *, size_t, size_t);
void	 collect_add(struct collect *, const char *, size_t);
char	*collect_all(const struct collect *, size_t *);
char	*collect_text(const struct collect *, uint64_t *);
void	 collect_free(struct collect *);

/* job.c */
struct job *job_new(struct server *, const cJSON *, struct batch *);
struct job *job_find(struct server *, const cJSON *);
void	 job_result(struct job *, cJSON *);
void	 job_error(struct job *, int, const char *, cJSON *);
void	 job_cancel(struct job *);
void	 jobs_lost(struct server *, const char *);

/* work.c */
void	 work_begin(struct job *, struct jsonw *, const struct call_ops *);
int	 work_ticks(const struct server *);
void	 work_refusals(struct job *, const cJSON *);
void	 work_turn(struct server *);
extern const struct call_ops	 work_plain, work_bytes, work_streams,
	    work_items;

/* methods.c */
void	 methods_call(struct job *, const char *, const cJSON *);
void	 methods_notice(struct server *, const char *, const cJSON *);
void	 methods_ttl(const struct job *, cJSON *, int);
void	 methods_unlisten(struct job *);

/* mounts.c */
int	 mounts_here(struct server *);
void	 mounts_look(struct server *);
const char *mount_prepare(struct job *);
void	 mount_members(struct job *, struct jsonw *);
void	 mounts_call(struct job *);

/* refusals.c */
int	 control_ask(struct job *, cJSON *,
	    void (*)(struct job *, const cJSON *));
int	 refusals_ask(struct job *);
void	 refusals_watch(struct server *);
void	 refusals_read(struct server *);
void	 refusals_take(struct refused *, const cJSON *);
double	 refusals_between(const struct job *, cJSON **);
void	 refusals_free(struct refused *);

/* resources.c */
void	 resources_list(struct job *);
void	 resources_templates(struct job *);
void	 resources_read(struct job *, const cJSON *);
char	*resources_uri(struct server *, const char *);

/* result.c */
void	 result_begin(struct result *, struct job *);
void	 result_mark(struct result *, const char *);
void	 result_mark_end(struct result *);
void	 result_blob(struct result *, char *, const char *, char *);
void	 result_end(struct result *);
void	 result_fail(struct job *, const char *, const char *);

/* rpc.c */
void	 rpc_line(struct server *, char *, size_t);
void	 rpc_answer(struct server *, struct batch *, cJSON *);
cJSON	*rpc_error(const cJSON *, int, const char *, cJSON *);

/* schema.c */
cJSON	*schema_tools(struct server *, enum version);

/* show.c */
void	 show_read(struct job *);
void	 show_exec(struct job *);
void	 show_glob(struct job *);
void	 show_grep(struct job *);
void	 show_list(struct job *);
void	 show_values(struct job *);

/* stdio.c */
void	 stdio_read(struct server *);
void	 stdio_line(struct server *, const cJSON *);
int	 stdio_write(struct server *);
int	 stdio_waits(const struct server *);
int	 stdio_full(const struct server *);

/* text.c */
int	 text_is(const char *, size_t, size_t *);
char	*text_of(const char *, size_t);
char	*text_bytes(const char *);
void	 text_put(FILE *, const char *);
char	*text_base64(const char *, size_t);
char	*text_unbase64(const char *, size_t *);
const char *text_type(const char *, size_t);

/* tools.c */
extern const struct tool	tools[];
extern const struct value	match_values[], entry_values[];
extern const struct value	refusal_values[], mount_args[];
int	 tool_here(struct server *, const struct tool *);
void	 tool_call(struct job *, const cJSON *);

/* version.c */
const char *version_name(enum version);
enum version version_find(const char *);
cJSON	*version_list(void);
cJSON	*version_server(enum version);

/* Integers to the last digit, which cJSON would round. */
cJSON	*exact(double);
cJSON	*exact_copy(const cJSON *);

/* Whatever runs out of memory ends. */
void	*must(void *);

#endif /* MCP_H */
