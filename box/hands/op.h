/* SPDX-License-Identifier: ISC */

/*
 * What the files of the hands share; hands.c tells the story.
 */

#ifndef OP_H
#define OP_H

#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "hands.h"
#include "jsonr.h"
#include "jsonw.h"

/* egressd-box(5), but for the last three. */
#define FRAME_HEADER	12
#define FRAME_MAX	65536
#define CREDIT_START	262144
#define REQUESTS_MAX	64
#define CONNS_MAX	32
#define SLICE		65536		/* bytes of a file at a time */
#define OUT_HIGH	CREDIT_START	/* queued: requests wait */
#define OUT_STOP	(1024 * 1024)	/* queued: the client is not heard */

enum frame_kind {
	FRAME_CALL = 1,
	FRAME_RESULT,
	FRAME_ERROR,
	FRAME_DATA,
	FRAME_DATA_ERR,
	FRAME_END,
	FRAME_CREDIT,
	FRAME_CANCEL,
	FRAME_NOTE,
	FRAME_ITEM
};

struct conn;
struct op;
struct request;

/* hands.c */
const struct rlimit *hands_files(void);

/* loop.c: a descriptor that poll(2) is asked about; it stays its owner's. */
struct watch;

struct watch	*watch_new(int, short (*)(void *), void (*)(void *), void *);
void		 watch_free(struct watch *);
int		 loop_turn(int);
int64_t		 loop_clock(void);	/* milliseconds */

/* conn.c */
TAILQ_HEAD(conn_list, conn);
TAILQ_HEAD(request_list, request);

struct conn {
	TAILQ_ENTRY(conn)	 cn_entry;
	const struct hands_options *cn_options;
	int			 cn_in;
	int			 cn_out;
	struct watch		*cn_reader;
	struct watch		*cn_writer;
	uint8_t			*cn_inbuf;
	size_t			 cn_inlen;
	int			 cn_stalled;	/* frames wait for answers */
	uint8_t			*cn_outbuf;
	size_t			 cn_outoff;
	size_t			 cn_outlen;
	size_t			 cn_outsize;
	struct request_list	 cn_requests;
	size_t			 cn_nrequests;
	int			 cn_ended;	/* only what is queued goes */
	int			 cn_refused;	/* it broke the protocol */
	int			 cn_lost;	/* nobody reads any more */
	int64_t			 cn_deadline;	/* if ended */
};

struct conn	*conn_new(int, int, const struct hands_options *);
void	 conn_free(struct conn *);
int	 conn_serve(struct conn *);
int	 conn_wait(const struct conn *, int64_t);
uint8_t	*conn_frame(struct conn *, size_t);
void	 conn_frame_end(struct conn *, uint32_t, enum frame_kind, size_t);
void	 conn_send(struct conn *, uint32_t, enum frame_kind, const void *,
	    size_t);
void	 conn_refuse(struct conn *, const char *);

/* member.c: what a call may say, and where in the state it goes. */
enum member_type {
	MEMBER_STRING,		/* const char * */
	MEMBER_INTEGER,		/* int64_t */
	MEMBER_BOOL,		/* int */
	MEMBER_STRINGS,		/* const struct jsonr *, an array */
	MEMBER_MAP,		/* the same, an object of strings */
	MEMBER_OBJECT		/* the same, of anything */
};

struct member {
	const char		*mb_name;
	enum member_type	 mb_type;
	size_t			 mb_offset;
	int			 mb_must;
	int64_t			 mb_min;
	int64_t			 mb_max;
	int64_t			 mb_preset;
};

#define MUST_STRING(s, name, member) \
	{ name, MEMBER_STRING, offsetof(struct s, member), 1, 0, 0, 0 }
#define MAY_STRING(s, name, member) \
	{ name, MEMBER_STRING, offsetof(struct s, member), 0, 0, 0, 0 }
#define MAY_INTEGER(s, name, member, min, max, preset) \
	{ name, MEMBER_INTEGER, offsetof(struct s, member), 0, min, max, \
	    preset }
#define MUST_INTEGER(s, name, member, min, max) \
	{ name, MEMBER_INTEGER, offsetof(struct s, member), 1, min, max, 0 }
#define MAY_BOOL(s, name, member, preset) \
	{ name, MEMBER_BOOL, offsetof(struct s, member), 0, 0, 0, preset }
