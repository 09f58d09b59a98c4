/* SPDX-License-Identifier: ISC */

/*
 * egressctl: pods, as several commands show them.
 */

#ifndef PODS_H
#define PODS_H

#include <cjson/cJSON.h>

struct command;
struct conf_sandbox;
struct config;
struct invocation;
struct token;

void	 pods_put(const cJSON *);

/* cluster.c, manifest.c: without the daemon */
extern const struct command	 command_cluster_manifest;
extern const struct token	 t_cluster_manifest[];
const struct conf_sandbox	*cluster_sandbox(const struct invocation *,
				    const char *, struct config **);

#endif /* PODS_H */
