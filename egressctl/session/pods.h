/* SPDX-License-Identifier: ISC */

/*
 * egressctl: pods, as several commands show them.
 */

#ifndef PODS_H
#define PODS_H

#include <cjson/cJSON.h>

void	 pods_put(const cJSON *);

#endif /* PODS_H */
