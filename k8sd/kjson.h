/* SPDX-License-Identifier: ISC */

/*
 * k8sd: objects of the Kubernetes API.  What they hold is a stranger's, so
 * everything may be missing or of another type; then it reads as empty.
 */

#ifndef KJSON_H
#define KJSON_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Members by a path such as "status/phase"; NULL if there is no such thing. */
const cJSON	*kj_at(const cJSON *, const char *);

/* A text, or "" */
const char	*kj_string(const cJSON *, const char *);
const char	*kj_label(const cJSON *, const char *);
const char	*kj_annotation(const cJSON *, const char *);

/* A number from 0 up to 2^53, or 0. */
uint64_t	 kj_number(const cJSON *, const char *);

/* The member of an array of objects with this name, or NULL. */
const cJSON	*kj_named(const cJSON *, const char *);

/* Exactly one JSON object of this length; NULL otherwise. */
cJSON	*kj_parse(const char *, size_t);

/* Never NULL: they end the process for want of memory. */
cJSON	*kj_object(cJSON *, const char *);
cJSON	*kj_array(cJSON *, const char *);
cJSON	*kj_item(cJSON *);
void	 kj_put(cJSON *, const char *, const char *);
void	 kj_put_number(cJSON *, const char *, int64_t);
void	 kj_put_bool(cJSON *, const char *, int);
void	 kj_put_item(cJSON *, const char *);
cJSON	*kj_copy(const cJSON *);
char	*kj_print(const cJSON *);

/* What a stranger says, printable and cut to the size. */
void	 kj_tame(const char *, size_t, char *, size_t);

/* RFC 3339 in UTC; seconds since the epoch, 0 if it is none. */
#define KJ_TIME_LEN	20
int64_t	 kj_time(const char *);
void	 kj_time_print(int64_t, char [KJ_TIME_LEN + 1]);

#endif /* KJSON_H */
