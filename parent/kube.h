/* SPDX-License-Identifier: ISC */

/*
 * The parent: clusters of a configuration, with everything that their blocks,
 * the service account or a kubeconfig say, opened and ready to be sent to k8sd.
 * What is read or run again later is named here, for open.c.
 */

#ifndef KUBE_H
#define KUBE_H

#include "parent.h"

#define KUBE_FILES_MAX	16

/* kubeconfig files, in the order in which they count. */
struct kube_files {
	unsigned int	 kf_count;
	struct kube_file {
		int	 fd;
		uid_t	 owner;
		char	 path[PATH_LEN];
	}		 kf_file[KUBE_FILES_MAX];
};

/* With whose eyes a token's file is looked at. */
enum token_from {
	TOKEN_OF_BLOCK,		/* as other secrets of the configuration */
	TOKEN_OF_ACCOUNT,	/* its mode is the kubelet's affair */
	TOKEN_OF_OWNER		/* of the kubeconfig that names it */
};

struct kube {
	TAILQ_ENTRY(kube)	 kb_entry;
	char			 kb_name[NAME_LEN + 1];	/* "": no block */
	struct conf_pos		 kb_pos;
	char			*kb_server;
	char			*kb_space;
	char			*kb_tls_name;
	char			*kb_proxy;
	char			*kb_user;	/* basic */
	bool			 kb_insecure;
	enum cluster_auth	 kb_auth;
	int			 kb_files[FILE_KIND_MAX];	/* or -1 */
	enum token_from		 kb_token_from;
	char			*kb_token_path;
	uid_t			 kb_token_owner;
	struct conf_words	 kb_command;	/* of the plugin */
	struct conf_words	 kb_environment;
	unsigned int		 kb_words;	/* in both */
	char			*kb_plugin_version;
	bool			 kb_plugin_cluster;	/* is told where */
	char			*kb_plugin_user;	/* NULL: the owner */
	uid_t			 kb_plugin_owner;	/* 0: the role's */
};
TAILQ_HEAD(kubes, kube);

/* kube.c */
int	 kubes_open(struct kubes *, const struct config *, struct why *);
void	 kubes_close(struct kubes *);
struct kube	*kube_find(const struct kubes *, const char *);
void	 kube_file_set(struct kube *, enum file_kind, int);
void	 kube_text(char **, const char *, size_t);
void	 kube_word(struct conf_words *, const char *, size_t);
/* Its token's file, as when it was loaded; -1 and why. */
int	 kube_token_open(const struct kube *, struct why *);

/* kube_plugin.c: NULL, or why it does not run. */
const char	*kube_plugin_ready(struct kube *, const struct conf_cluster *,
		    bool);

/* kubeconfig.c */
int	 kubeconfig_read(struct kube *, const struct kube_files *,
	    const char *, struct why *);

/* owned.c */
int	 owned_open(uid_t, const char *, struct why *);

#endif /* KUBE_H */
