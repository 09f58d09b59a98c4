/* SPDX-License-Identifier: ISC */

/*
 * k8sd: a pod in a cluster, made or adopted, for one session or several that
 * share it (pod.h has what a session sees).
 */

#ifndef KPOD_H
#define KPOD_H

#include <sys/queue.h>

#include <stdint.h>

#include <event2/event_struct.h>

#include "api.h"
#include "cluster.h"
#include "log.h"
#include "manifest.h"
#include "owned.h"
#include "pod.h"
#include "pod_status.h"
#include "role.h"
#include "watch.h"

#define UID_LEN		63
#define VERSION_LEN	63

struct kpod;

/*
 * failed and ended are the last that a user hears, who is none any more then.
 * A user may leave from within ready, failed and ended.
 */
struct kpod_ops {
	void	(*ko_progress)(void *, const char *);
	void	(*ko_ready)(void *);
	void	(*ko_runs)(void *, int, const char *);	/* later on */
	void	(*ko_failed)(void *, const char *, const char *);
	void	(*ko_ended)(void *, enum session_cause, const char *);
};

struct kpod_user {
	TAILQ_ENTRY(kpod_user)	 ku_entry;
	struct kpod		*ku_kpod;
	int			 ku_told;	/* that it is ready */
	const struct kpod_ops	*ku_ops;
	void			*ku_arg;
};
TAILQ_HEAD(kpod_users, kpod_user);

struct kpod_terms {
	uint64_t		 kt_heartbeat_ms;
	uint64_t		 kt_ready_ms;
	int			 kt_recreate;	/* what has ended */
	struct gate		*kt_gate;	/* counted, or NULL */
	int			 kt_network;	/* a NetworkPolicy, too */
};

enum kpod_state {
	KPOD_LOOK,		/* is it there? */
	KPOD_CREATE,
	KPOD_DRESS,		/* with what it owns */
	KPOD_WAIT,		/* until it runs */
	KPOD_CLAIM,		/* ours to follow? */
	KPOD_READY,
	KPOD_DELETE,
	KPOD_LEAVING		/* until it is gone */
};

struct kpod {
	LIST_ENTRY(kpod)	 kp_entry;
	struct cluster		*kp_cluster;
	char			*kp_namespace;
	char			 kp_name[POD_NAME_LEN + 1];
	char			 kp_uid[UID_LEN + 1];
	char			 kp_version[VERSION_LEN + 1];
	char			 kp_node[HOST_LEN + 1];	/* or "" */
	cJSON			*kp_want;
	struct kpod_terms	 kp_terms;
	enum kpod_state		 kp_state;
	struct kpod_users	 kp_users;
	struct kpod_users	 kp_leavers;	/* until it is deleted */
	struct api_call		*kp_call;
	struct api_call		*kp_beat_call;
	struct api_call		*kp_events_call;
	struct watcher		*kp_watcher;
	struct keeper		*kp_keeper;	/* of our Lease */
	struct event		 kp_timer;
	struct event		 kp_beat;
	int			 kp_dirty;	/* heard during a call: */
#define KPOD_CHANGED	0x1
#define KPOD_MISSING	0x2	/* in a list, which may be an old one */
	int			 kp_created;	/* by us, just now */
	int			 kp_dressed;	/* has all that it owns */
	enum owned_kind		 kp_dress;	/* the next of that */
	int			 kp_was_ready;
	int			 kp_runs;
	unsigned int		 kp_rounds;
	uint64_t		 kp_restarts;
	uint64_t		 kp_term;	/* of its follower */
	int64_t			 kp_renewed_s;	/* its Lease, as first seen */
	uint64_t		 kp_claim_until_ms;
	char			 kp_said[STATUS_LEN];	/* progress */
	char			 kp_fault[STATUS_LEN];	/* last, or "" */
	char			 kp_event[STATUS_LEN];	/* a warning, or "" */
	uint64_t		 kp_wait_until_ms;
	uint64_t		 kp_events_ms;	/* until they are asked for */
};

/*
 * Join the pod of this manifest, which is taken, or begin to have one.  NULL
 * and why, if others have it and mean another.
 */
struct kpod	*kpod_join(struct kpod_user *, struct cluster *, cJSON *,
		    const struct kpod_terms *, char *, size_t);

/*
 * The last one's leave deletes the pod, if asked to: then 1, and ended comes
 * later.  Otherwise 0, and nothing more is heard.
 */
int	 kpod_leave(struct kpod_user *, int);

struct kpod	*kpod_find(const struct cluster *, const char *, const char *);

/* ---- kpod.c, for kpod_calls.c and follow.c ---- */

const char	*kpod_code(const struct api_answer *);
void	 kpod_judge_end(struct kpod *, const cJSON *);
void	 kpod_see_end(struct kpod *, const cJSON *);
void	 kpod_fail_end(struct kpod *, const char *, const char *, ...)
	    LOG_FORMAT(3, 4);
void	 kpod_gone_end(struct kpod *);
void	 kpod_ready(struct kpod *);
void	 kpod_late_end(struct kpod *);
void	 kpod_timer(struct kpod *, uint64_t);
void	 kpod_progress(struct kpod *, const char *, ...) LOG_FORMAT(2, 3);

/* ---- kpod_calls.c ---- */

void	 kpod_look(struct kpod *);
void	 kpod_create(struct kpod *);
void	 kpod_delete(struct kpod *);
void	 kpod_beat_begin(struct kpod *);
void	 kpod_beat_now(struct kpod *);
void	 kpod_beat_end(struct kpod *);
void	 kpod_path(const char *, const char *, const char *, char *, size_t);
char	*kpod_delete_body(const char *, const char *);
char	*kpod_beat_body(struct cluster *, const char *);

/* ---- kpod_events.c: why a pod does not start ---- */

void	 kpod_events_begin(struct kpod *);
void	 kpod_events_ask(struct kpod *);

/* ---- sweep.c: Leases of hosts that died ---- */

struct sweep;

struct sweep	*sweep_begin(struct cluster *, const char *);
void	 sweep_cancel(struct sweep *);

/* ---- dress.c ---- */

/* Then kpod_look(), or kpod_fail_end(). */
void	 kpod_dress(struct kpod *);

/* ---- follow.c: which control host follows a pod ---- */

const char	*follow_me(void);
struct keeper	*keeper_join(struct cluster *, const char *);
void	 keeper_leave(struct keeper *);
/* kpod_ready(), kpod_fail_end() or kpod_look(), now or later. */
void	 kpod_claim(struct kpod *, const cJSON *);
/* 1 unless the pod says that another host has taken it over. */
int	 kpod_is_followed(const cJSON *);

#endif /* KPOD_H */
