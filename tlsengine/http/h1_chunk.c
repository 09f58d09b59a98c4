/* SPDX-License-Identifier: ISC */

/*
 * The chunked transfer coding (RFC 9112, 7.1).  Runs in the tlsengine, on the
 * bytes of hostile agents and hostile origins.  One step per byte outside of
 * data, so it does not matter how the bytes are cut.
 *
 * The grammar's optional whitespace around a size is refused, and so is a line
 * break within an extension: readers that skip to the next LF find another end
 * of the chunk than readers that look for CRLF.
 */

#include <string.h>

#include "h1_field.h"

static int
refuse(struct h1_chunk *ck, const char *why)
{
	ck->hc_state = H1_CK_BROKEN;
	ck->hc_why = why;
	return -1;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int
step_size(struct h1_chunk *ck, char c)
{
	int	 digit = hex_value(c);

	if (digit != -1) {
		if (++ck->hc_digits > 16 || ck->hc_left > H1_LENGTH_MAX / 16)
			return refuse(ck, "chunk size too large");
		ck->hc_left = ck->hc_left * 16 + (uint64_t)digit;
		ck->hc_state = H1_CK_SIZE;
		return 0;
	}
	if (ck->hc_state == H1_CK_SIZE_FIRST)
		return refuse(ck, "no chunk size");
	if (c == '\r')
		ck->hc_state = H1_CK_SIZE_LF;
	else if (c == ';')
		ck->hc_state = H1_CK_EXT;
	else
		return refuse(ck, "illegal character after chunk size");
	return 0;
}

static int
step_ext(struct h1_chunk *ck, char c)
{
	if (c == '\r') {
		ck->hc_state = H1_CK_SIZE_LF;
		return 0;
	}
	if (!h1_is(c, H1_B_VALUE))
		return refuse(ck, "control character in chunk extension");
	if (++ck->hc_line > H1_CHUNK_LINE_MAX ||
	    ++ck->hc_ext > H1_CHUNK_EXT_MAX)
		return refuse(ck, "chunk extensions too long");
	return 0;
}

static int
step_size_lf(struct h1_chunk *ck, char c)
{
	if (c != '\n')
		return refuse(ck, "bare CR after chunk size");
	ck->hc_digits = 0;
	ck->hc_line = 0;
	if (ck->hc_left == 0) {
		ck->hc_state = H1_CK_TRAILER_FIRST;
		return 0;
	}
	if (ck->hc_left > (uint64_t)H1_LENGTH_MAX - ck->hc_total)
		return refuse(ck, "chunks too large");
	ck->hc_total += ck->hc_left;
	ck->hc_state = H1_CK_DATA;
	return 0;
}

static int
step_data_end(struct h1_chunk *ck, char c)
{
	if (c != (ck->hc_state == H1_CK_DATA_CR ? '\r' : '\n'))
		return refuse(ck, "chunk longer than its size");
	ck->hc_state = ck->hc_state == H1_CK_DATA_CR ? H1_CK_DATA_LF :
	    H1_CK_SIZE_FIRST;
	return 0;
}

static int
keep_trailer(struct h1_chunk *ck, char c)
{
	if (ck->hc_trailer == H1_TRAILER_MAX ||
	    (ck->hc_keep != NULL && ck->hc_trailer == ck->hc_keepsz))
		return refuse(ck, "trailer section too long");
	if (ck->hc_keep != NULL)
		ck->hc_keep[ck->hc_trailer] = c;
	ck->hc_trailer++;
	return 0;
}

/* Trailers are checked like the fields of a head, even if dropped. */
static int
step_trailer(struct h1_chunk *ck, char c)
{
	if (keep_trailer(ck, c) == -1)
		return -1;
	switch (ck->hc_state) {
	case H1_CK_TRAILER_FIRST:
		if (c != '\r' && !h1_is(c, H1_B_TOKEN))
			return refuse(ck, "illegal character in trailer name");
		ck->hc_state = c == '\r' ? H1_CK_END_LF : H1_CK_TRAILER_NAME;
		return 0;
	case H1_CK_TRAILER_NAME:
		if (c != ':' && !h1_is(c, H1_B_TOKEN))
			return refuse(ck, "illegal character in trailer name");
		if (c == ':')
			ck->hc_state = H1_CK_TRAILER_VALUE;
		return 0;
	case H1_CK_TRAILER_VALUE:
		if (c != '\r' && !h1_is(c, H1_B_VALUE))
			return refuse(ck, "control character in trailer");
		if (c == '\r')
			ck->hc_state = H1_CK_TRAILER_LF;
		return 0;
	default:
		if (c != '\n')
			return refuse(ck, "bare CR in trailer");
		ck->hc_state = ck->hc_state == H1_CK_END_LF ? H1_CK_DONE :
		    H1_CK_TRAILER_FIRST;
		return 0;
	}
}

static int
step(struct h1_chunk *ck, char c)
{
	switch (ck->hc_state) {
	case H1_CK_SIZE_FIRST:
	case H1_CK_SIZE:
		return step_size(ck, c);
	case H1_CK_EXT:
		return step_ext(ck, c);
	case H1_CK_SIZE_LF:
		return step_size_lf(ck, c);
	case H1_CK_DATA_CR:
	case H1_CK_DATA_LF:
		return step_data_end(ck, c);
	default:
		return step_trailer(ck, c);
	}
}

int
h1_chunk_done(const struct h1_chunk *ck)
{
	return ck->hc_state == H1_CK_DONE;
}

ssize_t
h1_chunk_decode(struct h1_chunk *ck, const char *in, size_t inlen,
    const char **data, size_t *datalen)
{
	const char	*p = in, *end = in + inlen;

	*data = NULL;
	*datalen = 0;
	if (ck->hc_state == H1_CK_BROKEN)
		return -1;
	for (; p < end && ck->hc_state != H1_CK_DONE; p++) {
		if (ck->hc_state == H1_CK_DATA) {
			*data = p;
			*datalen = (size_t)(end - p) < ck->hc_left ?
			    (size_t)(end - p) : (size_t)ck->hc_left;
			ck->hc_left -= *datalen;
			if (ck->hc_left == 0)
				ck->hc_state = H1_CK_DATA_CR;
			p += *datalen;
			break;
		}
		if (step(ck, *p) == -1)
			return -1;
	}
	return p - in;
}

size_t
h1_chunk_header(char out[H1_CHUNK_HEADER_MAX], uint64_t len)
{
	static const char	 hex[] = "0123456789abcdef";
	size_t			 n = 0;
	int			 shift;

	if (len == 0)
		return 0;
	for (shift = 60; len >> shift == 0; shift -= 4)
		;
	for (; shift >= 0; shift -= 4)
		out[n++] = hex[len >> shift & 15];
	out[n++] = '\r';
	out[n++] = '\n';
	return n;
}
