/* SPDX-License-Identifier: ISC */

/*
 * The parent: it holds the privileges and the configuration, starts the
 * other processes, hands them what they need and stays out of the way.
 */

#ifndef PARENT_H
#define PARENT_H

#include <sys/types.h>
#include <sys/queue.h>

#include <stdbool.h>

#include "cgroup.h"
#include "conf.h"
#include "ipc.h"
#include "launch.h"
#include "log.h"

extern const char	*path_libexec;	/* where the programs are */
extern const char	*path_run;	/* where the chroots are */
extern const char	 path_conf[];
extern const char	 path_socket[];
void	 paths_init(void);

/* What an attempt ends in when it does not succeed: a text for people. */
struct why {
	char	 text[TEXT_LEN];
};
int	 why_set(struct why *, const char *, ...) LOG_FORMAT(2, 3);

/*
 * A started program.  Closing its channel asks it to end; a process that
 * does not follow within STOP_TIMEOUT_MS is killed, and so is an engine that
 * does not start within START_TIMEOUT_MS.
 */
struct proc {
	TAILQ_ENTRY(proc)	 pr_entry;
	enum role		 pr_role;
	uint32_t		 pr_instance;
	pid_t			 pr_pid;
	uid_t			 pr_uid;	/* 0: started without root */
	struct ipc		*pr_ipc;	/* NULL once it must end */
	struct logpipe		*pr_log;
	struct session		*pr_session;	/* of an engine */
	uint64_t		 pr_generation;	/* sent to it last */
	bool			 pr_voted;	/* on that */
	bool			 pr_weighs;	/* an engine without session */
	bool			 pr_ends;	/* its sandbox has ended */
	char			 pr_name[SESSION_LEN + 16];
	struct event		 pr_deadline;
};
TAILQ_HEAD(procs, proc);

/*
 * A session.  A fixed one is the configuration's and its engine comes and
 * goes; one for a sandbox was asked for by a control client and ends with its
 * engine, if it has one.
 */
struct session {
	TAILQ_ENTRY(session)	 se_entry;
	char			 se_name[SESSION_LEN + 1];
	char			 se_policy[NAME_LEN + 1];	/* "": fixed */
	int			 se_box;	/* for the engine, or -1 */
	struct box		*se_boxed;	/* that we make, or NULL */
	bool			 se_engineless;	/* no gate of ours holds it */
	bool			 se_runs;	/* its engine does */
	bool			 se_asked;	/* controld waits to hear */
	uint32_t		 se_number;	/* controld's; 0: fixed */
	bool			 se_opened;	/* policyd knows it */
	char			*se_environment; /* names; NULL: not told */
	const char		*se_why;	/* it did not start */
	const char		*se_text;	/* of its end, while it ends */
	bool			 se_refused;	/* not for its client */
	enum session_cause	 se_cause;	/* of its end */
	struct proc		*se_engine;
	uint64_t		 se_started;	/* clock_ms() */
	unsigned int		 se_delay_ms;	/* before the next start */
	struct event		 se_retry;
	bool			 se_trusted;	/* its trust is written */
};

#define STOP_TIMEOUT_MS		400
#define VOTE_TIMEOUT_MS		5000
#define ENGINE_TIMEOUT_MS	1000
#define BOX_TIMEOUT_MS		5000	/* the memory of all in there */
#define START_TIMEOUT_MS	20000	/* hundreds may start at once */

struct daemon {
	struct event_base	*d_base;
	const char		*d_conf_path;
	const char		*d_socket;	/* -s, or NULL */
	int			 d_client;	/* -C: the only client, or -1 */
	bool			 d_private;	/* -p: for a single run */
	struct config		*d_conf;	/* running */
	struct runtime		*d_runtime;	/* its open files */
	uint64_t		 d_generation;	/* 0 before the first */
	uint64_t		 d_life;	/* not that of any other */
	uint64_t		 d_started;	/* ns since the epoch */
	bool			 d_privileged;
	bool			 d_debug;	/* -d */
	bool			 d_journal;	/* lines have a priority */
	int			 d_verbose;	/* -v */
	const char		*d_launcher;	/* its socket, or NULL */
	enum cgroup_use		 d_cgroup;	/* of sandboxes */
	bool			 d_ready;
	bool			 d_stopping;
	int			 d_status;	/* to exit with */
};
extern struct daemon	 d;

