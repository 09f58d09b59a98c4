/* SPDX-License-Identifier: ISC */

/*
 * A key and its value in one call, for the writer of jsonw.h.
 */

#ifndef JSONPUT_H
#define JSONPUT_H

#include <stdint.h>

#include "jsonw.h"

/* NULL is null. */
void	 put_str(struct jsonw *, const char *, const char *);
void	 put_uint(struct jsonw *, const char *, uint64_t);
void	 put_bool(struct jsonw *, const char *, int);

/* Dates: nanoseconds since the epoch, 0 is null; and seconds. */
void	 put_time(struct jsonw *, const char *, uint64_t);
void	 put_seconds(struct jsonw *, const char *, uint64_t);

#endif /* JSONPUT_H */
