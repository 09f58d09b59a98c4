/* SPDX-License-Identifier: ISC */

/*
 * Strict HTTP/1 (RFC 9110, 9112) as pure functions: no sockets, no events, no
 * memory of its own.  Runs in the tlsengine, on bytes of hostile agents and of
 * hostile origins alike.
 *
 * The codec accepts one spelling of everything that could make two readers
 * disagree about where a message ends, and writes heads from scratch: framing
 * is computed here and regenerated here, never copied.  What it refuses, it
 * refuses with a constant text; no byte of the peer is in it.
 *
 * A connection goes like this:
 *
 *	h1_scan() until it returns the length of a head,
 *	h1_parse_request() or h1_parse_response() on exactly those bytes,
 *	the body as hd_framing says, h1_chunk_decode() if chunked,
 *	h1_format_request() or h1_format_response() for the other side.
 *
 * Empty lines before a start line are refused: RFC 9112, 2.2 would have one
 * skipped for the sake of clients of 1996, and a stray CRLF today is rather a
 * body that is longer than its length.
 */

#ifndef H1_H
#define H1_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#define H1_HEAD_MAX		(32 * 1024)	/* bytes, with the empty line */
#define H1_LINE_MAX		(16 * 1024)	/* bytes, with CRLF */
#define H1_TARGET_MAX		8192		/* bytes, else 414 */
#define H1_METHOD_MAX		32		/* bytes */
#define H1_FIELDS_MAX		128		/* lines, else 431 */
#define H1_CONNECTION_MAX	32		/* options in Connection */
#define H1_LENGTH_MAX		INT64_MAX	/* bytes of a body */
#define H1_CHUNK_LINE_MAX	256		/* bytes: size and extensions */
#define H1_CHUNK_EXT_MAX	(16 * 1024)	/* bytes, all of a message */
#define H1_TRAILER_MAX		8192		/* bytes of the section */

/* A piece of the caller's buffer; s is NULL where there is none. */
struct h1_str {
	const char	*s;
	size_t		 len;
};

struct h1_field {
	const char	*hf_name;
	size_t		 hf_nlen;
	const char	*hf_value;	/* without surrounding whitespace */
	size_t		 hf_vlen;
	uint8_t		 hf_class;	/* H1_F_*, as a parser has found it */
	uint8_t		 hf_hop;	/* listed in Connection */
};

/* Methods are case-sensitive: `get' is an H1_OTHER. */
enum h1_method {
	H1_OTHER,
	H1_GET,
	H1_HEAD,
	H1_POST,
	H1_PUT,
	H1_DELETE,
	H1_OPTIONS,
	H1_PATCH,
	H1_TRACE,	/* parsed, for the caller to refuse */
	H1_CONNECT	/* likewise */
};

/* The form of a request target (RFC 9112, 3.2). */
enum h1_form {
	H1_ORIGIN,
	H1_ABSOLUTE,
	H1_AUTHORITY,	/* CONNECT and nothing else */
	H1_ASTERISK	/* OPTIONS and nothing else */
};

enum h1_framing {
	H1_NONE,	/* no body follows */
	H1_LENGTH,	/* hd_length bytes, possibly 0 */
	H1_CHUNKED,
	H1_UNTIL_CLOSE	/* responses only */
};

struct h1_head {
	int		 hd_is_request;
	int		 hd_minor;		/* HTTP/1.0 or 1.1 */

	/* Requests. */
	enum h1_method	 hd_method;
	struct h1_str	 hd_method_text;
	enum h1_form	 hd_form;
	struct h1_str	 hd_target;		/* as it came */
	struct h1_str	 hd_scheme;		/* absolute form only */
	struct h1_str	 hd_path;		/* for urlpath_canon() */
	/*
	 * From Host, or from the target where that names one; in absolute form
	 * both were found to agree.  No brackets, for hostname_canon().  An
	 * HTTP/1.0 request may have none: then s is NULL.
	 */
	struct h1_str	 hd_host;
	uint16_t	 hd_port;		/* 0 if not given */
	struct h1_str	 hd_host_field;		/* value of Host as it came */
	int		 hd_expect_continue;	/* and a body is to come */
	/*
	 * Value of X-HTTP-Method-Override and its kin: the origin may obey it
	 * instead of the method.  Ask for that verdict too, or leave
	 * or_override 0 and it is not forwarded.
	 */
	struct h1_str	 hd_override;
	int		 hd_te_trailers;	/* TE: trailers was there */

	/* Responses. */
	int		 hd_status;		/* 100 to 999 */
	struct h1_str	 hd_reason;		/* may be empty */

