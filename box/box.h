/* SPDX-License-Identifier: ISC */

/*
 * What the files of egressd-box share.  box.c tells the story.
 */

#ifndef BOX_H
#define BOX_H

#include <sys/stat.h>
#include <sys/types.h>

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "imsg.h"
#include "role.h"
#include "words.h"

/* Exit codes, as env(1) has them. */
#define BOX_FAILED	125		/* ours, not the command's */
#define BOX_NOEXEC	126
#define BOX_NOTFOUND	127

/* Ports of the gate in the sandbox, outside the range of ephemeral ones. */
#define BOX_PORT_TCP	65001
#define BOX_PORT_DNS	65053
#define BOX_LOG_GROUP	1

/* The sandbox's own addresses; the resolver answers at the first. */
#define BOX_ADDRESS4	"198.18.0.1"
#define BOX_ADDRESS6	"fd65:6772:6573:7364::1"

/* Settings of a machine that forbid user namespaces. */
#define BOX_USERNS_HINT	"see user.max_user_namespaces, "		\
			"kernel.unprivileged_userns_clone, "		\
			"kernel.apparmor_restrict_unprivileged_userns"

#define BOX_POD_TRUST	"/egressd/trust/pod"
#define BOX_STDIO	3		/* standard input, output and error */
#define BOX_LIMITS	4		/* limit.c */
#define BOX_WORK	"/work"		/* of a virtual sandbox */

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

/* A path of the host that the sandbox sees, by its real name. */
struct box_path {
	char		*bp_path;
	const char	*bp_on;		/* its path in the sandbox */
	const char	*bp_given;	/* by the caller, or NULL */
	int		 bp_write;
	int		 bp_fd;		/* as root.c found it */
};

struct box_listener {
	enum listen_kind	 bl_kind;
	int			 bl_fd;
};

struct box {
	int			 bx_engine;
	struct imsgbuf		 bx_channel;
	char			*bx_fence;
	char		       **bx_argv;
	struct box_path		*bx_paths;
	size_t			 bx_npaths;
	char			*bx_cwd;	/* as the sandbox sees it */
	const char	       **bx_tops;	/* a cwd must be beneath one */
	size_t			 bx_ntops;
	uint64_t		 bx_virtual;	/* bytes; 0: a local sandbox */
	uint64_t		 bx_limits[BOX_LIMITS]; /* 0: none */
	int			 bx_hands;	/* channel, or -1: a command */
	int			 bx_forward;	/* hands may connect */
	int			 bx_mounts;	/* channel, or -1: none later */
	const char		*bx_home;	/* NULL: none of its own */
	char			*bx_kept_home;	/* of the host, or NULL */
	const char		*bx_user_home;	/* by the user database */
	const char		*bx_covered[2];	/* homes to hide, or NULL */
	const char		*bx_tty;	/* device of the terminal */
	uid_t			 bx_uid;	/* the caller's */
	gid_t			 bx_gid;
	int			 bx_root;	/* be root in there */
	int			 bx_quiet;
	int			 bx_terminal;	/* controlling one, or -1 */
	struct box_listener	 bx_listeners[BOX_LISTENERS];
	size_t			 bx_nlisteners;
	int			 bx_trust[TRUST_KIND_MAX];
	char			 bx_session[SESSION_LEN + 1];
	sigset_t		 bx_mask;	/* as the caller left it */
	int			 bx_stdio[BOX_STDIO]; /* -1: as we have it */
	struct relay		*bx_relays[BOX_STDIO];
	size_t			 bx_nrelays;
	int			 bx_host_sockets; /* connect to them */
	pid_t			 bx_broker;	/* 0: none */
	int			 bx_brokerfd;
};

