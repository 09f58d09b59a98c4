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
#include "secret.h"

struct cluster {
	TAILQ_ENTRY(cluster)	 kc_entry;
	char			 kc_name[NAME_LEN + 1];
	uint8_t			 kc_in_cluster;
	char			 kc_context[PATH_LEN + 1];
	char			 kc_server[PATH_LEN + 1];
	char			 kc_user[PATH_LEN + 1];
	struct secret		*kc_files[FILE_KIND_MAX];
};
TAILQ_HEAD(clusters, cluster);

extern const struct sandbox	 k8sd_sandbox;

/* conf.c */
void	 slice_begin(uint64_t);
int	 slice_weigh(char *, size_t);
void	 slice_commit(void);
void	 slice_abort(void);
int	 k8sd_parent_conf_cluster(struct ipc *, const union msg *);
int	 k8sd_parent_conf_file(struct ipc *, const union msg *);

#endif /* K8SD_H */
