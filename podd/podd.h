/* SPDX-License-Identifier: ISC */

/*
 * podd: hears what gates in pods say, as an engine hears what agents say.  It
 * has descriptors that it was handed, of which k8sd carries the bytes, and
 * nothing else: no network, no file, no credential, no rule.  It trusts the
 * parent and controld.  A gate is hostile: each line of it is checked to the
 * last byte before anybody is told of it, in typed messages, and one that is
 * not sound is the end of its channel and of no other.
 */

#ifndef PODD_H
#define PODD_H

#include <sys/types.h>
#include <sys/queue.h>
#include <sys/tree.h>

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "child.h"
#include "jsonw.h"
#include "log.h"
#include "sandbox.h"
#include "words.h"

/* feed.c: bytes become lines, none of which is longer than FEED_LEN. */
#define FEED_LEN	(1024 * 1024)	/* without the newline */
#define FEED_READ	65536

struct feed {
	char		*fe_buf;
	size_t		 fe_size;
	size_t		 fe_start;	/* of the next line */
	size_t		 fe_seen;	/* no newline up to here */
	size_t		 fe_end;	/* of what has been read */
};

void	 feed_init(struct feed *);
void	 feed_free(struct feed *);
char	*feed_room(struct feed *, size_t *);
void	 feed_got(struct feed *, size_t);
int	 feed_next(struct feed *, const char **, size_t *);

/*
 * said.c, said_question.c: what a gate has said, each a JSON text of a line.
 * Functions that return -1 say why in a constant.
 */
#define POD_SESSION	"pod"	/* what a gate calls its only session */
#define SAID_RECORD_LEN	(256 * 1024)	/* of the recorder's, too */
#define SAID_QUESTION_LEN (128 * 1024)
#define SAID_TEXT_LEN	256	/* of what is shown of it */

/* Members are valid until the next one is read, the others for ever. */
struct said_record {
	uint64_t		 sr_seq;
	enum record_kind	 sr_kind;
	uint64_t		 sr_at;		/* ns since the epoch */
	uint64_t		 sr_lost;	/* just before, not used */
	const char		*sr_members;
	size_t			 sr_len;
};

int	 said_record(const char *, size_t, struct said_record *,
	    const char **);
void	 said_gap(uint64_t, uint64_t, struct said_record *);

/* The question as policyd is asked it; texts are sq_json's. */
struct jsonr;
struct said_question {
	struct jsonr		*sq_json;	/* to be freed */
	int			 sq_drop;	/* the id alone */
	struct msg_pod_question	 sq_ask;
};

int	 said_question(const char *, size_t, struct said_question *,
	    const char **);

/* An answer to what we have asked: ok, or a code and its words. */
struct said_answer {
	uint64_t		 sa_id;
	int			 sa_ok;
	char			 sa_code[NAME_LEN + 1];
	char			 sa_text[SAID_TEXT_LEN];	/* printable */
	char			 sa_sha256[FINGERPRINT_LEN + 1]; /* or "" */
};

int	 said_answer(const char *, size_t, struct said_answer *,
	    const char **);
int	 said_end(const char *, size_t, struct said_answer *);
void	 said_tame(char *, size_t, const char *);
int	 said_is(const struct jsonr *, const char *const *);
int64_t	 said_number(const struct jsonr *, const char *, int64_t);
const char *said_text(const struct jsonr *, const char *, size_t);

/* gate.c: the channel to one pod's gate. */
#define GATE_WINDOW	(1024 * 1024)	/* bytes that are not acknowledged */
#define GATE_QUESTIONS	256		/* that are not answered */
#define GATE_OUT_MAX	(1024 * 1024)	/* bytes that it has not taken */
#define GATE_BATCH	64		/* lines per turn of the loop */
#define GATE_ECHO_S	10
#define GATE_SILENCE_MS	30000
#define GATE_STATUS	6		/* echoes, from one to the next */
#define RELOAD_EVERY_MS	500
#define RELOAD_LIMIT_MS	120000		/* a kubelet takes a minute */