/* box.c */
int	 box_descriptor(const char *);
void	 box_notice(const struct box *, const char *, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

/* stdio.c */
void	 stdio_vet(struct box *);
void	 stdio_detach(struct box *);
void	 stdio_leave(struct box *);
void	 stdio_enter(const struct box *);

/* relay.c */
struct relay	*relay_new(int, int, int);
void	 relay_forget(struct relay *);
void	 relay_wants(const struct relay *, struct pollfd *);
void	 relay_serve(struct relay *);
void	 relay_finish(struct box *, int);

/* paths.c */
void	 paths_expose(struct box *, const char *, int);
void	 paths_mount(struct box *, const char *, int);
void	 paths_top(struct box *, const char *);
void	 paths_cwd(struct box *, const char *);
void	 paths_home(struct box *);
void	 paths_kept_home(struct box *, const char *);
void	 paths_check_links(const struct box *);

/* ns.c */
void	 ns_enter_outer(const struct box *);
void	 ns_enter_inner(const struct box *);
void	 ns_no_cgroups(void);
void	 ns_drop(void);

/* net.c */
void	 net_up(void);
int	 net_gate(struct box *);

/* gate.c */
void	 gate_offer(struct box *, int);
void	 gate_await(struct box *);

/* mnt.c: nothing in a sandbox gains rights by being run. */
#define MNT_DEVICES	MOUNT_ATTR_NOSUID
#define MNT_PLAIN	(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define MNT_SYSTEM	(MNT_PLAIN | MOUNT_ATTR_RDONLY)

struct mnt {
	int		 mn_host;	/* the host's root directory */
	int		 mn_all;	/* virtual: all to write to, or -1 */
	unsigned int	 mn_next;	/* name of a directory in it */
};

int	 mnt_open(int, const char *, uint64_t);
int	 mnt_open_real(const struct mnt *, const char *);
void	 mnt_target(int, const char *);
void	 mnt_bind(const struct mnt *, const char *, const char *, uint64_t);
void	 mnt_bind_fd(int, const char *, uint64_t);
void	 mnt_bind_real(int, const char *, uint64_t);
void	 mnt_fs(const char *, const char *, const char *, const char *,
	    uint64_t);
void	 mnt_tmpfs(const char *, const char *);
void	 mnt_private(struct mnt *, const char *, mode_t);
int	 mnt_tmpfs_fd(int, const char *);
void	 mnt_read_only(const char *);
void	 mnt_hide(const char *);
void	 mnt_mkdir(const char *, mode_t);
void	 mnt_write(const char *, const void *, size_t);
void	 mnt_write_all(int, const char *, const void *, size_t);
void	 mnt_begin(struct mnt *, uint64_t);
void	 mnt_end(struct mnt *);

/* mounts.c */
void	 mounts_offer(const struct box *);

/* root.c, root_etc.c */
void	 root_build(const struct box *);
int	 root_is_secret(const struct stat *);
void	 root_etc(const struct mnt *, const struct box *);

/* root_apt.c */
void	 root_apt(const struct mnt *);

/* root_nss.c */
void	 root_nss(const struct box *);

/* root_trust.c: files that the sandbox has in /etc besides the host's. */
#define ETC_ADDED	8

struct etc_added {
	const char	*ea_name;	/* in /etc */
	const char	*ea_text;	/* NULL: Chromium's, with the CA */
};

extern const struct etc_added	 etc_added[ETC_ADDED];
extern const char *const	 root_bundles[];
void	 root_trust(const struct box *);

/* env.c */
void	 env_set(const struct box *);

/* broker.c */
void	 broker_start(struct box *);
void	 broker_attend(const struct box *, int);
void	 broker_stop(struct box *);

/* confine.c */
void	 confine_signals(void);
void	 confine_calls(void);
int	 confine_connect(void);

/* limit.c */
void	 limit_option(struct box *, const char *);
void	 limit_set(const struct box *);
int	 limit_command(void);

/* home.c */
int	 home_enter(int, const char *);
void	 home_prepare(struct box *);
void	 home_begin(const struct box *);
void	 home_say_lost(const struct box *);

/* pod.c */
void	 pod_check_rights(void);
void	 pod_confine(void);

/* pod_trust.c */
void	 pod_trust_begin(const char *);
void	 pod_trust_changed(void);

/* keep.c: egressd-box keep */
int	 keep_main(int, char **);

/* install.c: egressd-box install directory */
int	 install_main(int, char **);

/* init.c */
void	 init_run(const struct box *, int) __attribute__((__noreturn__));

/* job.c: words between box and the sandbox's first process. */
enum job_word {
	JOB_EXITED,		/* with this code */
	JOB_KILLED,		/* by this signal */
	JOB_STOPPED,
	JOB_CHECK,		/* is the command still stopped? */
	JOB_STAYS,		/* it is; flags about its group */
	JOB_SIGNAL,		/* pass this one on */
	JOB_CONTINUE
};

#define JOB_OWN_GROUP	0x01	/* not the caller's */
#define JOB_TERMINAL	0x02	/* the terminal's is a group in there */

struct job_message {
	uint8_t	 jm_word;
	uint8_t	 jm_value;
	uint8_t	 jm_epoch;	/* ties an answer to its check */
};

int	 job_run(struct box *, int, pid_t);

#endif /* BOX_H */
