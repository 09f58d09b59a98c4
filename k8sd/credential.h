/* SPDX-License-Identifier: ISC */

/*
 * k8sd: what a cluster is made of.  For conf.c, cluster.c and credential.c;
 * everybody else has cluster.h.
 */

#ifndef CREDENTIAL_H
#define CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include <event2/event.h>

#include "child.h"
#include "cluster.h"
#include "msg.h"
#include "opening.h"
#include "secret.h"

#define TOKEN_LEN	(32 * 1024)

struct cluster_waiter {
	TAILQ_ENTRY(cluster_waiter) cw_entry;
	uint64_t		 cw_turn;	/* in which it began */
	cluster_ready		*cw_ready;
	void			*cw_arg;
};
TAILQ_HEAD(cluster_waiters, cluster_waiter);

struct cluster {
	TAILQ_ENTRY(cluster)	 kc_entry;
	unsigned int		 kc_refs;
	char			 kc_name[NAME_LEN + 1];
	char			*kc_url;
	char			*kc_path;	/* of that */
	char			*kc_space;
	char			*kc_tls_name;	/* or "" */
	char			*kc_proxy;	/* or "" */
	char			*kc_user;	/* basic */
	enum cluster_auth	 kc_auth;
	bool			 kc_insecure;
	struct secret		*kc_files[FILE_KIND_MAX];
	struct text		 kc_bundle;	/* none: trust nobody */
	struct https_server	*kc_server;

	/* The line, from when, until when; credential.c renews them. */
	struct secret		*kc_line;	/* NULL: there is none */
	uint64_t		 kc_since_ms;	/* clock_ms() */
	int64_t			 kc_until_s;	/* of the epoch; 0: open */
	struct cluster_waiters	 kc_waiters;
	uint64_t		 kc_turn;	/* of telling them */
	struct renewal		*kc_renewal;	/* NULL: none is under way */
	uint64_t		 kc_failed_ms;	/* 0: the last did not */
	char			 kc_why[128];	/* it failed */
	struct event		*kc_told;	/* waiters are due */
};
TAILQ_HEAD(clusters, cluster);

/* cluster.c */
struct cluster	*cluster_new(const struct msg_conf_cluster *);
int	 cluster_prepare(struct cluster *, char *, size_t);
/* Anew, with another certificate and key; -1: they are no such. */
int	 cluster_serve(struct cluster *, const struct secret *cert,
	    const struct secret *key);
/* "Authorization: Bearer " and the token; -1: it is none. */
int	 cluster_bearer(struct cluster *, const void *, size_t);
void	 cluster_tell(struct cluster *, const char *why);

/* credential.c */
void	 renewal_begin(struct cluster *);
void	 renewal_free(struct renewal *);

/* plugin.c: what a plugin has said. */
struct exec_credential {
	const char	*ec_token;	/* or NULL */
	const char	*ec_cert;	/* both or none */
	const char	*ec_key;
	int64_t		 ec_until_s;	/* 0: not said */
	struct cJSON	*ec_json;	/* which has all of it */
};
int	 exec_credential_parse(struct exec_credential *, const char *, size_t,
	    char *, size_t);
void	 exec_credential_free(struct exec_credential *);

/* conf_pod.c */
int	 pod_conf_add(struct ipc *, const struct msg_conf_pod *);

#endif /* CREDENTIAL_H */
