/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for the HTTP/1 heads of tlsengine.  The first byte says whether
 * a request or a response follows and how it is cut.  Whatever is accepted
 * must go out in a form that is accepted, understood the same, and has one
 * framing.
 */

#include <stdint.h>
#include <stdlib.h>

#include "../unit/h1_echo.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)
#define OWN_FIELDS	4	/* of the gate, at most, in one head */
#define IS_RESPONSE	0x80
#define ASKS_HEAD	0x40
#define ASKS_UPGRADE	0x20

static int
scan(const char *data, size_t len, size_t piece, struct h1_error *he)
{
	struct h1_scan	 st = { 0 };
	size_t		 n = 0;
	int		 r = 0;

	while (r == 0 && n < len) {
		n = piece < len - n ? n + piece : len;
		r = h1_scan(&st, data, n, he);
	}
	return r;
}

static int
parse(int kind, const char *data, size_t len, struct h1_head *hd,
    struct h1_error *he)
{
	int	 r;

	he->he_reason = NULL;
	if (kind & IS_RESPONSE)
		r = h1_parse_response(data, len, kind & ASKS_HEAD ? H1_HEAD :
		    H1_GET, kind & ASKS_UPGRADE, hd, he);
	else
		r = h1_parse_request(data, len, hd, he);
	REQUIRE((r == -1) == (he->he_reason != NULL));
	return r;
}

static ssize_t
echo(const struct h1_head *hd, char *out, size_t size)
{
	return hd->hd_is_request ? h1_echo_request(hd, out, size) :
	    h1_echo_response(hd, out, size);
}

/* How often a line begins with name, found in the simplest way. */
static int
count(const char *data, size_t len, const char *name)
{
	size_t	 i, nlen = strlen(name);
	int	 n = 0;

	for (i = 2; i + nlen <= len; i++)
		if (data[i - 2] == '\r' && data[i - 1] == '\n' &&
		    strncasecmp(data + i, name, nlen) == 0)
			n++;
	return n;
}

static void
require_clean(const struct h1_head *hd, const char *data, size_t len)
{
	int	 lengths = count(data, len, "content-length:");
	int	 codings = count(data, len, "transfer-encoding:");
	size_t	 i;

	REQUIRE(lengths == (hd->hd_framing == H1_LENGTH));
	REQUIRE(codings == (hd->hd_framing == H1_CHUNKED));
	REQUIRE(count(data, len, "host:") == hd->hd_is_request);
	REQUIRE(count(data, len, "connection:") <= 1);
	REQUIRE(len >= 4 && memcmp(data + len - 4, "\r\n\r\n", 4) == 0);
	REQUIRE(count(data, len, "\r\n") == 1);
	for (i = 0; i < len; i++)
		REQUIRE((unsigned char)data[i] >= ' ' || data[i] == '\t' ||
		    (data[i] == '\r' && data[i + 1] == '\n') ||
		    (data[i] == '\n' && data[i - 1] == '\r'));
}

static void
fuzz_head(int kind, const char *data, size_t len)
{
	static struct h1_head	 hd, again;
	static char		 one[2 * H1_HEAD_MAX], two[2 * H1_HEAD_MAX];
	struct h1_error		 he;
	ssize_t			 n;

	if (parse(kind, data, len, &hd, &he) == -1)
		return;
	if ((n = echo(&hd, one, sizeof(one))) == -1) {
		/* Only a path may be worse than its head. */
		REQUIRE(hd.hd_is_request);
		return;
	}
	require_clean(&hd, one, (size_t)n);
	/* What we add may be one too many for the parser. */
	if (hd.hd_nfields + OWN_FIELDS > H1_FIELDS_MAX)
		return;
	REQUIRE(parse(kind, one, (size_t)n, &again, &he) == 0);
	REQUIRE(h1_echo_same(&hd, &again));
	REQUIRE(echo(&again, two, sizeof(two)) == n);
	REQUIRE(memcmp(one, two, (size_t)n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct h1_error	 whole = { 0, NULL }, cut = { 0, NULL };
	char		*copy;
	int		 r;

	if (size < 2 || (copy = malloc(size - 1)) == NULL)
		return 0;
	memcpy(copy, data + 1, size - 1);
	r = scan(copy, size - 1, size - 1, &whole);
	REQUIRE(scan(copy, size - 1, (data[0] & 0x1f) + 1, &cut) == r);
	REQUIRE(whole.he_reason == cut.he_reason);
	REQUIRE((r == -1) == (whole.he_reason != NULL));
	if (r > 0) {
		/* To the byte, so that a read behind the head is seen. */
		char	*head = malloc((size_t)r);

		REQUIRE(head != NULL && (size_t)r <= size - 1);
		memcpy(head, copy, (size_t)r);
		fuzz_head(data[0], head, (size_t)r);
		free(head);
	} else
		fuzz_head(data[0], copy, size - 1);
	free(copy);
	return 0;
}
