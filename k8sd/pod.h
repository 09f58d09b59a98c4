/* SPDX-License-Identifier: ISC */

/*
 * k8sd: pods of sessions.  A struct pod is what one session has of a pod;
 * several may share one.  Who calls is k8sd's side of controld's channel, and
 * is told by callbacks, never from within the call that it made.
 */

#ifndef POD_H
#define POD_H

#include <stddef.h>
#include <stdint.h>

#include "words.h"

/* Codes of errors that pods have; POD_ERRORS of words.h is all that may be. */
#define POD_CODE_CLUSTER	CODE_CLUSTER_UNREACHABLE	/* or absurd */
#define POD_CODE_REFUSED	CODE_CLUSTER_REFUSED
#define POD_CODE_FOREIGN	CODE_FOREIGN_POD	/* has not our marks */
#define POD_CODE_DIFFERS	CODE_POD_DIFFERS	/* from what we want */
#define POD_CODE_STALE		CODE_STALE_POD		/* has ended */
#define POD_CODE_FOLLOWED	CODE_FOLLOWED_ELSEWHERE	/* another host's */
#define POD_CODE_FAILED		CODE_POD_FAILED		/* events say why */
#define POD_CODE_READY_LATE	CODE_READY_TIMEOUT
#define POD_CODE_DELETE_LATE	CODE_DELETE_TIMEOUT
#define POD_CODE_PHASE		CODE_UNEXPECTED_PHASE

#define POD_NAME_LEN	63	/* a DNS label: also of a Secret */
#define POD_TEXT_LEN	1024	/* of what callbacks are told */

struct gate;
struct pod;

struct pod_wish {
	const char		*pw_session;	/* id, also one made up */
	const char		*pw_sandbox;	/* name of the block */
	uint32_t		 pw_owner;	/* uid */
	int			 pw_named;	/* the client gave the id */
	const char		*pw_cwd;	/* "": as the block says */
	uint64_t		 pw_deadline_ms; /* 0: as the block says */
	const char *const	*pw_variables;	/* NAME=value, to a NULL */
	struct gate		*pw_gate;	/* NULL: none, or pod_gate() */
};

/*
 * pc_done comes once: ready (code NULL, text empty) or failed, after which the
 * pod is no more.  pc_ended comes after a ready one has gone, or after
 * pod_stop(), and is the last.
 */
struct pod_callbacks {
	void	(*pc_progress)(void *, const char *);
	void	(*pc_done)(void *, const char *, const char *, const char *);
				/* code or NULL, name of the pod, text */
	void	(*pc_ended)(void *, enum session_cause, const char *);
	void	(*pc_channel_ended)(void *, uint32_t, const char *);
				/* its number, why */
};

/* Before confinement: the name of this machine. */
void	 pods_warm(void);

/* How the pods of this installation are told from another's; "egressd". */
void	 pods_installation(const char *);

struct pod	*pod_start(const struct pod_wish *,
		    const struct pod_callbacks *, void *);

/* The gate's text, if that comes later; taken. */
void	 pod_gate(struct pod *, struct gate *);

/* A client's connection, taken, is served by hands of its own in the pod. */
void	 pod_attach(struct pod *, int);

/* Whether there is a gate in it, as the block says. */
int	 pod_is_gated(const struct pod *);

/*
 * A channel to the gate, of this number, in place of the one before it, whose
 * end is told.  The descriptor is the caller's end of it, or -1: there is none
 * to be had.  Its end is told, unless the pod's is.
 */
struct pod_channel {
	int		 pn_fd;
	const char	*pn_uid;	/* of the pod */
	const char	*pn_node;
	uint64_t	 pn_term;
	const char	*pn_sha256;	/* of the gate's configuration, or "" */
};
void	 pod_channel(struct pod *, uint32_t, struct pod_channel *);

/*
 * Ends hands and heartbeat, and deletes the pod: POD_KEEP no, POD_DELETE yes,
 * POD_AS_CONFIGURED as the block says.  A pod that others share stays.
 */
enum pod_stop { POD_KEEP, POD_DELETE, POD_AS_CONFIGURED };
void	 pod_stop(struct pod *, enum pod_stop);

/* Without a word to anybody, and whatever is in the cluster stays there. */
void	 pod_forget(struct pod *);

const char	*pod_name(const struct pod *);
const char	*pod_namespace(const struct pod *);

/* ---- what is asked of clusters, of no session's own ---- */

struct pods_ask {
	const char	*pa_sandbox;	/* the block that says where */
	const char	*pa_cluster;	/* check: or NULL: the block's */
	const char	*pa_session;	/* id; list and reap: "" */
	const char	*pa_selector;	/* reap, list: further labels, or "" */
	const char	*pa_container;	/* logs: "": workspace */
	uint32_t	 pa_owner;	/* uid; 0: everybody's */
	uint32_t	 pa_tail;	/* logs: lines; 0: all */
	int		 pa_follow;	/* logs */
	uint64_t	 pa_age_s;	/* reap */
	int		 pa_dry_run;	/* reap */
	int		 pa_fd;		/* logs: taken */
};

#define PODS_AGE_S	(15 * 60)

struct pods_item {
	const char	*pi_session;	/* id; of a check, "" */
	const char	*pi_pod;	/* of a check: what was looked at */
	const char	*pi_text;	/* why, or what is wrong */
	const char	*pi_state;	/* phase; or ok, not, unknown */
	uint32_t	 pi_owner;	/* uid; UINT32_MAX: not known */
	uint64_t	 pi_age_s;	/* since a heartbeat, server's clock */
};

typedef void	 pods_item(void *, const struct pods_item *);
typedef void	 pods_done(void *, const char *, const char *);
				/* code or NULL, text */
struct pods_job;

struct pods_job	*pods_list(const struct pods_ask *, pods_item *, pods_done *,
		    void *);
struct pods_job	*pods_reap(const struct pods_ask *, pods_item *, pods_done *,
		    void *);
struct pods_job	*pods_terminate(const struct pods_ask *, pods_item *,
		    pods_done *, void *);
struct pods_job	*pods_heartbeat(const struct pods_ask *, pods_item *,
		    pods_done *, void *);
struct pods_job	*pods_check(const struct pods_ask *, pods_item *, pods_done *,
		    void *);
struct pods_job	*pods_logs(const struct pods_ask *, pods_item *, pods_done *,
		    void *);
void	 pods_cancel(struct pods_job *);

#endif /* POD_H */
