/* SPDX-License-Identifier: ISC */

/*
 * Finding the end of an HTTP/1 head, however it is cut into pieces.  Runs in
 * the tlsengine, on the bytes of strangers; one that sends a byte a second
 * costs one byte's work a second.
 */

#include <string.h>

#include "h1_field.h"

const char	 h1_not_http[] = "not HTTP";

static int
refuse(struct h1_error *err, int status, const char *reason)
{
	err->he_status = status;
	err->he_reason = reason;
	return -1;
}

/*
 * A request line names its version last and a status line first.  Without one
 * there is no reason to wait for the rest: SSH and SMTP greet with one line
 * and then expect an answer.
 */
static int
is_start_line(const char *line, size_t len)
{
	return (len >= 5 && memcmp(line, "HTTP/", 5) == 0) ||
	    memmem(line, len, " HTTP/", 6) != NULL;
}

static int
check_line(const struct h1_scan *st, const char *buf, size_t len,
    struct h1_error *err)
{
	if (len > H1_LINE_MAX)
		return st->hs_line == 0 ?
		    refuse(err, 414, "start line too long") :
		    refuse(err, 431, "field line too long");
	if (st->hs_line + len > H1_HEAD_MAX)
		return refuse(err, 431, "head too long");
	if (len == 0 || buf[st->hs_line + len - 1] != '\n')
		return 0;
	if (len < 2 || buf[st->hs_line + len - 2] != '\r')
		return refuse(err, 400, "bare LF");
	if (st->hs_line == 0 && !is_start_line(buf, len))
		return refuse(err, 400, h1_not_http);
	return 0;
}

int
h1_scan(struct h1_scan *st, const char *buf, size_t len, struct h1_error *err)
{
	const char	*lf;
	size_t		 linelen;

	if (len == st->hs_seen)
		return 0;
	if (st->hs_seen == 0 && !h1_is(buf[0], H1_B_TOKEN))
		return refuse(err, 400, h1_not_http);
	while ((lf = memchr(buf + st->hs_seen, '\n', len - st->hs_seen)) !=
	    NULL) {
		st->hs_seen = (size_t)(lf - buf) + 1;
		linelen = st->hs_seen - st->hs_line;
		if (check_line(st, buf, linelen, err) == -1)
			return -1;
		if (linelen == 2)
			return (int)st->hs_seen;
		st->hs_line = st->hs_seen;
	}
	st->hs_seen = len;
	return check_line(st, buf, len - st->hs_line, err);
}
