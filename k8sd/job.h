/* SPDX-License-Identifier: ISC */

/*
 * k8sd: what is asked of a cluster and of no session's own: a job has one call
 * at a time, tells items as it finds them, and ends with done.
 */

#ifndef JOB_H
#define JOB_H

#include "kpod.h"

#define SELECTOR_LEN	512

/* A pod that is to be deleted. */
struct victim {
	TAILQ_ENTRY(victim)	 vi_entry;
	char			 vi_name[POD_NAME_LEN + 1];
	char			 vi_uid[UID_LEN + 1];
	char			 vi_version[VERSION_LEN + 1];
	char			*vi_session;
	char			 vi_state[24];
	char			 vi_text[STATUS_LEN];
	uint32_t		 vi_owner;
	uint64_t		 vi_age_s;
	int			 vi_gated;
};
TAILQ_HEAD(victims, victim);

struct pods_job {
	struct cluster		*pj_cluster;
	char			*pj_namespace;
	char			*pj_session;	/* or "" */
	char			 pj_name[POD_NAME_LEN + 1];
	char			 pj_selector[3 * SELECTOR_LEN + 4];
	uint32_t		 pj_owner;	/* uid; 0: everybody's */
	uint32_t		 pj_owns;	/* uid: whose the pod is */
	uint64_t		 pj_age_s;
	int			 pj_dry_run;
	int			 pj_reaps;
	int			 pj_heartbeat;	/* else terminate */
	unsigned int		 pj_rounds;
	size_t			 pj_check;	/* next of the checks */
	char			*pj_continue;
	struct victims		 pj_victims;
	struct api_call		*pj_call;
	struct owned		*pj_owned;
	int			 pj_gated;
	char			 pj_uid[UID_LEN + 1];
	struct event		 pj_event;
	const char		*pj_code;
	char			 pj_text[POD_TEXT_LEN];
	int			 pj_fd;
	struct event		 pj_gone;	/* logs: the client */
	char			*pj_log;
	size_t			 pj_log_len;
	size_t			 pj_log_done;
	int			 pj_log_slow;
	pods_item		*pj_item;
	pods_done		*pj_done;
	void			*pj_arg;
};

/* An unknown sandbox or cluster is told from the event loop. */
struct pods_job	*job_new(const struct pods_ask *, pods_item *, pods_done *,
		    void *, int *);
void	 job_over(struct pods_job *, const char *, const char *);
void	 job_failed(struct pods_job *, const struct api_answer *);
uint32_t	 job_owner(const cJSON *);
int	 job_may(const struct pods_job *, const cJSON *);
void	 job_call(struct pods_job *, const char *, const char *,
	    const char *, const char *, const char *, api_done *);

#endif /* JOB_H */
