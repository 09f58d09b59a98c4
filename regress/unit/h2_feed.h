/* SPDX-License-Identifier: ISC */

/*
 * HTTP/2 heads from lines of text, for tests.  Each is also read as the HTTP/1
 * text that was made of it, see h2_same.h.
 */

#ifndef H2_FEED_H
#define H2_FEED_H

#include "test.h"

#include "h2_same.h"

#define GET		":method: GET\n:scheme: https\n:path: /\n"	\
			":authority: a.test\n"
#define POST		":method: POST\n:scheme: https\n:path: /\n"	\
			":authority: a.test\n"
#define WEBSOCKET	":method: CONNECT\n:protocol: websocket\n"	\
			":scheme: https\n:path: /chat\n:authority: a.test\n"
#define OK		":status: 200\n"

static struct h2_head	 hh;
static struct h1_head	 head;
static struct h1_error	 error;
static struct h1_field	 trailers[8];
static char		 buf[H1_HEAD_MAX + 1];

/* A field that nobody has looked at. */
static inline int
give(const char *name, size_t nlen, const char *value, size_t vlen)
{
	uint8_t			 memos[2] = { 0, 0 };
	struct hpack_field	 hp = { name, nlen, value, vlen, &memos[0],
	    &memos[1] };

	return h2_head_field(&hh, &hp);
}

/* A field per line; what is before the last `: ' of its start is the name. */
static inline void
feed(const char *lines)
{
	const char	*colon, *end;

	for (; *lines != '\0'; lines = end + 1) {
		CHECK((end = strchr(lines, '\n')) != NULL);
		CHECK((colon = strstr(lines + 1, ": ")) != NULL);
		give(lines, (size_t)(colon - lines), colon + 2,
		    (size_t)(end - colon) - 2);
	}
}

/* What became of it: the text, or the status and the reason. */
static inline const char *
outcome(ssize_t len)
{
	static char	 why[128];

	if (len == -1) {
		snprintf(why, sizeof(why), "%d %s", error.he_status,
		    error.he_reason);
		return why;
	}
	CHECK((size_t)len < sizeof(buf));
	buf[len] = '\0';
	return buf;
}

static inline const char *
end_request(int end_stream)
{
	ssize_t	 n = h2_head_request(&hh, end_stream, &head, &error);

	CHECK_STR(h2_differs(&hh, n, H1_OTHER, 0, &head, &error), NULL);
	return outcome(n);
}

static inline const char *
end_response(int end_stream, enum h1_method method, int upgrade)
{
	ssize_t	 n = h2_head_response(&hh, end_stream, method, upgrade, &head,
	    &error);

	CHECK_STR(h2_differs(&hh, n, method, upgrade, &head, &error), NULL);
	return outcome(n);
}

static inline const char *
request(const char *lines, int end_stream)
{
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(lines);
	return end_request(end_stream);
}

static inline const char *
response(const char *lines, int end_stream, enum h1_method method, int upgrade)
{
	h2_head_begin(&hh, H2_RESPONSE, buf, sizeof(buf));
	feed(lines);
	return end_response(end_stream, method, upgrade);
}

#endif /* H2_FEED_H */