/* parent.c */
void		 parent_stop(int);
void		 parent_progress(void);
enum log_level	 parent_log_level(const struct config *);
struct config	*parent_parse(struct conf_errors *);

/* proc.c */
extern struct procs	 procs;
int		 procs_start(void);
void		 procs_stop(void);
void		 procs_reap(void);
struct proc	*proc_find(enum role);
bool		 procs_all_run(uint32_t);
void		 procs_log_level(enum log_level);
struct proc	*proc_by_instance(uint32_t);
void		 proc_start_engine(struct session *);
struct proc	*proc_start_weigher(void);
void		 proc_started(struct proc *);
void		 proc_end(struct proc *);
void		 proc_ends(struct proc *);
void		 proc_kill(struct proc *, const char *);
bool		 proc_owns_uid(uid_t);

/* session.c */
void		 sessions_follow(const struct config *);
void		 session_engine_gone(struct session *);
void		 session_engine_runs(struct session *);
void		 sessions_start(void);
const struct conf_policy *session_policy(const struct config *,
		    const struct session *);
int		 parent_controld_session_ask(struct ipc *, const union msg *);
int		 parent_controld_session_stop(struct ipc *, const union msg *);
int		 parent_controld_sandbox_ask(struct ipc *, const union msg *);
int		 parent_controld_session_attach(struct ipc *,
		    const union msg *);
int		 parent_controld_session_mount(struct ipc *,
		    const union msg *);
void		 session_box_serves(struct session *);
void		 session_box_gone(struct session *, const char *);

/* program.c, program_exec.c */
struct program_spec {
	const struct conf_words	*ps_command;
	const char		*ps_user;	/* NULL: that of the role */
	uid_t			 ps_uid;	/* without a name: this one */
	const struct conf_words	*ps_environment; /* or NULL: PATH, and */
	const char		*ps_session;	/* its session, or NULL, and */
	const struct conf_pairs	*ps_variables;	/* more, or NULL */
	enum role		 ps_role;	/* which asked for it */
	const char		*ps_name;	/* in the log */
	const struct cgroup	*ps_cgroup;	/* to be in, or NULL */
	const char		*ps_launcher;	/* that starts it, or NULL */
};
struct program	*program_start(const struct program_spec *, int *,
		    void (*)(void *, const char *), void *);
void		 program_kill(const struct program *);
void		 program_reaped(pid_t, int);
void		 programs_stop(void);
struct program	*program_serve(const struct program_spec *, int,
		    void (*)(void *, const char *), void *);
void		 program_exec(const struct program_spec *, int, int)
		    __attribute__((__noreturn__));
void		 program_supervise(const struct program_spec *, int, int)
		    __attribute__((__noreturn__));

/* Steps of a new process; whatever fails is said, and ends it. */
struct passwd;
void		 exec_fail(const char *) __attribute__((__noreturn__));
void		 exec_say(const char *, ...) __attribute__((__noreturn__))
		    LOG_FORMAT(1, 2);
void		 exec_as(const struct passwd *);
void		 exec_refuse(const char *, ...) __attribute__((__noreturn__))
		    LOG_FORMAT(1, 2);
void		 exec_signals(void);
void		 exec_limits(void);

/* Who is at the other end of a connection; see peer.c. */
#define PEER_GROUPS_MAX	1024

struct peer {
	uid_t	 pe_uid;
	gid_t	 pe_gid;
	pid_t	 pe_pid;
	size_t	 pe_ngroups;	/* 0 if there are more, or nobody knows */
	gid_t	 pe_groups[PEER_GROUPS_MAX];
};

/* attached.c */
struct attached_list {
	TAILQ_HEAD(, attached)	 al_head;
	unsigned int		 al_count;
};
uint32_t	 attached_add(struct attached_list *, const struct session *,
		    int);
void		 attached_end(struct attached_list *, uint32_t);
void		 attached_end_all(struct attached_list *);

/* launch_exec.c */
void		 launch_exec(const struct launch *)
		    __attribute__((__noreturn__));