#define MAY_OTHER(s, name, type, member) \
	{ name, type, offsetof(struct s, member), 0, 0, 0, 0 }
#define MEMBERS_END	{ NULL, MEMBER_BOOL, 0, 0, 0, 0, 0 }

int	 members_take(const struct member *, const struct jsonr *, void *,
	    char *, size_t);
int	 members_whole(const struct jsonr *, char *, size_t);

/*
 * request.c.  A request is over when it is answered; nothing of its operation
 * is called after that but op_free.
 */
struct request {
	TAILQ_ENTRY(request)	 rq_entry;
	struct conn		*rq_conn;
	uint32_t		 rq_id;
	const struct op		*rq_op;
	struct jsonr		*rq_call;	/* owns the strings of state */
	void			*rq_state;
	uint64_t		 rq_credit;	/* bytes that we may send */
	uint64_t		 rq_allowed;	/* bytes that we may be sent */
	uint64_t		 rq_eaten;	/* to be allowed again */
	int			 rq_busy;	/* op_step has work to do */
	int			 rq_ended;	/* no more DATA will come */
	int			 rq_over;
	int64_t			 rq_deadline;	/* of op_late, or 0 */
	char			*rq_item;	/* waits for room */
	size_t			 rq_itemlen;
};

/* Members may be NULL, where nothing is to be done. */
struct op {
	const char		*op_name;
	const struct member	*op_members;
	size_t			 op_size;	/* of the state */
	void			(*op_start)(struct request *);
	void			(*op_step)(struct request *);
	void			(*op_data)(struct request *, const uint8_t *,
				    size_t);
	void			(*op_end)(struct request *);
	void			(*op_note)(struct request *,
				    const struct jsonr *);
	void			(*op_cancel)(struct request *);
	void			(*op_late)(struct request *);
	void			(*op_free)(struct request *);
};

struct request	*request_find(struct conn *, uint32_t);
void	 request_call(struct conn *, uint32_t, struct jsonr *);
void	 request_free(struct request *);
int	 request_runs(const struct request *);
void	 request_run(struct request *);
void	 request_cancel(struct request *);
size_t	 request_room(const struct request *);
void	 request_data(struct request *, enum frame_kind, const void *, size_t);
ssize_t	 request_read(struct request *, enum frame_kind, int, size_t);
ssize_t	 request_pread(struct request *, int, size_t, off_t);
void	 request_send_end(struct request *);
void	 request_item(struct request *, struct jsonw *);
void	 request_item_text(struct request *, const char *, size_t);
void	 request_answer(struct request *, enum frame_kind, const char *,
	    size_t);
void	 request_eat(struct request *, size_t);

/* Answers.  A writer is begun by request_writer() and ended by the other. */
struct jsonw	*request_writer(void);
void	 request_result(struct request *, struct jsonw *);
void	 request_error(struct request *, const char *, const char *, ...)
	    __attribute__((__format__(__printf__, 3, 4)));
void	 request_failed(struct request *, int, const char *);
void	 request_error_with(struct request *, const char *, const char *,
	    uint64_t, const char *, ...)
	    __attribute__((__format__(__printf__, 5, 6)));
const char *error_code(int);

/* The operations: a row each, in the order in which hello names them. */
#define OPERATIONS(X)							\
	X(read) X(write) X(edit) X(exec) X(glob) X(grep) X(list) X(stat) \
	X(mkdir) X(remove) X(forward) X(mount)

#define OPERATION_DECLARE(name)	extern const struct op op_##name;
OPERATIONS(OPERATION_DECLARE)
#undef OPERATION_DECLARE

int	 op_offered(const struct op *, const struct hands_options *);
const struct op *op_at(size_t);

/* file.c */
int	 file_open(const char *, struct stat *);
int	 file_mkdirs(const char *, mode_t, int *);
const char *file_type(mode_t);
void	 file_members(struct jsonw *, const struct stat *);

/* replace.c: a file's new contents, until they are in its place. */
struct replace {
	char		*rp_path;	/* behind all links */
	char		*rp_name;	/* of the staged file, or NULL: none */
	int		 rp_fd;		/* the new contents */
	int		 rp_beside;	/* on the target's file system */
	int		 rp_created;	/* there was none */
	int		 rp_target;	/* written in place, or -1 */
	off_t		 rp_len;
	off_t		 rp_max;
	off_t		 rp_copied;
	mode_t		 rp_mode;
	uid_t		 rp_uid;
	gid_t		 rp_gid;
};

