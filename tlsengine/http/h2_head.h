/* SPDX-License-Identifier: ISC */

/*
 * HTTP/2 heads (RFC 9113, 8; RFC 8441) as pure functions: no session, no
 * memory of its own.  Runs in the tlsengine, on the fields of hostile agents
 * and hostile origins.
 *
 * A head that comes is spelt as an HTTP/1 head and read by that parser, so
 * that one place judges names, lengths and hosts, and struct h1_head is what
 * both codecs give and take:
 *
 *	h2_head_begin() when a header block begins,
 *	h2_head_field() for each field of it,
 *	h2_head_request(), _response() or _trailers() at its end,
 *	h2_nv_request(), _response() or _trailers() for the other side.
 *
 * What only HTTP/2 knows is mapped both ways.  A body of unknown length is
 * H1_CHUNKED.  An extended CONNECT is a GET that asks for an upgrade, and the
 * 2xx that grants it is a 101.
 */

#ifndef H2_HEAD_H
#define H2_HEAD_H

#include <sys/types.h>

#include <stddef.h>

#include "h1.h"
#include "hpack.h"

enum h2_kind {
	H2_REQUEST,
	H2_RESPONSE,
	H2_TRAILERS
};

enum h2_pseudo {
	H2_P_METHOD,
	H2_P_SCHEME,
	H2_P_AUTHORITY,
	H2_P_PATH,
	H2_P_PROTOCOL,
	H2_P_STATUS,
	H2_P_COUNT
};

struct h2_head {
	char		*hh_buf;
	size_t		 hh_size;
	size_t		 hh_len;		/* text so far */
	enum h2_kind	 hh_kind;
	/* For the caller, of a request that was accepted. */
	const char	*hh_scheme;		/* "http", "https"; NULL of a
						 * CONNECT that is not extended,
						 * which is to be refused */
	int		 hh_extended;		/* it was an extended CONNECT */

	/* Private. */
	struct h1_str	 hh_pseudo[H2_P_COUNT];
	size_t		 hh_tail;		/* pseudo-headers from here */
	size_t		 hh_cookie;		/* the field after it; 0: no */
	int		 hh_begun;		/* the start line is written */
	int		 hh_host;		/* field Host was there */
	int		 hh_length;		/* likewise Content-Length */
	struct h1_error	 hh_error;
	size_t		 hh_nfields;
	struct h1_field	 hh_fields[H1_FIELDS_MAX];
};

/*
 * Heads are limited to the lesser of size and H1_HEAD_MAX, trailers to the
 * lesser of size and H1_TRAILER_MAX.  buf must stay as long as the slices of
 * the head are used.
 */
void	 h2_head_begin(struct h2_head *, enum h2_kind, char *buf, size_t size);

/*
 * Returns 0, or -1 once the head is to be refused: further fields are ignored,
 * and the function that ends the head says why.  So the result need not be
 * looked at.
 */
int	 h2_head_field(struct h2_head *, const struct hpack_field *);

/*
 * Both return the length of the HTTP/1 text in the buffer, or -1.  end_stream
 * says that no body follows, as opposed to one of 0 bytes.  Beyond the
 * statuses of h1_parse_request(): 400 for whatever is malformed, 421 where
 * :authority and Host differ, 431, and 501 for a :protocol other than
 * websocket.  The stream is to be refused, the connection is not spoilt.
 */
ssize_t	 h2_head_request(struct h2_head *, int end_stream, struct h1_head *,
	    struct h1_error *);

/* upgrade: the request was an extended CONNECT, so a 2xx becomes a 101. */
ssize_t	 h2_head_response(struct h2_head *, int end_stream,
	    enum h1_method, int upgrade, struct h1_head *, struct h1_error *);

/* As h1_parse_trailers(). */
ssize_t	 h2_head_trailers(struct h2_head *, struct h1_field *, size_t max,
	    struct h1_error *);

/* ---- h2_nv.c ------------------------------------------------------------- */

/* Bytes, of as many fields as come in, with ours. */
#define H2_NV_SIZE	(H1_HEAD_MAX + 1024 + \
			    HPACK_BOUND(0, 0) * (H1_FIELDS_MAX + 32))

/*
 * A block as it is sent, for h2_put_head(), which copies it: one is enough for
 * all.  Its first byte is HPACK_NO_TABLE.
 */
struct h2_nv {
	unsigned char	 hn_block[H2_NV_SIZE];
	size_t		 hn_len;
	size_t		 hn_bytes;	/* of names and values, spelt out */
	int		 hn_bad;
};

/*
 * All return 0, or -1 if it does not fit or an argument is not fit to be sent,
 * like h1_format_request() and its kin.  or_connection and os_connection mean
 * nothing here; os_reason neither.
 *
 * extended: the request is an extended CONNECT to or_upgrade, to an origin
 * that allows it (SETTINGS_ENABLE_CONNECT_PROTOCOL); otherwise or_upgrade is
 * not sent, as an upgrade may always be ignored.  A 101 with os_upgrade is
 * sent as 200, without it fails.
 */
int	 h2_nv_request(struct h2_nv *, const struct h1_out_request *,
	    const char *scheme, int extended);
int	 h2_nv_response(struct h2_nv *, const struct h1_out_response *);
int	 h2_nv_trailers(struct h2_nv *, const struct h1_field *, size_t n);

#endif /* H2_HEAD_H */