	/* Requests and responses. */
	enum h1_framing	 hd_framing;
	uint64_t	 hd_length;
	int		 hd_has_length;		/* Content-Length was there; in
						 * answers to HEAD and in 304
						 * it is not the framing */
	int		 hd_keep_alive;		/* may be followed by another */
	/*
	 * Value of Upgrade, if Connection lists it and no body is in the way;
	 * of a response, only in a 101.
	 */
	struct h1_str	 hd_upgrade;
	size_t		 hd_nfields;
	struct h1_field	 hd_fields[H1_FIELDS_MAX];
};

/*
 * Why something was refused, and the status for a client to see.  For what
 * came from an origin the status is always 502.
 */
struct h1_error {
	int		 he_status;
	const char	*he_reason;
};

/* ---- h1_scan.c ----------------------------------------------------------- */

/* All zero before the first byte of each head. */
struct h1_scan {
	size_t		 hs_seen;	/* bytes that need no second look */
	size_t		 hs_line;	/* where the current line begins */
};

/*
 * Looks for the end of the head that begins at buf[0]; call it again with the
 * same start and more bytes.  Returns the length of the head, 0 if more is
 * needed, or -1: too long, a bare LF, or not HTTP at all.  The last is seen at
 * the first byte or the first line (a TLS hello, a banner), reason
 * h1_not_http.
 */
int	 h1_scan(struct h1_scan *, const char *buf, size_t len,
	    struct h1_error *);
extern const char	 h1_not_http[];

/* ---- h1_parse.c ---------------------------------------------------------- */

/*
 * buf must be one whole head as found by h1_scan(); the slices of the head
 * point into it.  Both return 0 or -1.
 *
 * Suggested statuses: 400; 414 long target; 417 unknown expectation; 421 the
 * target and Host name different hosts; 431 too many fields; 501 transfer
 * codings before chunked; 505 another version of HTTP.  After any of them the
 * connection must be closed.
 */
int	 h1_parse_request(const char *buf, size_t len, struct h1_head *,
	    struct h1_error *);

/*
 * What the request was decides how the response ends.  A 101 is refused unless
 * the request carried an upgrade.
 */
int	 h1_parse_response(const char *buf, size_t len, enum h1_method method,
	    int upgrade, struct h1_head *, struct h1_error *);

/*
 * `name', `name:port', `address:port', `[v6]:port': the syntax only, names are
 * hostname_canon()'s.  The host comes without brackets, the port is 0 if not
 * given.  Returns 0, or -1 with *why a constant text.
 */
int	 h1_parse_authority(const char *, size_t, struct h1_str *host,
	    uint16_t *port, const char **why);

enum h1_method	 h1_method(const char *, size_t);

/* The first field of that name, or NULL. */
const struct h1_field	*h1_find(const struct h1_head *, const char *name);

/*
 * The trailer section of a message: field lines and the empty line after them,
 * as h1_chunk_decode() and h2_head_trailers() leave it.  Returns how many
 * fields there are, or -1.  What may not stand in trailers (RFC 9110, 6.5.1:
 * framing, routing, credentials, controls, how to read the content) is
 * dropped; to merge nothing after the verdict, h1_format_trailers() and
 * h2_nv_trailers() would drop it again.
 */
ssize_t	 h1_parse_trailers(const char *buf, size_t len, struct h1_field *,
	    size_t max, struct h1_error *);

/* ---- h1_field.c ---------------------------------------------------------- */

/*
 * Whether a field belongs to the connection and not to the message, so that it
 * is not simply forwarded: listed in Connection, Connection itself,
 * Keep-Alive, Proxy-*, TE, Upgrade, HTTP2-Settings; what we write ourselves:
 * Transfer-Encoding, Content-Length, Host, Expect; and Trailer, which goes only
 * where trailers go.
 */
int	 h1_is_hop_by_hop(const struct h1_field *);

/* Whether these are a legal name and value, for fields from elsewhere. */
int	 h1_field_valid(const struct h1_field *);

/* ---- h1_format.c --------------------------------------------------------- */

enum h1_connection {
	H1_CONN_DEFAULT,	/* say nothing: HTTP/1.1 persists */
	H1_CONN_CLOSE,
	H1_CONN_KEEP_ALIVE	/* for an HTTP/1.0 client that asked */
};

/*
 * Fields may come from h1_head or be made by hand (from HTTP/2); hop-by-hop
 * ones are left out, and one with an illegal byte fails the whole head, so
 * that nothing can be injected.  The second array is for fields of our own.
 *
 * The functions return the length written, not NUL-terminated, or -1 if it
 * does not fit or an argument is not fit to be sent.
 */
