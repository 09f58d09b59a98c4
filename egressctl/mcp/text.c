/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: bytes of the sandbox as text, and in base64.  JSON has no
 * bytes, and a string of cJSON no NUL.
 */

#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "mcp.h"
#include "utf8.h"

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
	char	*text = must(malloc(BASE64_SIZE(len)));

	base64_encode(s, len, text);
	return text;
}

/* The bytes, or NULL if this is not base64; line breaks may stand in it. */
char *
text_unbase64(const char *s, size_t *len)
{
	char	*bytes = must(malloc(strlen(s) / 4 * 3 + 4));
	long	 n;

	if ((n = base64_decode(s, strlen(s), bytes)) == -1) {
		free(bytes);
		return NULL;
	}
	*len = (size_t)n;
	return bytes;
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
