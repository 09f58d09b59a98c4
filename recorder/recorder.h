/* SPDX-License-Identifier: ISC */

/*
 * What the files of the recorder share.  A record is one line of JSON, has a
 * number and carries the hash of the line before it.  It goes to the audit
 * file, if there is one, and to every follower that asked for its kind.
 */

#ifndef RECORDER_H
#define RECORDER_H

#include <sys/types.h>
#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "child.h"
#include "jsonw.h"
#include "reasons.h"
#include "redact.h"

#define LINE_LEN_MAX		(256 * 1024)	/* with its newline */
#define SAID_LEN		128	/* of a decider's own words */
#define LINE_WORDS		2048	/* of it: all that is our own */
#define HASH_HEX		64		/* SHA-256 in hex */
#define SEQ_MAX			((UINT64_C(1) << 53) - 1)	/* of JSON */

#define AUDIT_BATCH		(256 * 1024)	/* bytes: write at once */
#define AUDIT_PACE_MS		4		/* else not more often */
#define AUDIT_TICK_S		1		/* sync, or try again */
#define ENGINE_PACE_MS		2		/* how often one is heard */

/*
 * Room that records take in their shortest form, see record.c and chain.c.
 * Each may have to be preceded by a gap.
 */
#define ROOM_GAP		512
#define ROOM_STATION		(1536 + ROOM_GAP)	/* opened, allowed */
#define ROOM_FINAL		(2432 + ROOM_GAP)
#define ROOM_REQUEST		(2 * ROOM_STATION + ROOM_FINAL)

#define FOLLOWERS_MAX		64
#define FOLLOWER_QUEUE_MAX	(256 * 1024)	/* bytes */
#define FOLLOWER_RESERVE	256		/* of these: the last line */
#define FOLLOWER_LINGER_S	10		/* to take the last line */

/* A place in a chain: the number and, unless nobody listened, the hash. */
struct link {
	uint64_t	 li_seq;
	int		 li_hashed;
	char		 li_hash[HASH_HEX + 1];
};

/* A finished line; its length is without the newline that ends it. */
struct line {
	struct link		 ln_link;
	enum record_kind	 ln_kind;
	const char		*ln_session;	/* NULL: concerns all */
	char			*ln_text;
	size_t			 ln_len;
	size_t			 ln_promised;	/* room for it */
};

/*
 * The audit file lacks something.  Its chain goes on from ga_end, the last
 * line that it holds; the numbers after that one were used without it.
 */
struct gap {
	const char	*ga_reason;
	struct link	 ga_end;
	uint64_t	 ga_lost_bytes;
};

/* chain.c */
void			 chain_init(void);
const struct link	*chain_tip(void);
void			 chain_join(const struct link *);
struct jsonw		*chain_begin(enum record_kind, uint64_t, const char *,
			    size_t);
int			 chain_fits(void);
void			 chain_end(void);
void			 chain_session(const struct msg_record_session *);
void			 chain_attached(const struct msg_record_attached *);
void			 chain_file(void);
void			 chain_gap(const struct gap *, struct line *);
void			 chain_hash(struct link *, const char *, size_t);
void			 chain_hex(char *, const void *, size_t);
uint64_t		 chain_number(const char *, size_t, size_t *);
int			 chain_parse(struct link *, const char *, size_t);
int			 chain_same(const struct link *, const struct link *);
const char		*chain_time(uint64_t);
void			 chain_put_time(uint64_t);

/* audit.c */
void		 audit_init(struct event_base *, void (*)(int));
int		 audit_listens(void);
int		 audit_full(void);
int		 audit_fd(void);
off_t		 audit_end(void);
int		 audit_empty(void);
const char	*audit_path(void);
char		*audit_room(void);
void		 audit_catch_up(void);
void		 audit_skip(void);
void		 audit_append(const struct line *);
void		 audit_flush(void);
void		 audit_finish(void);
void		 audit_begin(void);
int		 audit_offer(int, const char *);
int		 audit_keep(void);
int		 audit_weigh(char *, size_t);
void		 audit_commit(void);
void		 audit_abort(void);

/* room.c */
void		 room_init(struct event_base *, void (*)(void));
void		 room_open(int);
void		 room_close(void);
bool		 room_sound(void);
uint32_t	 room_take(uint32_t);
void		 room_put(size_t);
bool		 room_has(size_t, size_t);
void		 room_use(size_t);
void		 room_bound(int64_t);
bool		 room_short(void);
void		 room_wake(void);

