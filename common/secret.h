/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

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

/* In constant time for equal lengths; 1 if equal.  Nothing equals an empty. */
int		 secret_equal(const struct secret *, const void *, size_t);

void		 secret_free(struct secret *);

#endif /* SECRET_H */
