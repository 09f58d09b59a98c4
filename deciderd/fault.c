/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: what a server says when it does not answer.  An operator
 * wants to read it; but it is a stranger's text, which may be long, may hold
 * what a terminal obeys, and may give back the key that it was sent.
 */

#include <string.h>

#include "deciderd.h"

#define KEY_PART	8	/* bytes of a key that must not be shown */

/* How many bytes at p are part of the key, which ends the header. */
static size_t
key_part(const char *p, size_t left, const struct decider *de)
{
	const char	*key;
	size_t		 i, n, len, most = 0;

	if (de->de_auth == NULL)
		return 0;
	key = (const char *)de->de_auth->sc_data;
	key = strrchr(key, ' ') + 1;
	len = strlen(key);
	for (i = 0; i < len; i++) {
		for (n = 0; n < left && i + n < len && p[n] == key[i + n]; n++)
			continue;
		if (n > most)
			most = n;
	}
	return most >= KEY_PART || most == len ? most : 0;
}

/* Printable ASCII, at most size - 1 bytes, without the key. */
static void
fault_copy(const struct decider *de, const char *text, size_t len, char *out,
    size_t size)
{
	static const char	 mark[] = "[redacted]";
	size_t			 i = 0, n = 0, part;

	while (i < len && n + 1 < size) {
		part = key_part(text + i, len - i, de);
		if (part > 0) {
			if (size - n < sizeof(mark))
				break;
			memcpy(out + n, mark, sizeof(mark) - 1);
			n += sizeof(mark) - 1;
			i += part;
			continue;
		}
		out[n++] = text[i] >= ' ' && text[i] < 0x7f ? text[i] :
		    strchr("\t\r\n", text[i]) != NULL ? ' ' : '?';
		i++;
	}
	out[n] = '\0';
}

/* An object's `error' if that is text, else error.message or message. */
static const char *
fault_message(const cJSON *json)
{
	const cJSON	*error, *v;

	error = cJSON_GetObjectItemCaseSensitive(json, "error");
	if (cJSON_IsString(error))
		return error->valuestring;
	v = cJSON_GetObjectItemCaseSensitive(cJSON_IsObject(error) ? error :
	    json, "message");
	return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* What the body of a failure says, for records and logs; "" if nothing. */
void
fault_text(const struct decider *de, const char *text, size_t len, char *out,
    size_t size)
{
	cJSON	*json = NULL;

	out[0] = '\0';
	/* An HTML page is for browsers. */
	if (len == 0 || text[0] == '<')
		return;
	if (text[0] == '{')
		json = cJSON_ParseWithLength(text, len);
	if (cJSON_IsObject(json) && fault_message(json) != NULL) {
		text = fault_message(json);
		len = strlen(text);
	}
	fault_copy(de, text, len, out, size);
	cJSON_Delete(json);
}
