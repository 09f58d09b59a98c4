/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: header compression of HTTP/2 (RFC 7541).  Blocks come from
 * hostile agents and hostile origins; what is not exactly as the RFC has it is
 * an error.
 */

#ifndef HPACK_H
#define HPACK_H

#include <stddef.h>
#include <stdint.h>

/* Bytes; we announce the protocol's default. */
#define HPACK_TABLE_SIZE	4096
/* Bytes of a block; a longer one is refused. */
#define HPACK_BLOCK_MAX		(64 * 1024)

struct hpack_field {
	const char	*hp_name;	/* valid only during the call */
	size_t		 hp_nlen;
	const char	*hp_value;
	size_t		 hp_vlen;
	/*
	 * What the caller found out about them, 0 at first.  They stay with
	 * the table's entry, so that what comes again need not be looked at
	 * again.  Those of the static table serve all decoders, so a memo
	 * must depend on nothing but the bytes: that of a name on the name,
	 * that of a value on both.  Never NULL.
	 */
	uint8_t		*hp_name_memo;
	uint8_t		*hp_value_memo;
};

/* One direction of one connection. */
struct hpack_decoder {
	struct hpack_table	*hk_table;	/* NULL until it is needed */
	uint16_t		 hk_size;	/* as RFC 7541, 4.1, counts */
	uint16_t		 hk_max;
	uint16_t		 hk_text;	/* where the next text goes */
	uint8_t			 hk_next;	/* where the next entry goes */
	uint8_t			 hk_n;
};

void	 hpack_decoder_init(struct hpack_decoder *);
void	 hpack_decoder_free(struct hpack_decoder *);
/*
 * Decode one whole block.  -1 is a COMPRESSION_ERROR, also if memory is short:
 * the connection is lost, though fields were handed out.  The callback must not
 * decode another block.
 */
int	 hpack_decode(struct hpack_decoder *, const void *, size_t,
	    void (*)(void *, const struct hpack_field *), void *);

/*
 * The encoder has no state: fields of the static table go by their index, all
 * others as literals that are never to be indexed.  Thus no request can be
 * guessed from the size of another (CRIME), and a field that came as never
 * indexed goes on so (RFC 7541, 6.2.3).
 */

/* Stands before the first block of a connection: the table's size is 0. */
#define HPACK_NO_TABLE		0x20
/* No less than hpack_put writes, for strings below 256 MiB. */
#define HPACK_BOUND(nlen, vlen)	((nlen) + (vlen) + 12)
/* A name in lower case and its value; the number of bytes written. */
size_t	 hpack_put(unsigned char *, const char *, size_t, const char *,
	    size_t);

/* ---- of use to hpack_*.c only ---- */

#define HPACK_STATIC_N		61

struct hpack_static {
	const char	*hs_name;
	const char	*hs_value;
	uint8_t		 hs_nlen;
	uint8_t		 hs_vlen;
	uint8_t		 hs_first;	/* the first index with this name */
};
/* Indexed from 1, as in the RFC. */
extern const struct hpack_static	 hpack_static[HPACK_STATIC_N + 1];

/* Bytes that a string of so many may need while it is decoded. */
#define HPACK_HUFFMAN_ROOM(len)	((len) * 8 / 5 + 8)
void	 hpack_huffman_init(void);
/*
 * Of a string of len bytes, in memory of which room may be read.  The length
 * of the text, or -1.
 */
ptrdiff_t	 hpack_huffman_decode(const unsigned char *, size_t len,
	    size_t room, char *);

#endif /* HPACK_H */
