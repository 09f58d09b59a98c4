/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: reading and writing objects of the Kubernetes API.  Those
 * that are read come from a stranger.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kjson.h"
#include "log.h"

#define EXACT_MAX	((double)(1LL << 53) - 1)
#define KEY_LEN		64

const cJSON *
kj_at(const cJSON *json, const char *path)
{
	char	 key[KEY_LEN];
	size_t	 len;

	while (json != NULL && *path != '\0') {
		len = strcspn(path, "/");
		if (len >= sizeof(key))
			return NULL;
		memcpy(key, path, len);
		key[len] = '\0';
		json = cJSON_GetObjectItemCaseSensitive(json, key);
		path += len + (path[len] == '/');
	}
	return json;
}

static const char *
text_of(const cJSON *json)
{
	return cJSON_IsString(json) ? json->valuestring : "";
}

const char *
kj_string(const cJSON *json, const char *path)
{
	return text_of(kj_at(json, path));
}

const char *
kj_label(const cJSON *json, const char *key)
{
	return text_of(cJSON_GetObjectItemCaseSensitive(
	    kj_at(json, "metadata/labels"), key));
}

const char *
kj_annotation(const cJSON *json, const char *key)
{
	return text_of(cJSON_GetObjectItemCaseSensitive(
	    kj_at(json, "metadata/annotations"), key));
}

uint64_t
kj_number(const cJSON *json, const char *path)
{
	const cJSON	*v = kj_at(json, path);

	if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) ||
	    v->valuedouble > EXACT_MAX)
		return 0;
	return (uint64_t)v->valuedouble;
}

const cJSON *
kj_named(const cJSON *array, const char *name)
{
	const cJSON	*v;

	if (!cJSON_IsArray(array))
		return NULL;
	cJSON_ArrayForEach(v, array)
		if (strcmp(kj_string(v, "name"), name) == 0)
			return v;
	return NULL;
}

cJSON *
kj_parse(const char *text, size_t len)
{
	const char	*end;
	cJSON		*json;

	if (len == 0 || memchr(text, '\0', len) != NULL ||
	    (json = cJSON_ParseWithLengthOpts(text, len, &end, 0)) == NULL)
		return NULL;
	while (end < text + len && strchr(" \t\r\n", *end) != NULL)
		end++;
	if (end != text + len || !cJSON_IsObject(json)) {
		cJSON_Delete(json);
		return NULL;
	}
	return json;
}

/* ---- writing ---- */

static void
need(const void *p)
{
	if (p == NULL)
		fatalx("no memory for a JSON text");
}

cJSON *
kj_object(cJSON *in, const char *key)
{
	cJSON	*v = in == NULL ? cJSON_CreateObject() :
	    cJSON_AddObjectToObject(in, key);

	need(v);
	return v;
}

cJSON *
kj_array(cJSON *in, const char *key)
{
	cJSON	*v = cJSON_AddArrayToObject(in, key);

	need(v);
	return v;
}

/* One more object at the end of an array. */
cJSON *
kj_item(cJSON *array)
{
	cJSON	*v = cJSON_CreateObject();

	need(v);
	cJSON_AddItemToArray(array, v);
	return v;
}

void
kj_put(cJSON *in, const char *key, const char *text)
{
	cJSON_DeleteItemFromObjectCaseSensitive(in, key);
	need(cJSON_AddStringToObject(in, key, text));
}

void
kj_put_number(cJSON *in, const char *key, int64_t n)
{
	need(cJSON_AddNumberToObject(in, key, (double)n));
}

void
kj_put_bool(cJSON *in, const char *key, int yes)
{
	need(cJSON_AddBoolToObject(in, key, yes));
}

void
kj_put_item(cJSON *array, const char *text)
{
	cJSON	*v = cJSON_CreateString(text);

	need(v);
	cJSON_AddItemToArray(array, v);
}

cJSON *
kj_copy(const cJSON *json)
{
	cJSON	*v = cJSON_Duplicate(json, 1);

	need(v);
	return v;
}

char *
kj_print(const cJSON *json)
{
	char	*text = cJSON_PrintUnformatted(json);

	need(text);
	return text;
}

void
kj_tame(const char *text, size_t len, char *out, size_t size)
{
	size_t	 i, n = 0;

	for (i = 0; i < len && text[i] != '\0' && n + 1 < size; i++) {
		/* Lines and runs of spaces become one space. */
		if ((unsigned char)text[i] > ' ' && text[i] != 0x7f)
			out[n++] = text[i];
		else if (n > 0 && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	/* A character that was cut in two is left out. */
	if (i < len && ((unsigned char)text[i] & 0xc0) == 0x80) {
		while (n > 0 && ((unsigned char)out[n - 1] & 0xc0) == 0x80)
			n--;
		n -= n > 0;
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
}

/* ---- time ---- */

int64_t
kj_time(const char *text)
{
	struct tm	 tm = { 0 };
	const char	*end;
	time_t		 t;

	if ((end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)) == NULL)
		return 0;
	if (*end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (strcmp(end, "Z") != 0 || (t = timegm(&tm)) < 0)
		return 0;
	return t;
}

void
kj_time_print(int64_t s, char out[KJ_TIME_LEN + 1])
{
	struct tm	 tm;
	time_t		 t = s;

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(out, KJ_TIME_LEN + 1, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
}