/* box.c, box_exec.c, box_group.c */
#define EXEC_REFUSED	77	/* exit status: not for this client */
struct box_spec {
	char			 bs_sandbox[NAME_LEN + 1];	/* or "" */
	uid_t			 bs_uid;	/* of the client */
	gid_t			 bs_gid;
	char			 bs_cwd[PATH_LEN + 1];	/* or "" */
	char			*bs_variables;	/* a NUL behind each */
	size_t			 bs_variableslen;
	int			 bs_said;	/* for the launcher, or -1 */
	int			 bs_namespace;	/* for box -n, or -1 */
	struct peer		 bs_client;	/* with its groups */
	char			*bs_mounts;	/* of the start: mount_next() */
	size_t			 bs_mountslen;
};
struct mount_spec;
struct box	*box_new(const struct msg_sandbox_ask *, const struct peer *,
		    int *);
int		 box_start(struct box *, struct session *, struct why *);
bool		 box_serves(const struct box *);
bool		 box_is_gated(const struct box *);
bool		 box_is_pod(const struct box *);
const struct conf_sandbox *box_gated_pod(const struct box *);
bool		 box_in_cgroup(const struct box *);
void		 box_attach(struct box *, int);
void		 box_end(struct box *);
bool		 box_kill(const struct box *);
bool		 box_stop(struct box *);
void		 box_let_go(struct box *);
bool		 box_reaped(pid_t, int);
bool		 boxes_stop(void);
void		 box_exec(const struct box_spec *, const struct conf_sandbox *,
		    int, int, int) __attribute__((__noreturn__));
void		 box_groups_begin(void);
uint64_t	 box_memory(const struct conf_sandbox *);
int		 box_group_new(const struct conf_sandbox *, struct cgroup **);
void		 box_group_drop(struct cgroup *);
const struct passwd *box_user(const struct box_spec *,
		    const struct conf_sandbox *);
bool		 box_is_mountable(const struct conf_sandbox *);
const char	*box_mount_later(struct box *, struct mount_spec *);
void		 box_mounted(struct box *, const char *);

/*
 * mount.c, mount_exec.c, mount_move.c: what a client wants to have in its
 * sandbox
 */
#define MOUNT_FD_TREE		3	/* of who makes one */
#define MOUNT_FD_NAMESPACE	4

struct mount_spec {
	struct box		*ms_box;
	const char		*ms_session;
	const char		*ms_sandbox;	/* its block */
	const struct box_spec	*ms_owner;
	int			 ms_namespace;	/* box/mounts.c */
	uint32_t		 ms_cookie;	/* 0: part of the start */
	struct peer		 ms_client;	/* with whose rights */
	const char		*ms_source;
	const char		*ms_target;
	bool			 ms_write;
};
void		 mount_begin(const struct mount_spec *);
bool		 mount_reaped(pid_t, int);
void		 mounts_end(const struct box *);
bool		 mount_next(const struct msg_bytes *, size_t *,
		    struct mount_spec *);
int		 mount_count(const struct msg_bytes *);
void		 mount_exec_begin(int, int, int);
void		 mount_exec_opener(const struct mount_spec *, int, int)
		    __attribute__((__noreturn__));
void		 mount_exec_mover(const struct mount_spec *,
		    const struct conf_sandbox *, int, int)
		    __attribute__((__noreturn__));

/* open.c: descriptors for children */
int		 parent_child_open_ask(struct ipc *, const union msg *);
int		 parent_child_open_done(struct ipc *, const union msg *);

/* needs.c */
int		 needs_check(struct why *);
bool		 needs_net_admin(void);

/* identity.c */
int		 identity_check(const struct config *, struct why *);
void		 identity_sandboxes(const struct config *,
		    struct conf_errors *);
void		 identity_get(enum role, uid_t *, gid_t *);
bool		 identity_owns(uid_t);
const char	*identity_root(enum role);

/* reload.c */
void		 reload_start(struct config *, struct runtime *);
void		 reload_ask(const uint32_t *);
void		 reload_engine(struct proc *);
void		 reload_weigh(void);
void		 reload_weigher_gone(bool);
bool		 reload_running(void);
void		 reload_drop(void);
int		 parent_child_conf_ack(struct ipc *, const union msg *);
int		 parent_child_conf_nak(struct ipc *, const union msg *);
int		 parent_child_conf_done(struct ipc *, const union msg *);

/* slice.c, slice_k8sd.c */
void		 send_resolvers(struct ipc *, const struct config *);
void		 slice_k8sd(struct proc *, const struct config *,
		    struct runtime *);
void		 slice_send(struct proc *, const struct config *,
		    struct runtime *);

