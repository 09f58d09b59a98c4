/* SPDX-License-Identifier: ISC */

/*
 * What the files of the HTTP codecs share and nobody else needs: which bytes
 * may stand where, and which fields are not just carried along.
 */

#ifndef H1_FIELD_H
#define H1_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "h1.h"

enum h1_class {
	H1_F_UNKNOWN,		/* nobody has looked */
	H1_F_ORDINARY,
	H1_F_HOP,		/* dropped, and of no further meaning to us */
	H1_F_CONNECTION,
	H1_F_HOST,
	H1_F_LENGTH,		/* Content-Length */
	H1_F_CODING,		/* Transfer-Encoding */
	H1_F_UPGRADE,
	H1_F_EXPECT,
	H1_F_TE,
	H1_F_TRAILER,
	H1_F_OVERRIDE,		/* X-HTTP-Method-Override and its kin */
	H1_F_REROUTE,		/* X-Original-URL, X-Forwarded-Host and kin */
	H1_F_NCLASSES
};

#define H1_B_TOKEN	0x01	/* RFC 9110, 5.6.2 */
#define H1_B_VALUE	0x02	/* RFC 9110, 5.5: no control but the tab */
#define H1_B_TARGET	0x04	/* visible or not ASCII, but for `#' */
#define H1_B_HOST	0x08	/* letter, digit, hyphen, dot, underscore */
#define H1_B_V6		0x10	/* hex digit, colon, dot */
#define H1_B_DIGIT	0x20
#define H1_B_LOWER	0x40	/* a token in HTTP/2: no upper case */

extern const uint8_t	 h1_byte[256];

static inline int
h1_is(char c, int what)
{
	return h1_byte[(unsigned char)c] & what;
}

/* <ctype.h> depends on the locale; a protocol must not. */
static inline char
h1_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline int
h1_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

enum h1_class	 h1_classify(const char *, size_t);
enum h1_class	 h1_class(const struct h1_field *);
const char	*h1_span(const char *, const char *, int);
const char	*h1_value_span(const char *, const char *);
int		 h1_equal(const char *, size_t, const char *);

/* What h1_is_forwarded() lets pass besides ordinary fields. */
#define H1_WITH_OVERRIDE	0x01	/* of method, path or host */
#define H1_WITH_TRAILER		0x02	/* the field of that name */
int		 h1_is_forwarded(const struct h1_field *, int);
int		 h1_is_trailer(const struct h1_field *);

/* State of a parser; pa_sole: fields that may appear only once. */
struct h1_parser {
	const char		*pa_p;
	const char		*pa_end;
	struct h1_head		*pa_head;
	struct h1_error		*pa_err;
	const struct h1_field	*pa_sole[H1_F_NCLASSES];
	int			 pa_noptions;	/* of Connection */
	int			 pa_close;
	int			 pa_keep_alive;
	int			 pa_upgrade;
	int			 pa_listed;	/* it names other fields */
};

int	 h1_refuse(struct h1_parser *, int, const char *);

/*
 * h1_parse.c: as h1_parse_request() and h1_parse_response(), of heads whose
 * fields were found and checked elsewhere: the text is read only as far as the
 * start line goes.  At most H1_FIELDS_MAX.
 */
int	 h1_take_request(const char *, size_t, const struct h1_field *, size_t,
	    struct h1_head *, struct h1_error *);
int	 h1_take_response(const char *, size_t, const struct h1_field *, size_t,
	    enum h1_method, int, struct h1_head *, struct h1_error *);

/* h1_format.c */
#define H1_DIGITS_MAX	20
size_t	 h1_digits(char[H1_DIGITS_MAX], uint64_t);
int	 h1_has_no_framing(int);

/* h1_target.c */
int	 h1_parse_target(struct h1_parser *, const char *, size_t);
int	 h1_check_host(struct h1_parser *);

/* h1_framing.c */
void	 h1_parse_te(struct h1_parser *, const struct h1_field *);
int	 h1_parse_connection(struct h1_parser *, const struct h1_field *);
int	 h1_frame_request(struct h1_parser *);
int	 h1_frame_response(struct h1_parser *, enum h1_method, int);

#endif /* H1_FIELD_H */
