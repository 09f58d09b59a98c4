/* SPDX-License-Identifier: ISC */

/*
 * k8sd: what a session has of a pod, for pod.c and pod_start.c alone.
 */

#ifndef POD_PARTS_H
#define POD_PARTS_H

#include <sys/queue.h>

#include <event2/event_struct.h>

#include "kpod.h"
#include "pod.h"

/* A client; its descriptor waits while the workspace does not run. */
struct attach {
	TAILQ_ENTRY(attach)	 at_entry;
	struct pod		*at_pod;
	struct exec		*at_exec;	/* NULL: waits */
	int			 at_fd;		/* or -1 */
	struct event		 at_timer;	/* while it waits */
};

struct pod {
	struct kpod_user	 po_user;
	struct cluster		*po_cluster;
	char			*po_namespace;
	char			 po_name[POD_NAME_LEN + 1];
	char			*po_session;
	char			*po_sandbox;
	char			*po_variables;	/* a NUL behind each */
	const char		**po_list;	/* of them, to a NULL */
	uint32_t		 po_owner;
	int			 po_named;
	uint64_t		 po_deadline_ms;
	struct gate		*po_gate;
	int			 po_waits;	/* for that */
	struct api_call		*po_call;	/* for the version */
	char			*po_cwd;
	char			*po_git;
	char			*po_ref;
	uint64_t		 po_git_ms;
	int			 po_forward;
	int			 po_gated;
	int			 po_delete;	/* when it is stopped */
	int			 po_done;	/* told that it is ready */
	int			 po_stopping;
	struct source		*po_source;
	struct exec		*po_channel_exec;
	uint32_t		 po_channel;	/* its number */
	TAILQ_HEAD(, attach)	 po_attaches;
	size_t			 po_nattaches;
	struct event		 po_event;	/* what is to be told */
	const char		*po_code;
	char			 po_text[POD_TEXT_LEN];
	struct pod_callbacks	 po_callbacks;
	void			*po_arg;
};

/* ---- pod.c ---- */

extern const struct kpod_ops	 pod_ops;

/* Told from the event loop; and unless something else comes before. */
void	 pod_fail_later(struct pod *, const char *, const char *, ...)
	    LOG_FORMAT(3, 4);
void	 pod_fail_after(struct pod *, unsigned int, const char *,
	    const char *);
void	 pod_on_event(evutil_socket_t, short, void *);

#endif /* POD_PARTS_H */
