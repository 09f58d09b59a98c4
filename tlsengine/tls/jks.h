/* SPDX-License-Identifier: ISC */

/*
 * A writer of Java trust stores (JKS, version 2), as Java reads no PEM bundle.
 * Runs in the engine, on the session's CA and the public bundle; pure.
 */

#ifndef JKS_H
#define JKS_H

#include <stddef.h>
#include <time.h>

/*
 * The alias is up to 255 bytes of printable ASCII without upper case: Java
 * looks aliases up in lower case and would skip the others in silence.
 */
struct jks_entry {
	const char		*je_alias;
	const unsigned char	*je_der;
	size_t			 je_derlen;
};

#define JKS_ALIAS_MAX	255
#define JKS_DER_MAX	(64 * 1024)
#define JKS_ENTRIES_MAX	4096

/*
 * The same input gives the same bytes; created is the date of all entries.
 * The password (ASCII) keys a checksum and keeps nothing secret.  0, or -1
 * with errno: EINVAL for an entry or password out of bounds or an alias given
 * twice, ENOMEM.  The caller frees *out.
 */
int	 jks_write(const struct jks_entry *, size_t n, const char *password,
	    time_t created, unsigned char **out, size_t *outlen);

#endif /* JKS_H */
