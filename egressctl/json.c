/* SPDX-License-Identifier: ISC */

/*
 * egressctl: reads JSON that the daemon sent.  cJSON does the parsing;
 * what it is lax about is checked before it sees the line.
 */

#include <stdlib.h>
#include <string.h>

#include "show.h"

/*
 * Refuses raw control characters and deep nesting (cJSON recurses, up to
 * 1000 levels).  cJSON ends a string at an escaped NUL, which would hide
 * whatever follows, so the copy that it gets has U+2400, the symbol for
 * NUL, in its place.
 */
static int
json_guard(char *s, size_t len)
{
	size_t	i;
	int	depth = 0, quoted = 0;

	for (i = 0; i < len; i++) {
		if ((unsigned char)s[i] < ' ' && (quoted || s[i] != '\t'))
			return -1;
		if (quoted && s[i] == '\\') {
			if (strncmp(s + i, "\\u0000", 6) == 0)
				s[i + 2] = '2', s[i + 3] = '4';
			i++;
		} else if (s[i] == '"')
			quoted = !quoted;
		else if (!quoted && (s[i] == '{' || s[i] == '[')) {
			if (++depth > ANSWER_DEPTH_MAX)
				return -1;
		} else if (!quoted && (s[i] == '}' || s[i] == ']'))
			depth--;
	}
	return 0;
}

/* The object on a NUL-terminated line, or NULL if there is no object. */
cJSON *
json_parse(const char *line, size_t len)
{
	cJSON	*json = NULL;
	char	*copy;

	if ((copy = malloc(len + 1)) == NULL)
		return NULL;
	memcpy(copy, line, len + 1);
	if (json_guard(copy, len) == 0)
		json = cJSON_ParseWithLengthOpts(copy, len + 1, NULL, 1);
	free(copy);
	if (json != NULL && !cJSON_IsObject(json)) {
		cJSON_Delete(json);
		json = NULL;
	}
	return json;
}

/* A member, or NULL, also for one that is null. */
const cJSON *
json_get(const cJSON *object, const char *name)
{
	const cJSON	*item;

	item = cJSON_GetObjectItemCaseSensitive(object, name);
	return cJSON_IsNull(item) ? NULL : item;
}

const char *
json_string(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(json_get(object, name));
}

static size_t
put_number(FILE *fp, double number)
{
	char	buf[32];
	int	len;

	if (number > -9e15 && number < 9e15 &&
	    number == (double)(int64_t)number)
		len = snprintf(buf, sizeof(buf), "%.0f", number);
	else
		len = snprintf(buf, sizeof(buf), "%.17g", number);
	if (fp != NULL)
		fputs(buf, fp);
	return (size_t)len;
}

static size_t
put_tree(FILE *fp, const cJSON *item)
{
	char	*text;
	size_t	 columns;

	if ((text = cJSON_PrintUnformatted(item)) == NULL)
		return visible_put(fp, "?", VISIBLE_TEXT);
	columns = visible_put(fp, text, VISIBLE_TEXT);
	cJSON_free(text);
	return columns;
}

/*
 * Writes a value for people and returns its columns; only counts them if
 * fp is NULL.  What is missing is a dash.
 */
size_t
json_put(FILE *fp, const cJSON *item)
{
	if (item == NULL || cJSON_IsNull(item))
		return visible_put(fp, "-", VISIBLE_TEXT);
	if (cJSON_IsString(item))
		return visible_put(fp, item->valuestring, VISIBLE_TEXT);
	if (cJSON_IsBool(item))
		return visible_put(fp, cJSON_IsTrue(item) ? "yes" : "no",
		    VISIBLE_TEXT);
	if (cJSON_IsNumber(item))
		return put_number(fp, item->valuedouble);
	return put_tree(fp, item);
}