/* runtime.c */
struct runtime	*runtime_open(const struct config *, const struct runtime *,
		    struct why *);
void		 runtime_commit(struct runtime *, struct runtime *);
void		 runtime_abort(struct runtime *);
void		 runtime_withdraw(struct runtime *);
void		 runtime_remove(struct runtime *);
int		 runtime_take_control(struct runtime *, bool);
int		 runtime_take_file(struct runtime *, const char *);
struct auditfile *runtime_audit(struct runtime *);
const struct bounds *runtime_bounds(const struct runtime *);
struct kubes;
struct kubes	*runtime_kubes(struct runtime *);

/* keys.c */
int		 key_open(const struct conf_pos *, const char *, struct why *);
int		 key_open_any(const struct conf_pos *, const char *, uid_t *,
		    struct why *);
void		 keys_warn(const struct config *, bool);

/* podconf.c */
int		 podconf_send(const struct session *,
		    const struct conf_sandbox *, struct why *);

/* auditfile.c */
struct auditfile {
	int	 af_fd;			/* -1: none, or the same */
	bool	 af_same;		/* as the generation before has */
	int	 af_tip;		/* names its end; -1: taken, or none */
	int	 af_ack;		/* of a spool, the same */
	dev_t	 af_dev;
	ino_t	 af_ino;
	char	 af_path[PATH_LEN];
};

int		 auditfile_open(struct auditfile *, const struct config *,
		    const struct auditfile *, struct why *);
int		 auditfile_stdout(bool *);

/* place.c */
int		 place_open(const char *, uid_t, struct why *);
int		 place_check(const char *, uid_t, struct why *);
int		 place_file(const char *, int, mode_t, struct why *);
int		 place_read(const char *, struct why *);

/* bound.c */
struct bound;
TAILQ_HEAD(bounds, bound);
int		 bounds_open(struct bounds *, const struct config *,
		    const struct bounds *, struct why *);
int		 bounds_send(const struct bounds *, struct proc *);
void		 bounds_close(struct bounds *);

/* trust.c */
#define SYSTEM_BUNDLE	"/etc/ssl/certs/ca-certificates.crt"

const char	*trust_bundle(const struct config *,
		    const struct conf_session *);
int		 trust_send(struct proc *, const struct config *,
		    const struct conf_session *);
bool		 trust_is_given(const struct config *);
int		 trust_offer(struct proc *, const struct config *);
int		 trust_directory(const char *, struct why *);
int		 parent_engine_trust(struct ipc *, const union msg *);

/* control.c: what children say, most of it for controld's clients */
extern const ipc_handler parent_handlers[MSG_MAX];
int		 parent_controld_status_ask(struct ipc *, const union msg *);
int		 parent_controld_reload_ask(struct ipc *, const union msg *);
int		 parent_controld_log_ask(struct ipc *, const union msg *);
int		 parent_controld_peer_ask(struct ipc *, const union msg *);
int		 parent_controld_follow_ask(struct ipc *, const union msg *);
int		 parent_controld_serve_ask(struct ipc *, const union msg *);
int		 parent_child_engine_bad(struct ipc *, const union msg *);

/* sockets.c */
int		 sockets_check(const struct config *, struct why *);
int		 parent_dialer_socket_ask(struct ipc *, const union msg *);
size_t		 addresses_own(struct addr *, size_t);

/* resolv.c */
size_t		 resolv_parse(char *, struct addr *, size_t);
size_t		 resolv_system(struct addr *, size_t);

/* peer.c */
void		 peer_init(void);
bool		 peer_who(int, struct peer *);
bool		 peer_welcome(int, struct peer *, bool);
void		 peer_program(int, const struct peer *,
		    char [PROGRAM_LEN + 1]);

/* notify.c */
void		 notify_init(void);
void		 notify_send(const char *);

/* logpipe.c */
void		 log_to_syslog(void);
struct logpipe	*logpipe_new(struct event_base *, const char *, int *);
void		 logpipe_limit(struct logpipe *, unsigned int);
void		 logpipe_finish(struct logpipe *, char *, size_t);
void		 logpipe_free(struct logpipe *);

/* pidfile.c */
int		 pid_lock(const char *, struct why *);
int		 pid_publish(struct why *);
void		 pid_withdraw(void);

#endif /* PARENT_H */
