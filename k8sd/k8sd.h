/* SPDX-License-Identifier: ISC */

/*
 * k8sd: speaks to API servers.  It holds the cluster credentials, trusts the
 * parent and treats every API server's answer as a stranger's.
 */

#ifndef K8SD_H
#define K8SD_H

#include <sys/queue.h>

#include <stdint.h>

#include "child.h"
#include "opening.h"

extern const struct sandbox	 k8sd_sandbox;

/* conf.c */
void	 slice_begin(uint64_t);
int	 slice_weigh(char *, size_t);
void	 slice_commit(void);
void	 slice_abort(void);
int	 k8sd_parent_conf_cluster(struct ipc *, const union msg *);
int	 k8sd_parent_conf_file(struct ipc *, const union msg *);
int	 k8sd_parent_conf_resolver(struct ipc *, const union msg *);

/* conf_pod.c */
struct pod_conf;
void	 pods_commit(void);
void	 pods_abort(void);
int	 pods_weigh(char *, size_t);
int	 pod_conf_file(struct ipc *, const union msg *, char *, size_t);
int	 k8sd_parent_conf_pod(struct ipc *, const union msg *);
int	 k8sd_parent_conf_pod_text(struct ipc *, const union msg *);

/* gate.c */
int	 k8sd_parent_pod_conf(struct ipc *, const union msg *);

/* control.c */
void	 control_open(int);

#endif /* K8SD_H */
