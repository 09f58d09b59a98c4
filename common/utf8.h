/* SPDX-License-Identifier: ISC */

/*
 * Text in UTF-8, and which of its characters a person does not see.
 */

#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_LEN_MAX	4	/* bytes of a character */

size_t	 utf8_decode(const char *, size_t, uint32_t *);
int	 utf8_unseen(uint32_t);
size_t	 utf8_cut(const char *, size_t, size_t);

#endif /* UTF8_H */
