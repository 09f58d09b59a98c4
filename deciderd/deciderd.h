/* SPDX-License-Identifier: ISC */

/*
 * deciderd: asks the deciders.  It holds their credentials, trusts the parent
 * and treats every answer as a stranger's.
 *
 * A question has one decider, one deadline and one answer.  http.c asks over
 * HTTP, program.c by a program that is started for each question, stream.c by
 * lines to a program or socket that is kept, serve.c by lines to a control
 * client that has come to answer; each of them either finishes a question or is
 * told to forget it.
 */

#ifndef DECIDERD_H
#define DECIDERD_H

#include <sys/queue.h>
#include <sys/tree.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "addr.h"
#include "child.h"
#include "decider.h"
#include "https/https.h"
#include "jsonw.h"
#include "log.h"
#include "opening.h"
#include "resolver.h"
#include "secret.h"

#define QUESTIONS_MAX	2048		/* open at once, of all deciders */
#define REPLY_LEN	(64 * 1024)	/* of an answer, or of a line */
#define REASON_LEN	512		/* of an answer's reason, handed on */
#define PROMPT_LEN	(64 * 1024)
#define TRUST_LEN	(4 * 1024 * 1024)
#define HEADERS_MAX	4		/* that we send ourselves */
#define HEADERS_MORE	16
#define AGENT_TOOL	"decide"

struct call;
struct decider;
struct program;
struct stream;

TAILQ_HEAD(questions, question);

struct decider {
	TAILQ_ENTRY(decider)	 de_entry;
	unsigned int		 de_refs;
	char			 de_name[NAME_LEN + 1];
	uint8_t			 de_kind;
	struct decider_options	 de_options;
	enum decider_form	 de_form;	/* never FORM_AUTO */
	bool			 de_form_auto;	/* de_form may change */
	struct secret		*de_files[FILE_KIND_MAX];	/* the key */
	struct text		 de_prompt;
	struct text		 de_bundle;	/* until de_server is made */
	struct https_server	*de_server;
	struct secret		*de_auth;	/* the header with the key */
	char			*de_more[HEADERS_MORE];	/* "name: value" */
	const char		*de_headers[HEADERS_MAX + HEADERS_MORE + 1];
	uint64_t		 de_rest_until_ms;
	uint64_t		 de_warned_ms;	/* last failure logged */
	unsigned int		 de_unsaid;	/* failures since then */
	struct stream		*de_stream;
};
TAILQ_HEAD(deciders, decider);

struct question {
	RB_ENTRY(question)	 qu_entry;
	uint32_t		 qu_id;
	struct decider		*qu_decider;
	const struct asker	*qu_asker;
	struct event		 qu_deadline;
	uint64_t		 qu_timeout_ms;
	uint64_t		 qu_until_ms;
	uint32_t		 qu_rule;
	struct text		 qu_document;
	struct call		*qu_call;	/* http.c's */
	struct program		*qu_program;	/* program.c's */
	TAILQ_ENTRY(question)	 qu_stream;	/* from here: of lines */
	bool			 qu_written;
	uint64_t		 qu_number;
};

/* as_begin() may finish the question before it returns. */
struct asker {
	bool	  as_keeps_time;	/* and calls question_late() */
	void	(*as_begin)(struct question *);
	void	(*as_late)(struct question *);	/* may be NULL */
	void	(*as_forget)(struct question *);
};

/* What a decider said, or what is wrong with it. */
struct reply {
	enum answer_result	 rp_result;
	bool			 rp_keep;	/* also for other requests */
	uint64_t		 rp_id;		/* of a stream's line */
	char			 rp_reason[REASON_LEN + 1];
};

extern const struct sandbox	 deciderd_sandbox;
extern const struct asker	 http_asker;
extern const struct asker	 program_asker;
extern const struct asker	 stream_asker;
extern const struct asker	 serve_asker;

/* agent.c */
int	 agent_body(const struct decider *, enum decider_form,
	    const struct text *, struct jsonw *);
bool	 agent_prompt_fits(const struct text *);
bool	 agent_asks_else(struct decider *, enum decider_form, const char *,
	    size_t);

/* agent_reply.c */
void	 agent_reply(const struct decider *, const char *, size_t,
	    struct reply *);

/* conf.c */
void	 slice_begin(uint64_t);
int	 slice_weigh(char *, size_t);
void	 slice_commit(void);
void	 slice_abort(void);
int	 deciderd_parent_conf_decider(struct ipc *, const union msg *);
int	 deciderd_parent_conf_file(struct ipc *, const union msg *);
int	 deciderd_parent_conf_header(struct ipc *, const union msg *);
int	 deciderd_parent_conf_option(struct ipc *, const union msg *);
int	 deciderd_parent_conf_resolver(struct ipc *, const union msg *);
struct decider	*decider_find(const char *);

/* decider.c */
struct decider	*decider_new(const struct msg_conf_decider *);
struct decider	*decider_ref(struct decider *);
void	 decider_unref(struct decider *);
int	 decider_header(struct decider *, const struct msg_conf_header *);
int	 decider_ready(struct decider *, char *, size_t);

/* fault.c */
void	 fault_text(const struct decider *, const char *, size_t, char *,
	    size_t);

/* question.c */
void	 question_finish(struct question *, enum answer_result,
	    const char *, ...) LOG_FORMAT(3, 4);
void	 question_late(struct question *);
void	 question_reply(struct question *, const struct reply *);
void	 question_drop_document(struct question *);
void	 questions_open(struct ipc *);
void	 questions_served(void);
int	 deciderd_policyd_question(struct ipc *, const union msg *);
int	 deciderd_policyd_question_drop(struct ipc *, const union msg *);

/* reply.c */
cJSON	*reply_read(const char *, size_t, struct reply *);
void	 reply_bad(struct reply *, const char *);
void	 reply_object(const cJSON *, bool, struct reply *);
void	 reply_text(const char *, size_t, bool, struct reply *);

/* serve.c */
int	 deciderd_parent_serve(struct ipc *, const union msg *);

/* stream.c */
struct stream	*stream_new(struct decider *);
void	 stream_free(struct stream *);

#endif /* DECIDERD_H */
