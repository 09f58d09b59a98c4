/* SPDX-License-Identifier: ISC */

/*
 * Private header of egressctl/run: a command in a sandbox, what it has of its
 * caller, and a daemon of our own if no other answers.
 */

#ifndef RUN_H
#define RUN_H

#include <sys/types.h>

#include <stddef.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "client.h"
#include "egressctl.h"
#include "list.h"
#include "role.h"
#include "show.h"

/* What a program that lives in its user's home needs in a sandbox. */
struct profile {
	char		*pf_name;
	const char	*pf_home;	/* the caller's, for ~ */
	struct words	 pf_commands;
	struct words	 pf_read;
	struct words	 pf_write;
	struct words	 pf_pass;
	struct words	 pf_hosts;
};

/* An egressd of our own, for one run. */
struct private {
	pid_t		 pv_pid;	/* 0: there is none */
	int		 pv_log;	/* its standard error, or -1 */
	int		 pv_quiet;	/* show its log only after a failure */
	char		 pv_socket[PATH_LEN];	/* "": it has no path */
};

/* box.c */
int	 box_run(char *const [], int, unsigned int, struct private *, int *);
int	 box_end_as(int);

/* environment.c */
void	 environment_clean(void);
void	 environment_option(const char *);
void	 environment_pass(const char *);
void	 environment_choose(const cJSON *);
int	 environment_names(cJSON *);
void	 environment_explain(void);
char	*const *environment_kept(void);

/* private.c */
int	 private_start(struct private *, struct client *, const char *,
	    const char *, int);
const char *private_conf(const struct invocation *, const struct profile *);
void	 private_reap(struct private *);
void	 private_stop(struct private *, int);

/* profile.c */
int	 profile_load(struct profile *, const char *, const char *);
int	 profile_choose(struct profile *, const char *, const char *);
void	 profile_drop_links(struct profile *);
int	 profile_make(const struct profile *);
void	 profile_policy(const struct profile *, FILE *);
void	 profile_say(const struct profile *);

/* secrets.c */
int	 secrets_check(const char *, int (*)(const char *));

/* shown.c */
void	 shown_path(const char *, int);
void	 shown_mount(const char *);
void	 shown_elsewhere(void);
void	 shown_user(const char *, int);
void	 shown_warn(const cJSON *);
int	 shown_is(const char *);
int	 shown_by_name(const char *);
int	 shown_check_directory(const char *);

/* seek.c */
int	 seek_command(const char *, int (*)(const char *));

#endif /* RUN_H */
