/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: bytes of the sandbox as text, and in base64.  JSON has no
 * bytes, and a string of cJSON no NUL.
 */

#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "utf8.h"

static const char	alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/*
 * 1 if it is UTF-8 without NUL, perhaps with a character that is cut off at
 * the end; `whole' is the length before that one.
 */
int
text_is(const char *s, size_t len, size_t *whole)
{
	uint32_t	code;
	size_t		i, n, want;

	for (i = 0; i < len; i += n) {
		if (s[i] == '\0')
			return 0;
		if ((n = utf8_decode(s + i, len - i, &code)) > 0)
			continue;
		want = (s[i] & 0xf8) == 0xf0 ? 4 : (s[i] & 0xf0) == 0xe0 ? 3 :
		    (s[i] & 0xe0) == 0xc0 ? 2 : 0;
		if (len - i >= want)
			return 0;
		for (n = 1; i + n < len; n++)
			if ((s[i + n] & 0xc0) != 0x80)
				return 0;
		break;
	}
	*whole = i;
	return 1;
}

/* Text of bytes: what is none is U+FFFD. */
char *
text_of(const char *s, size_t len)
{
	uint32_t	code;
	size_t		n, used = 0;
	char		*text = must(malloc(3 * len + 1));

	for (; len > 0; s += n, len -= n) {
		if (*s != '\0' && (n = utf8_decode(s, len, &code)) > 0) {
			memcpy(text + used, s, n);
			used += n;
			continue;
		}
		n = 1;
		memcpy(text + used, "\xef\xbf\xbd", 3);
		used += 3;
	}
	text[used] = '\0';
	return text;
}

/* The bytes of a path: U+EF80 to U+EFFF stand for 80 to ff. */
char *
text_bytes(const char *s)
{
	char		*bytes = must(malloc(strlen(s) + 1)), *p = bytes;
	uint32_t	 code;
	size_t		 n;

	for (; *s != '\0'; s += n) {
		if ((n = utf8_decode(s, UTF8_LEN_MAX, &code)) == 0)
			n = 1, code = 0;
		if (code >= 0xef80 && code <= 0xefff) {
			*p++ = (char)(code & 0xff);
			continue;
		}
		memcpy(p, s, n);
		p += n;
	}
	*p = '\0';
	return bytes;
}

/*
 * Writes a name, or a line of words, so that it stays on its line: as a JSON
 * string if there is anything in it that a person would not see.
 */
void
text_put(FILE *fp, const char *s)
{
	struct jsonw	 w;
	const char	*p, *out;
	char		*bytes;
	uint32_t	 code;
	size_t		 n, len;

	for (p = s; *p != '\0'; p += n) {
		if ((n = utf8_decode(p, UTF8_LEN_MAX, &code)) == 0 ||
		    code < ' ' || code == 0x7f || code == '"' ||
		    (code >= 0x80 && utf8_unseen(code)))
			break;
	}
	if (*p == '\0' && p > s) {
		fputs(s, fp);
		return;
	}
	bytes = text_bytes(s);
	jsonw_init(&w, JSONW_ESCAPED(strlen(bytes)) + 16);
	jsonw_str(&w, bytes);
	if ((out = jsonw_finish(&w, &len)) != NULL)
		fwrite(out, 1, len, fp);
	jsonw_free(&w);
	free(bytes);
}

char *
text_base64(const char *s, size_t len)
{
	char		*text = must(malloc((len + 2) / 3 * 4 + 1)), *p = text;
	const uint8_t	*in = (const uint8_t *)s;
	uint32_t	 v;

	for (; len > 0; in += 3, len -= len < 3 ? len : 3) {
		v = (uint32_t)in[0] << 16;
		v |= len > 1 ? (uint32_t)in[1] << 8 : 0;
		v |= len > 2 ? in[2] : 0;
		*p++ = alphabet[v >> 18];
		*p++ = alphabet[v >> 12 & 63];
		*p++ = len > 1 ? alphabet[v >> 6 & 63] : '=';
		*p++ = len > 2 ? alphabet[v & 63] : '=';
	}
	*p = '\0';
	return text;
}

/* The bytes, or NULL if this is not base64; line breaks may stand in it. */
char *
text_unbase64(const char *s, size_t *len)
{
	char		*bytes = must(malloc(strlen(s) / 4 * 3 + 4));
	const char	*at;
	uint32_t	 v = 0;
	size_t		 n = 0, pad = 0, used = 0;

	for (; *s != '\0'; s++) {
		if (*s == '\n' || *s == '\r')
			continue;
		at = strchr(alphabet, *s);
		if ((*s == '=') != (at == NULL) || (pad > 0 && at != NULL))
			goto fail;
		pad += *s == '=';
		v = v << 6 | (at == NULL ? 0 : (uint32_t)(at - alphabet));
		if (++n % 4 != 0)
			continue;
		bytes[used++] = (char)(v >> 16);
		bytes[used++] = (char)(v >> 8);
		bytes[used++] = (char)v;
	}
	if (n % 4 != 0 || pad > 2 || (pad > 0 && (v & (pad == 2 ? 0xffff :
	    0xff)) != 0))
		goto fail;
	*len = used - pad;
	return bytes;
 fail:
	free(bytes);
	return NULL;
}

/* The type of a file's content, as far as its first bytes say. */
const char *
text_type(const char *s, size_t len)
{
	static const struct {
		const char	*magic;
		size_t		 len;
		const char	*type;
	} types[] = {
		{ "\x89PNG\r\n\x1a\n", 8, "image/png" },
		{ "\xff\xd8\xff", 3, "image/jpeg" },
		{ "GIF8", 4, "image/gif" },
		{ "%PDF-", 5, "application/pdf" },
		{ "PK\3\4", 4, "application/zip" },
		{ "\x1f\x8b", 2, "application/gzip" },
	};
	size_t	i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (len >= types[i].len &&
		    memcmp(s, types[i].magic, types[i].len) == 0)
			return types[i].type;
	return "application/octet-stream";
}