/* A record that the gate may not yet forget. */
struct kept_line {
	TAILQ_ENTRY(kept_line)	 kl_entry;
	uint64_t		 kl_seq;
	size_t			 kl_len;
};

enum gate_ask { ASK_NOTHING, ASK_STATUS, ASK_RELOAD };

struct gate {
	RB_ENTRY(gate)		 ga_entry;
	uint32_t		 ga_channel;
	char			 ga_session[SESSION_LEN + 1];
	char			 ga_pod[HOST_LEN + 1];
	char			 ga_uid[NAME_LEN + 1];
	char			 ga_node[HOST_LEN + 1];
	char			 ga_sha256[FINGERPRINT_LEN + 1]; /* or "" */
	uint64_t		 ga_term;
	int			 ga_fd;
	struct event		 ga_rev;
	struct event		 ga_wev;
	struct event		 ga_echo;
	struct event		 ga_again;	/* reload, once more */
	struct feed		 ga_feed;
	struct evbuffer		*ga_out;
	int			 ga_paused;	/* others have no room */
	uint64_t		 ga_heard;	/* ms */
	unsigned int		 ga_echoes;
	enum podd_state		 ga_told;
	uint64_t		 ga_last_id;	/* of what we asked */
	/* a: what it is asked now and then */
	enum gate_ask		 ga_asked;
	int			 ga_reloading;
	uint64_t		 ga_reload_until;
	char			 ga_old_sha256[FINGERPRINT_LEN + 1];
	/* b and d: records, and up to which they may be forgotten */
	int			 ga_follows;
	uint64_t		 ga_seq;	/* the last one; 0: none yet */
	uint64_t		 ga_recorded;
	uint64_t		 ga_acked;
	int			 ga_acking;
	TAILQ_HEAD(, kept_line)	 ga_kept;
	size_t			 ga_kept_len;
	/* c: questions */
	int			 ga_asks;	/* to be served */
	int			 ga_serves;
	uint64_t		 ga_questions[GATE_QUESTIONS];
	unsigned int		 ga_nquestions;
};
RB_HEAD(gates, gate);

void	 gate_open(const struct msg_podd_open *, int);
struct gate *gate_find(uint32_t);
void	 gate_free(struct gate *);
void	 gate_send(struct gate *, char, const char *, size_t);
int	 gate_fail_end(struct gate *, enum podd_state, const char *, ...)
	    LOG_FORMAT(3, 4);
void	 gate_tell(struct gate *, enum podd_state, const char *);
void	 gates_resume(struct ipc *);

/* gate_ask.c: what is asked of it, and what it answers. */
struct jsonw *gate_ask_begin(struct gate *, const char *);
void	 gate_ask_send(struct gate *, char);
void	 gate_begin(struct gate *);
int	 gate_follow_answered(struct gate *, const char *, size_t);
int	 gate_serve_answered(struct gate *, const char *, size_t);
int	 gate_answered(struct gate *, const char *, size_t);
int	 gate_nonsense_end(struct gate *, const char *, size_t, const char *);
void	 gate_status(struct gate *);
void	 gate_reload(struct gate *, const char *);
void	 gate_reload_again(struct gate *);

/* gate_record.c */
int	 gate_record(struct gate *, const char *, size_t);
void	 gate_ack(struct gate *, uint64_t);
int	 gate_acked(struct gate *, const char *, size_t);
void	 gate_forget_records(struct gate *);

/* gate_question.c */
int	 gate_question(struct gate *, const char *, size_t);
void	 gate_drop_questions(struct gate *);
int	 gate_answer(struct gate *, const struct msg_pod_question_answer *);

/* channel.c */
extern struct ipc	*podd_controld;
extern struct ipc	*podd_policyd;
extern struct ipc	*podd_recorder;

int	 podd_channel(const struct msg_channel *, int);
int	 podd_congested(void);

extern const struct sandbox	 podd_sandbox;

#endif /* PODD_H */
