/* SPDX-License-Identifier: ISC */

/*
 * A writer of the databases in which NSS keeps certificates, as what is built
 * on it (Chromium and its kin without managed policies, Electron) reads no PEM
 * bundle.  Runs in the engine, on the session's CA; pure.
 */

#ifndef NSSDB_H
#define NSSDB_H

#include <stddef.h>

#define NSSDB_DER_MAX	(8 * 1024)	/* three of them fit a page */

/*
 * cert9.db: this certificate (DER), trusted to issue those of servers.  The
 * same input gives the same bytes.  0, or -1 with errno: EINVAL for what is no
 * certificate or too long, ENOMEM.  The caller frees *out.
 */
int	 nssdb_certs(const unsigned char *der, size_t derlen,
	    unsigned char **out, size_t *outlen);

/* key4.db, without which NSS opens no cert9.db: no key and no password. */
int	 nssdb_keys(unsigned char **out, size_t *outlen);

#endif /* NSSDB_H */
