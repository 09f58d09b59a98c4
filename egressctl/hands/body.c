/* SPDX-License-Identifier: ISC */

/*
 * egressctl: JSON objects in frames.  Box is hostile, and so is every string:
 * it is checked before cJSON, which is lax, sees it.
 */

#include <string.h>

#include "hands.h"
#include "show.h"
#include "utf8.h"

#define INTEGER_MAX	9007199254740992.0	/* 2^53, as the protocol says */

/* The bytes 80 to ff that are no UTF-8 are spelt U+EF80 to U+EFFF. */
#define BYTE_FIRST	0xef80
#define BYTE_LAST	0xefff
#define BYTE_OFFSET	0xef00

/* json_parse() would show an escaped NUL as another character. */
static int
has_nul(const char *s, size_t len)
{
	size_t	i;

	for (i = 0; i < len; i++)
		if (s[i] == '\\') {
			if (len - i >= 6 && memcmp(s + i, "\\u0000", 6) == 0)
				return 1;
			i++;
		}
	return memchr(s, '\0', len) != NULL;
}

static int
is_utf8(const char *s, size_t len)
{
	uint32_t	code;
	size_t		n;

	for (; len > 0; s += n, len -= n)
		if ((n = utf8_decode(s, len, &code)) == 0)
			return 0;
	return 1;
}

/* A string in its place; it can only become shorter. */
static void
decode_string(char *s)
{
	uint32_t	 code;
	size_t		 n;
	char		*to = s;

	for (; *s != '\0'; s += n) {
		if ((n = utf8_decode(s, UTF8_LEN_MAX, &code)) == 0)
			n = 1;
		else if (code >= BYTE_FIRST && code <= BYTE_LAST) {
			*to++ = (char)(code - BYTE_OFFSET);
			continue;
		}
		memmove(to, s, n);
		to += n;
	}
	*to = '\0';
}

/* json_parse() has bounded the depth. */
static void
decode_tree(cJSON *json)
{
	for (; json != NULL; json = json->next) {
		if (cJSON_IsString(json))
			decode_string(json->valuestring);
		decode_tree(json->child);
	}
}

/* The object, NUL-terminated, that a frame has; strings are then bytes. */
cJSON *
body_parse(const char *text, size_t len)
{
	cJSON	*json;

	if (has_nul(text, len) || !is_utf8(text, len) ||
	    (json = json_parse(text, len)) == NULL)
		return NULL;
	decode_tree(json->child);
	return json;
}

/* A member that is an integer, not negative: 0; else -1. */
int
body_number(const cJSON *json, const char *name, uint64_t *number)
{
	const cJSON	*item = json_get(json, name);
	double		 value;

	if (!cJSON_IsNumber(item))
		return -1;
	value = item->valuedouble;
	if (!(value >= 0 && value <= INTEGER_MAX) ||
	    (double)(uint64_t)value != value)
		return -1;
	*number = (uint64_t)value;
	return 0;
}

int
body_bool(const cJSON *json, const char *name, int *value)
{
	const cJSON	*item = json_get(json, name);

	if (!cJSON_IsBool(item))
		return -1;
	*value = cJSON_IsTrue(item);
	return 0;
}