struct h1_out_request {
	struct h1_str		 or_method;
	struct h1_str		 or_target;	/* canonical, or `*' */
	const char		*or_host;	/* canonical, no brackets */
	uint16_t		 or_port;	/* 0: default of the scheme */
	const struct h1_field	*or_fields;
	size_t			 or_nfields;
	const struct h1_field	*or_extra;
	size_t			 or_nextra;
	enum h1_framing		 or_framing;	/* not H1_UNTIL_CLOSE */
	uint64_t		 or_length;
	enum h1_connection	 or_connection;
	struct h1_str		 or_upgrade;	/* with `Connection: Upgrade' */
	int			 or_expect_continue;
	int			 or_override;	/* forward what overrides */
	int			 or_te_trailers; /* `TE: trailers' */
};

/*
 * H1_NONE writes no framing at all and is right for 1xx, 204, 304 and answers
 * to HEAD (the last two may say H1_LENGTH with no body following).  A 1xx or
 * 204 never carries framing, whatever is asked.  H1_UNTIL_CLOSE implies
 * H1_CONN_CLOSE.  An empty reason is replaced by the usual one.
 */
struct h1_out_response {
	int			 os_status;
	struct h1_str		 os_reason;
	const struct h1_field	*os_fields;
	size_t			 os_nfields;
	const struct h1_field	*os_extra;
	size_t			 os_nextra;
	enum h1_framing		 os_framing;
	uint64_t		 os_length;
	enum h1_connection	 os_connection;
	struct h1_str		 os_upgrade;	/* for a 101 */
};

ssize_t	 h1_format_request(char *out, size_t outsz,
	    const struct h1_out_request *);
ssize_t	 h1_format_response(char *out, size_t outsz,
	    const struct h1_out_response *);

/*
 * The end of a chunked body in place of H1_CHUNK_LAST, with trailers.  At most
 * H1_TRAILER_MAX and a few bytes per field are needed.
 */
ssize_t	 h1_format_trailers(char *out, size_t outsz, const struct h1_field *,
	    size_t n);

/* "Not Found" for 404; "" if we know none. */
const char	*h1_reason(int status);

/* ---- h1_chunk.c ---------------------------------------------------------- */

enum h1_chunk_state {
	H1_CK_SIZE_FIRST,	/* so that all zero is the start */
	H1_CK_SIZE,
	H1_CK_EXT,
	H1_CK_SIZE_LF,
	H1_CK_DATA,
	H1_CK_DATA_CR,
	H1_CK_DATA_LF,
	H1_CK_TRAILER_FIRST,
	H1_CK_TRAILER_NAME,
	H1_CK_TRAILER_VALUE,
	H1_CK_TRAILER_LF,
	H1_CK_END_LF,
	H1_CK_DONE,
	H1_CK_BROKEN
};

/* All zero before a body, but for where trailers go if they are wanted. */
struct h1_chunk {
	char			*hc_keep;	/* NULL: they are dropped */
	size_t			 hc_keepsz;	/* H1_TRAILER_MAX is enough */
	enum h1_chunk_state	 hc_state;
	uint64_t		 hc_left;	/* data of this chunk to come */
	uint64_t		 hc_total;	/* data so far, announced */
	uint32_t		 hc_digits;	/* of the size */
	uint32_t		 hc_line;	/* extensions of this chunk */
	uint32_t		 hc_ext;	/* and of the message, bytes */
	uint32_t		 hc_trailer;	/* bytes of the trailers, with
						 * the empty line: 2 if none */
	const char		*hc_why;	/* after -1 */
};

/*
 * Consumes some of in and returns how much, more than 0 if there was anything
 * and the body is not done; or -1.  At most one slice of data comes of it,
 * *datalen is 0 if none did.  What follows a body that is done is not touched.
 *
 *	while (len > 0 && !h1_chunk_done(&ck)) {
 *		if ((n = h1_chunk_decode(&ck, p, len, &data, &dlen)) == -1)
 *			...
 *		use(data, dlen);
 *		p += n;
 *		len -= n;
 *	}
 *
 * Extensions are bounded and dropped.  Trailers are bounded, get the checks
 * that fields get, and are collected in hc_keep: hc_trailer bytes that are for
 * h1_parse_trailers() when the body is done.
 */
ssize_t	 h1_chunk_decode(struct h1_chunk *, const char *in, size_t inlen,
	    const char **data, size_t *datalen);
int	 h1_chunk_done(const struct h1_chunk *);

/*
 * A chunk on the wire: header, data, H1_CHUNK_END; after all, H1_CHUNK_LAST.
 * Returns the length of the header.  A length of 0 would end the body and
 * writes nothing.
 */
#define H1_CHUNK_HEADER_MAX	18	/* bytes: 16 digits and CRLF */
#define H1_CHUNK_END		"\r\n"
#define H1_CHUNK_LAST		"0\r\n\r\n"
size_t	 h1_chunk_header(char out[H1_CHUNK_HEADER_MAX], uint64_t len);

#endif /* H1_H */