/* tail.c */
struct tail {
	struct link	 ta_end;	/* of the last whole line */
	int		 ta_empty;	/* there is none */
	off_t		 ta_torn;	/* bytes after it */
	off_t		 ta_begin;	/* of the first line: a spool's */
};

int		 tail_read(int, bool, struct tail *, const char **);
uint64_t	 tail_number(int, off_t, off_t);
off_t		 tail_find(int, off_t, off_t, uint64_t);

/* tip.c */
enum tip_state {
	TIP_KNOWN,
	TIP_MISSING,		/* there is none, or it is new */
	TIP_UNREADABLE		/* it was torn, or written by others */
};

enum tip_state	 tip_read(struct link *);
void		 tip_write(const struct link *);
bool		 tip_names(const struct link *);
void		 tip_sync(void);
const char	*tip_join(const struct tail *, int, struct link *);
int		 tip_offer(int);
int		 tip_offered(void);
void		 tip_commit(void);
void		 tip_abort(void);

/* spool.c */
bool		 spool_is(void);
bool		 spool_will(void);
off_t		 spool_begin(void);
uint64_t	 spool_acknowledged(void);
uint64_t	 spool_max(void);
uint64_t	 spool_waiting(void);
int		 spool_offer(int, uint64_t);
void		 spool_abort(void);
void		 spool_commit(void);
bool		 spool_keep(void);
bool		 spool_open(int, const struct tail *, off_t);
void		 spool_begun(void);
void		 spool_cut(void);
bool		 spool_term(uint64_t);
void		 spool_sent(uint64_t);
enum ack_result	 spool_take(const struct msg_ack_ask *);
int		 recorder_controld_ack_ask(struct ipc *, const union msg *);

/* follower.c */
struct follower {
	TAILQ_ENTRY(follower)	 fo_entry;
	int			 fo_fd;
	uint32_t		 fo_kinds;	/* set of 1 << record kind */
	char			 fo_session[SESSION_LEN + 1];
	struct evbuffer		*fo_queue;
	struct event		 fo_rev;
	struct event		 fo_wev;
	int			 fo_ending;	/* its last line is queued */
	bool			 fo_history;	/* from here: history.c's */
	off_t			 fo_at;		/* in the audit file */
	uint64_t		 fo_seq;	/* of the line before that */
	off_t			 fo_window;	/* 0: does not acknowledge */
	size_t			 fo_match_len;
	char			 fo_match[JSONW_ESCAPED(SESSION_LEN) + 32];
};

void		 follower_wake(void);
void		 follower_begin_anew(off_t);
void		 follower_file_gone(void);
void		 follower_init(struct event_base *);
void		 follower_new(int, const struct msg_follow *);
void		 follower_send(const struct line *);
void		 follower_flush(void);
uint32_t	 follower_count(void);

/* printer.c */
void		 printer_init(struct event_base *);
bool		 printer_listens(void);
void		 printer_send(const struct line *);
void		 printer_begin(void);
int		 printer_offer(int, bool);
void		 printer_commit(void);
void		 printer_flush(void);

/* history.c */
const char	*history_begin(struct follower *, const struct msg_follow *,
		    char *, size_t);
int		 history_fill(struct follower *);

/* redact.c */
void		 redact_begin(void);
void		 redact_commit(void);
uint32_t	 redact_version(void);
const struct redact *redact_of(const char *, const char *);
int		 recorder_parent_conf_redact(struct ipc *, const union msg *);
int		 recorder_parent_conf_session(struct ipc *,
		    const union msg *);

int		 recorder_parent_conf_gap(struct ipc *, const union msg *);
int		 redact_may_lose(const char *, const char *);

/* decider.c */
int		 recorder_policyd_record_decider(struct ipc *,
		    const union msg *);

/* pods.c */
extern const ipc_handler pods_handlers[MSG_MAX];
void		 pods_channel(struct ipc *);
void		 pods_written(int);
int		 recorder_controld_record_pod(struct ipc *,
		    const union msg *);

/* request.c: what engines told of requests that have not ended. */

/* Bytes that we keep.  The storage stays when its content is forgotten. */
struct blob {
	char		*bl_data;
	size_t		 bl_len;
	size_t		 bl_size;
};

