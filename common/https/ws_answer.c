/* SPDX-License-Identifier: ISC */

/*
 * Children with a WebSocket run this: what a server answers to an upgrade
 * (RFC 6455, 4.1).  The answer is a stranger's, and read to the letter.
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>

#include "https/ws_private.h"
#include "log.h"

#define LENGTH_MAX	(1024 * 1024 * 1024)

static const char	 guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/* What the server has to say to a key. */
void
ws_accept(const char *key, char out[WS_ACCEPT_LEN + 1])
{
	char		 text[WS_KEY_LEN + sizeof(guid)];
	unsigned char	 digest[EVP_MAX_MD_SIZE];
	unsigned int	 len;

	strlcpy(text, key, sizeof(text));
	strlcat(text, guid, sizeof(text));
	if (!EVP_Digest(text, strlen(text), digest, &len, EVP_sha1(), NULL))
		fatalx("%s: EVP_Digest", __func__);
	EVP_EncodeBlock((unsigned char *)out, digest, (int)len);
}

/* ---- fields ---- */

struct field {
	const char	*fi_name;
	size_t		 fi_name_len;
	const char	*fi_value;
	size_t		 fi_value_len;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
same(const char *a, size_t len, const char *b)
{
	return strlen(b) == len && strncasecmp(a, b, len) == 0;
}

/* Is the word in a list with commas? */
static bool
lists(const struct field *fi, const char *word)
{
	const char	*text = fi->fi_value;
	size_t		 i, from = 0, to;

	for (i = 0; i <= fi->fi_value_len; i++) {
		if (i < fi->fi_value_len && text[i] != ',')
			continue;
		for (; from < i && is_blank(text[from]); from++)
			;
		for (to = i; to > from && is_blank(text[to - 1]); to--)
			;
		if (same(text + from, to - from, word))
			return true;
		from = i + 1;
	}
	return false;
}

/* A value that comes once and fits. */
static int
keep(const struct field *fi, char *out, size_t size)
{
	if (out[0] != '\0' || fi->fi_value_len == 0 ||
	    fi->fi_value_len >= size ||
	    memchr(fi->fi_value, '\0', fi->fi_value_len) != NULL)
		return -1;
	memcpy(out, fi->fi_value, fi->fi_value_len);
	out[fi->fi_value_len] = '\0';
	return 0;
}

static int
take_length(const struct field *fi, struct ws_answer *wa)
{
	char		 text[16] = "";
	const char	*why;

	if (wa->wa_sized || keep(fi, text, sizeof(text)) == -1)
		return -1;
	wa->wa_length = (size_t)strtonum(text, 0, LENGTH_MAX, &why);
	wa->wa_sized = true;
	return why == NULL ? 0 : -1;
}

#define HAS_UPGRADE	1U
#define HAS_CONNECTION	2U

static int
take_field(const struct field *fi, struct ws_answer *wa, unsigned int *has)
{
	if (same(fi->fi_name, fi->fi_name_len, "Upgrade"))
		*has |= same(fi->fi_value, fi->fi_value_len, "websocket") ?
		    HAS_UPGRADE : 0;
	else if (same(fi->fi_name, fi->fi_name_len, "Connection"))
		*has |= lists(fi, "upgrade") ? HAS_CONNECTION : 0;
	else if (same(fi->fi_name, fi->fi_name_len, "Sec-WebSocket-Accept"))
		return keep(fi, wa->wa_accept, sizeof(wa->wa_accept));
	else if (same(fi->fi_name, fi->fi_name_len,
	    "Sec-WebSocket-Protocol"))
		return keep(fi, wa->wa_protocol, sizeof(wa->wa_protocol));
	else if (same(fi->fi_name, fi->fi_name_len,
	    "Sec-WebSocket-Extensions"))
		wa->wa_extended = true;
	else if (same(fi->fi_name, fi->fi_name_len, "Content-Length"))
		return take_length(fi, wa);
	else if (same(fi->fi_name, fi->fi_name_len, "Transfer-Encoding"))
		wa->wa_chunked = lists(fi, "chunked");
	return 0;
}

/* ---- the head ---- */

/* "HTTP/1.1 101 ..." */
static int
take_status(const char *line, size_t len, struct ws_answer *wa)
{
	static const char	 version[] = "HTTP/1.";
	size_t			 i, n = sizeof(version) - 1;

	if (len < n + 5 || memcmp(line, version, n) != 0 ||
	    (line[n] != '0' && line[n] != '1') || line[n + 1] != ' ')
		return -1;
	for (i = n + 2; i < n + 5; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -1;
		wa->wa_status = wa->wa_status * 10 +
		    (unsigned int)(line[i] - '0');
	}
	return wa->wa_status >= 100 && (len == i || line[i] == ' ') ? 0 : -1;
}

static int
take_line(const char *line, size_t len, struct field *fi)
{
	const char	*colon = memchr(line, ':', len);

	if (colon == NULL || colon == line || is_blank(line[0]) ||
	    is_blank(colon[-1]))
		return -1;
	fi->fi_name = line;
	fi->fi_name_len = (size_t)(colon - line);
	fi->fi_value = colon + 1;
	fi->fi_value_len = len - fi->fi_name_len - 1;
	while (fi->fi_value_len > 0 && is_blank(fi->fi_value[0]))
		fi->fi_value++, fi->fi_value_len--;
	while (fi->fi_value_len > 0 &&
	    is_blank(fi->fi_value[fi->fi_value_len - 1]))
		fi->fi_value_len--;
	return 0;
}

/* 1 with all of the head; 0: it is not whole yet; -1: it is none. */
int
ws_answer_parse(const char *data, size_t len, struct ws_answer *wa)
{
	const char	*line = data, *end = data + len, *next;
	struct field	 fi;
	unsigned int	 has = 0;
	bool		 first = true;

	memset(wa, 0, sizeof(*wa));
	for (; (next = memmem(line, (size_t)(end - line), "\r\n", 2)) != NULL;
	    line = next + 2, first = false) {
		if (first) {
			if (take_status(line, (size_t)(next - line), wa) == -1)
				return -1;
		} else if (next == line) {
			wa->wa_head = (size_t)(next + 2 - data);
			wa->wa_upgrade = has ==
			    (HAS_UPGRADE | HAS_CONNECTION);
			return 1;
		} else if (take_line(line, (size_t)(next - line), &fi) == -1 ||
		    take_field(&fi, wa, &has) == -1)
			return -1;
	}
	return 0;
}

/* ---- the body ---- */

/*
 * What of a chunked body is there, in place.  1: that is all of it; 0: more is
 * to come, and the text is as it was; -1: it is none.
 */
int
ws_answer_dechunk(char *body, size_t *len)
{
	size_t	 at = 0, out = 0, size;
	char	*next, *copy;
	int	 rv = 0;

	if ((copy = malloc(*len + 1)) == NULL)
		fatal("%s", __func__);
	while ((next = memmem(body + at, *len - at, "\r\n", 2)) != NULL) {
		*next = '\0';
		size = strtoul(body + at, NULL, 16);
		*next = '\r';
		at = (size_t)(next + 2 - body);
		if (size > *len) {
			rv = size > LENGTH_MAX ? -1 : 0;
			break;
		}
		if (size == 0) {
			memcpy(body, copy, out);
			*len = out;
			rv = 1;
			break;
		}
		if (*len - at < size + 2)
			break;
		memcpy(copy + out, body + at, size);
		out += size;
		at += size + 2;
	}
	free(copy);
	return rv;
}
