/* SPDX-License-Identifier: ISC */

/*
 * Memory for keys, tokens and other secrets: not in core files, not on swap
 * if the limits permit, not in a forked child, fenced by unmapped pages
 * against reads that run over, and wiped when freed.
 */

#ifndef SECRET_H
#define SECRET_H

#include <stddef.h>
#include <stdint.h>

struct secret {
	size_t		 sc_len;	/* bytes in use */
	size_t		 sc_size;	/* bytes available */
	uint8_t		 sc_data[];	/* and a NUL after sc_size bytes */
};

#define SECRET_MAX	(1024 * 1024)

/* Zeroed, sc_len 0; NULL with errno set. */
struct secret	*secret_alloc(size_t size);

/*
 * Everything from fd up to end of file, less one trailing newline, always
 * followed by a NUL.  NULL with errno set: EFBIG above max bytes, ENODATA if
 * nothing is left, since an empty credential is a mistake and would equal
 * every other empty one.  The caller closes fd.
 */
struct secret	*secret_read_fd(int fd, size_t max);

/* 1 if equal, in constant time; an empty secret equals nothing. */
int		 secret_equal(const struct secret *, const void *, size_t);

void		 secret_free(struct secret *);

#endif /* SECRET_H */