struct request {
	LIST_ENTRY(request)	 rq_slot;
	TAILQ_ENTRY(request)	 rq_entry;
	uint64_t		 rq_id;		/* the engine's number */
	uint64_t		 rq_started;
	uint8_t			 rq_scheme;
	uint8_t			 rq_protocol;
	uint16_t		 rq_port;
	bool			 rq_inspected;
	bool			 rq_allowed;
	bool			 rq_answered;
	bool			 rq_cached;	/* what rq_decider said */
	bool			 rq_path_cut;	/* what is kept is not all */
	bool			 rq_head_cut[2];
	bool			 rq_body_cut[2];
	uint8_t			 rq_rule_kind;
	uint32_t		 rq_rule;
	uint32_t		 rq_waited_ms;	/* for rq_decider */
	uint32_t		 rq_version;	/* of redaction, in rq_text */
	uint16_t		 rq_status;
	size_t			 rq_room;	/* promised to its records */
	size_t			 rq_kept;	/* bytes that count */
	/* From here on storage is used again, see request_new(). */
	struct blob		 rq_text;	/* what all records say of it */
	struct blob		 rq_names;	/* host, method, path: NULs */
	struct blob		 rq_fields[2];	/* of request and answer */
	struct blob		 rq_body[2];	/* their beginnings */
	char			 rq_decider[NAME_LEN + 1];	/* or empty */
	char			 rq_said[SAID_LEN + 1];	/* why it allowed */
	char			 rq_address[ADDRESS_LEN + 1];
};
TAILQ_HEAD(requests, request);
LIST_HEAD(request_slot, request);

#define REQUEST_SLOTS	1024

/* All requests of an engine, by number and in the order of their opening. */
struct request_set {
	struct requests		 rs_all;
	struct request_slot	 rs_slots[REQUEST_SLOTS];
	uint32_t		 rs_count;
};

void		 request_set_init(struct request_set *);
struct request	*request_find(const struct request_set *, uint64_t);
struct request	*request_new(struct request_set *, uint64_t);
void		 request_free(struct request_set *, struct request *);
void		 blob_add(struct blob *, const void *, size_t);
void		 blob_set(struct blob *, const void *, size_t);

/* engine.c */
struct engine {
	TAILQ_ENTRY(engine)	 en_entry;
	struct ipc		*en_ipc;
	char			 en_session[SESSION_LEN + 1];
	char			 en_policy[NAME_LEN + 1];	/* at first */
	uint32_t		 en_instance;
	char			 en_prefix[REQUEST_PREFIX_LEN + 1];
	uint32_t		 en_credit;	/* requests that it may open */
	uint32_t		 en_backed;	/* of these, with room */
	bool			 en_hold;	/* it refuses them all */
	size_t			 en_kept;	/* of open requests, bytes */
	uint64_t		 en_excess;	/* bytes of late, too many */
	uint64_t		 en_excess_at;	/* ms */
	struct request_set	 en_requests;
};

void		 engine_new(const struct msg_channel *, int);
void		 engines_review(void);
void		 engines_hold(int);
bool		 engines_held(void);
void		 engines_finish(void);
void		 engines_hear(const char *);

/* refusals.c */
void		 refusal_add(const char *, const char *, const char *);
void		 refusals_forget(const char *);
void		 refusals_tell(struct ipc *, const struct msg_refusals_ask *);

/* budget.c */
bool		 budget_spent(struct engine *);
void		 budget_charge(struct engine *, size_t, size_t);

/* record_head.c */
#define FIELDS_MAX	256	/* lines of a head that we write */

enum redact_media record_head(struct jsonw *, const struct engine *, int,
		    const char *, size_t, size_t);

/* record.c */

/* The answer, as kept by its request or as just received. */
struct answer {
	uint16_t		 an_status;	/* 0: nothing yet */
	const char		*an_address;	/* or NULL */
	struct msg_bytes	 an_fields;
	struct msg_bytes	 an_body;
};

void		 record_station(struct engine *, struct request *,
		    enum record_kind, uint64_t);
void		 record_final(struct engine *, struct request *,
		    enum record_kind, const struct msg_record_closed *,
		    const struct answer *);
void		 record_other(const struct engine *,
		    const struct msg_record_other *);

extern const struct sandbox	 recorder_sandbox;

#endif /* RECORDER_H */
