/* SPDX-License-Identifier: ISC */

/*
 * A reader of the first thing a TLS client says.  The engine runs it on bytes
 * of the sandbox before any TLS library sees them; everything in it is the
 * agent's choice.  It has no state and allocates nothing.
 */

#ifndef HELLO_H
#define HELLO_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the connection, record headers included, within which the hello
 * must end.  Post-quantum key shares make 2 KiB usual, and a ticket may add
 * some more.
 */
#define HELLO_MAX		(32 * 1024)
#define HELLO_NAME_MAX		255

#define HELLO_FIRST		0x16	/* first byte of a TLS connection */

enum hello_result {
	HELLO_MORE,
	HELLO_DONE,
	HELLO_BAD
};

enum hello_sni {
	HELLO_SNI_NONE,
	HELLO_SNI_NAME,
	HELLO_SNI_MALFORMED
};

#define HELLO_ALPN		0x01	/* the extension is there */
#define HELLO_ALPN_H2		0x02
#define HELLO_ALPN_HTTP11	0x04
#define HELLO_ALPN_OTHER	0x08	/* also http/1.0; never GREASE */
#define HELLO_ECH		0x10	/* see below */
#define HELLO_EARLY_DATA	0x20
#define HELLO_SSL		0x40	/* offers no version of TLS at all */
#define HELLO_PSK		0x80	/* wants to resume (TLS 1.3) */

/*
 * he_name holds the bytes as sent, not normalised, and is a string only if
 * he_sni is HELLO_SNI_NAME: hostname_canon() of it is the caller's duty.
 *
 * HELLO_ECH says that the extension is there.  Most clients that send it send
 * noise (GREASE), and the two look alike on purpose.  Where TLS ends here that
 * does not matter: without our key an inner hello is never used.  Where it is
 * passed on undecrypted, the inner name is unknown.
 */
struct hello {
	enum hello_sni	 he_sni;
	unsigned int	 he_flags;
	uint16_t	 he_legacy_version;
	uint16_t	 he_version;	/* highest offered, 0x0304 is TLS 1.3 */
	size_t		 he_namelen;
	char		 he_name[HELLO_NAME_MAX + 1];
	const char	*he_why;	/* constant text; BAD, MALFORMED */
};

/*
 * Judges all bytes read from the connection so far, from the first.  BAD is
 * said as soon as it is certain, with the first byte if that is not TLS.
 * out is complete for DONE; for BAD he_flags (HELLO_SSL) and he_why are.
 * Bytes after the hello are not looked at.
 */
enum hello_result	 hello_parse(const unsigned char *buf, size_t len,
			    struct hello *out);

#endif /* HELLO_H */
