/* SPDX-License-Identifier: ISC */

/*
 * Base64 (RFC 4648, 4).
 */

#ifndef BASE64_H
#define BASE64_H

#include <stddef.h>

/* Bytes of text for so many bytes, with a NUL. */
#define BASE64_SIZE(n)	(((n) + 2) / 3 * 4 + 1)

void	 base64_encode(const void *, size_t, char *);
/*
 * Into room of len bytes, of which three for each four of the text are enough.
 * How many there are, or -1 if this is not base64; line breaks may stand in it.
 */
long	 base64_decode(const char *, size_t, void *);

#endif /* BASE64_H */
