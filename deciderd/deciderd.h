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
 * deciderd: asks the deciders.  It holds their credentials, trusts the parent
 * and treats every answer as a stranger's.
 *
 * A question has one decider, one deadline and one answer.  Who is asked over
 * HTTP goes by way of http.c, who is a program per question by program.c, who
 * is kept and fed lines by stream.c; each of them either finishes a question
 * or is told to forget it.
 */

#ifndef DECIDERD_H
#define DECIDERD_H

#include <sys/queue.h>
#include <sys/tree.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <curl/curl.h>

#include "addr.h"
#include "child.h"
#include "jsonw.h"
#include "log.h"
#include "resolver.h"
#include "secret.h"

#define QUESTIONS_MAX	2048		/* being asked, in all */
#define REPLY_LEN	(64 * 1024)	/* of an answer, or of a line */
#define REASON_LEN	512		/* of it, what is handed on */
#define PROMPT_LEN	(64 * 1024)
#define TRUST_LEN	(4 * 1024 * 1024)
#define HEADERS_MAX	5		/* of our own */
#define HEADERS_MORE	16
#define AGENT_TOOL	"decide"

struct call;
struct decider;
struct program;
struct stream;
struct trust;

/* What the parent opens for us; whoever asks for it embeds one of these. */
struct helper {
	RB_ENTRY(helper)	 he_entry;
	uint32_t		 he_cookie;	/* 0: not asked for */
	bool			 he_opened;
	const struct helper_ops	*he_ops;
	void			*he_arg;
};

struct helper_ops {
	void	(*ho_opened)(void *, int);
	void	(*ho_failed)(void *, const char *);
	/* A program has ended; why is NULL if with status 0. */
	void	(*ho_exited)(void *, const char *why);
};

struct text {
	char	*tx_data;
	size_t	 tx_len;
};

TAILQ_HEAD(questions, question);

/* Where a server is.  Names are asked for again when what is known is old. */
struct place {
	char			 pc_host[HOST_LEN + 1];
	uint16_t		 pc_port;
	bool			 pc_tls;
	bool			 pc_named;	/* the host is no address */
	bool			 pc_asking;
	char			*pc_known;	/* for CURLOPT_RESOLVE */
	uint64_t		 pc_until_ms;
	struct questions	 pc_waiting;
};

struct decider {
	TAILQ_ENTRY(decider)	 de_entry;
	unsigned int		 de_refs;
	char			 de_name[NAME_LEN + 1];
	uint8_t			 de_kind;
	uint8_t			 de_api;
	enum decider_form	 de_form;	/* how it is asked now */
	bool			 de_form_auto;	/* we may ask otherwise */
	uint32_t		 de_max_tokens;	/* 0: not given */
	uint32_t		 de_temperature; /* thousandths; UINT32_MAX */
	char			 de_effort[NAME_LEN + 1];	/* or "" */
	bool			 de_persistent;
	char			 de_url[PATH_LEN + 1];
	char			 de_model[NAME_LEN + 1];
	struct secret		*de_files[FILE_KIND_MAX];	/* the key */
	struct text		 de_prompt;
	struct text		 de_bundle;	/* until de_trust is made */
	struct trust		*de_trust;
	struct place		 de_place;
	struct secret		*de_auth;	/* the header with the key */
	char			 de_key_header[NAME_LEN + 1];	/* or "" */
	char			*de_more[HEADERS_MORE];	/* lines */
	struct curl_slist	 de_headers[HEADERS_MAX + HEADERS_MORE];
	uint64_t		 de_rest_until_ms;
	uint64_t		 de_warned_ms;	/* of a failure */
	unsigned int		 de_unsaid;	/* failures since then */
	bool			 de_afresh;	/* by a new connection */
	bool			 de_shares;	/* one for all: HTTP/2 */
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
	struct text		 qu_document;
	struct call		*qu_call;	/* http.c */
	TAILQ_ENTRY(question)	 qu_place;	/* place.c */
	bool			 qu_placeless;
	struct program		*qu_program;	/* program.c */
	TAILQ_ENTRY(question)	 qu_stream;	/* stream.c */
	bool			 qu_written;
	uint64_t		 qu_number;
};

/* begin may finish the question before it returns. */
struct asker {
	void	(*as_begin)(struct question *);
	void	(*as_late)(struct question *);	/* may be NULL */
	void	(*as_forget)(struct question *);
};

/* What a decider said, or what is wrong with it. */
struct reply {
	enum answer_result	 rp_result;
	uint64_t		 rp_id;		/* of a line */
	char			 rp_reason[REASON_LEN + 1];
};

extern const struct sandbox	 deciderd_sandbox;
extern const struct asker	 http_asker;
extern const struct asker	 program_asker;
extern const struct asker	 stream_asker;

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
int	 deciderd_parent_conf_resolver(struct ipc *, const union msg *);
struct decider	*decider_find(const char *);

/* decider.c */
struct decider	*decider_new(const struct msg_conf_decider *);
struct decider	*decider_ref(struct decider *);
void	 decider_unref(struct decider *);
int	 decider_header(struct decider *, const struct msg_conf_header *);
int	 decider_ready(struct decider *, char *, size_t);

/* fault.c */
void	 fault_text(const struct decider *, const struct text *, char *,
	    size_t);

/* helper.c */
void	 helper_ask(struct helper *, const struct decider *,
	    const struct helper_ops *, void *);
void	 helper_done(struct helper *);
int	 deciderd_parent_helper(struct ipc *, const union msg *);
int	 deciderd_parent_helper_failed(struct ipc *, const union msg *);
int	 deciderd_parent_helper_exited(struct ipc *, const union msg *);

/* http.c */
void	 http_warm(void);
void	 http_found(struct question *);

/* place.c */
int	 place_parse(struct place *, char *, size_t);
void	 place_free(struct place *);
void	 place_want(struct question *);
void	 place_forget(struct question *);

/* question.c */
void	 question_finish(struct question *, enum answer_result,
	    const char *, ...) LOG_FORMAT(3, 4);
void	 question_reply(struct question *, const struct reply *);
void	 question_drop_document(struct question *);
void	 questions_open(struct ipc *);
int	 deciderd_policyd_question(struct ipc *, const union msg *);
int	 deciderd_policyd_question_drop(struct ipc *, const union msg *);

/* reply.c */
cJSON	*reply_read(const char *, size_t, struct reply *);
void	 reply_bad(struct reply *, const char *);
void	 reply_object(const cJSON *, bool, struct reply *);
void	 reply_text(const char *, size_t, bool, struct reply *);

/* stream.c */
struct stream	*stream_new(struct decider *);
void	 stream_free(struct stream *);

/* trust.c */
struct trust	*trust_take(struct text *);
void	 trust_unref(struct trust *);
CURLcode trust_set(struct trust *, CURL *);

#endif /* DECIDERD_H */