#define REPLACE_MODE	0644

int	 replace_begin(struct replace *, const char *, mode_t);
int	 replace_write(struct replace *, const void *, size_t);
int	 replace_commit(struct replace *);
int	 replace_copy(struct replace *);
void	 replace_free(struct replace *);

/* feed.c: bytes from the client to a descriptor that may block. */
struct feed {
	struct request	*fe_request;
	int		 fe_fd;		/* -1: none yet, or closed */
	int		 fe_closed;	/* bytes are dropped */
	struct watch	*fe_watch;
	uint8_t		*fe_buf;
	size_t		 fe_off;
	size_t		 fe_len;
	size_t		 fe_size;
	int		 fe_ended;	/* the client has sent END */
	uint64_t	 fe_total;
	void		(*fe_done)(struct request *);	/* all is written */
};

void	 feed_start(struct feed *, struct request *, int,
	    void (*)(struct request *));
void	 feed_put(struct feed *, const uint8_t *, size_t);
void	 feed_end(struct feed *);
void	 feed_free(struct feed *);

/* names.c: the names in a directory, in order. */
struct names;

struct names	*names_new(void);
int	 names_open(struct names *, int, const char *, int);
int	 names_read(struct names *);
int	 names_add(struct names *, const char *, unsigned char);
const char *names_next(struct names *, unsigned char *);
int	 names_fd(const struct names *);
size_t	 names_bytes(const struct names *);
void	 names_free(struct names *);

/* pattern.c: alternatives of segments, and how far a path has got. */
struct pattern;

struct pattern_state {
	size_t		 pa_n;
	uint16_t	 pa_at[];	/* segments that may come next */
};

#define PATTERN_HIT	0x01	/* the path is what was asked for */
#define PATTERN_HIT_DIR	0x02	/* it is, if it is a directory */

struct pattern	*pattern_new(const char *, const char **);
void	 pattern_free(struct pattern *);
int	 pattern_absolute(const struct pattern *);
struct pattern_state *pattern_start(const struct pattern *);
struct pattern_state *pattern_step(const struct pattern *,
	    const struct pattern_state *, const char *, int, int *);
const char *pattern_literal(const struct pattern *,
	    const struct pattern_state *, size_t);
int	 pattern_match(const struct pattern *, const char *);

/* supervise.c: between the hands and the supervisor of a command. */
enum word {
	WORD_KILL = 'K',	/* to it: end the tree */
	WORD_SIGNAL = 'S',	/* to it: this one, to the command's group */
	WORD_LEAVE = 'L',	/* to it: the command has ended; go */
	WORD_FAILED = 'F',	/* an errno before the command began */
	WORD_CWD = 'C',		/* the same, of its directory */
	WORD_ENDED = 'X',	/* the command, with this status */
	WORD_DONE = 'D'		/* nothing of the tree is left */
};

struct word_message {
	int	 wm_word;
	int	 wm_value;
};

struct command {
	char *const	*co_argv;
	char *const	*co_env;
	const char	*co_cwd;	/* or NULL */
	int		 co_stdio[3];
	int		 co_tty;	/* the three are a terminal */
	const struct rlimit *co_files;	/* as it was before we raised it */
};

pid_t	 supervise(const struct command *, int);
void	 tree_kill(int64_t);

/* drain.c: pipes of commands that left somebody behind. */
void	 drain_add(int);
int	 drain_wanted(void);

/* worker.c: an operation in a process of its own. */
struct worker {
	TAILQ_ENTRY(worker)	 wo_entry;
	int			 wo_listed;
	struct request		*wo_request;
	pid_t			 wo_pid;	/* 0: none */
	int			 wo_fd;
	struct watch		*wo_watch;
	uint8_t			*wo_buf;
	size_t			 wo_len;
	int			 wo_ended;
};

void	 worker_start(struct worker *, struct request *,
	    void (*)(struct request *));
void	 worker_step(struct worker *);
void	 worker_reaped(pid_t);
void	 worker_free(struct worker *);
void	 worker_item(struct jsonw *);
void	 worker_result(struct jsonw *) __attribute__((__noreturn__));
void	 worker_error(const char *, const char *, ...)
	    __attribute__((__format__(__printf__, 2, 3), __noreturn__));

#endif /* OP_H */
