/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: arguments of a tool: checked against its table, and written
 * into the request to the sandbox.
 */

#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "show.h"

static const struct value *
find_value(const struct value *table, const char *name)
{
	for (; table->va_kind != VALUE_NONE; table++)
		if (strcmp(table->va_name, name) == 0)
			return table;
	return NULL;
}

static int
all_strings(const cJSON *list)
{
	const cJSON	*item;

	cJSON_ArrayForEach(item, list)
		if (!cJSON_IsString(item))
			return 0;
	return 1;
}

/* What the value ought to be, or NULL if it is. */
static const char *
wrong_kind(const struct value *va, const cJSON *item)
{
	double	n = item->valuedouble;

	switch (va->va_kind) {
	case VALUE_PATH:
		return cJSON_IsString(item) && *item->valuestring != '\0' ?
		    NULL : "a string that is not empty";
	case VALUE_TEXT:
		return cJSON_IsString(item) ? NULL : "a string";
	case VALUE_NUMBER:
		return cJSON_IsNumber(item) && n >= va->va_min &&
		    n <= va->va_max && n == (double)(int64_t)n ? NULL :
		    "an integer";
	case VALUE_BOOL:
		return cJSON_IsBool(item) ? NULL : "true or false";
	case VALUE_WORDS:
		return cJSON_IsArray(item) && cJSON_GetArraySize(item) > 0 &&
		    all_strings(item) ? NULL :
		    "an array of strings that is not empty";
	case VALUE_MAP:
		return cJSON_IsObject(item) && all_strings(item) ? NULL :
		    "an object of strings";
	case VALUE_ENCODING:
		return cJSON_IsString(item) &&
		    (strcmp(item->valuestring, "utf-8") == 0 ||
		    strcmp(item->valuestring, "base64") == 0) ? NULL :
		    "\"utf-8\" or \"base64\"";
	default:
		return "absent";
	}
}

static char *
say_wrong(const struct value *va, const char *wanted)
{
	char	*text;

	if (asprintf(&text, va->va_kind == VALUE_NUMBER ?
	    "argument %s: wanted %s from %.0f to %.0f" :
	    "argument %s: wanted %s", va->va_name, wanted, va->va_min,
	    va->va_max) == -1)
		must(NULL);
	return text;
}

/* NULL, or what is wrong, for the caller to free. */
char *
args_check(const struct tool *tool, const cJSON *args)
{
	const struct value	*va;
	const cJSON		*item;
	const char		*wanted;
	char			*text;

	cJSON_ArrayForEach(item, args) {
		if ((va = find_value(tool->to_args, item->string)) == NULL) {
			if (asprintf(&text, "no such argument: %s",
			    item->string) == -1)
				must(NULL);
			return text;
		}
		if ((wanted = wrong_kind(va, item)) != NULL)
			return say_wrong(va, wanted);
	}
	for (va = tool->to_args; va->va_kind != VALUE_NONE; va++)
		if ((va->va_flags & VALUE_NEEDED) &&
		    json_get(args, va->va_name) == NULL)
			return say_wrong(va, "it, but it is missing");
	return NULL;
}

uint64_t
args_number(const cJSON *args, const char *name, uint64_t preset)
{
	const cJSON	*item = json_get(args, name);

	return cJSON_IsNumber(item) ? (uint64_t)item->valuedouble : preset;
}

/* Names are spelt as box spells them; the writer does that with bytes. */
static void
put_path(struct jsonw *w, const char *path)
{
	char	*bytes = text_bytes(path);

	jsonw_str(w, bytes);
	free(bytes);
}

static void
put_list(struct jsonw *w, const cJSON *list)
{
	const cJSON	*item;
	int		 named = cJSON_IsObject(list);

	if (named)
		jsonw_object(w);
	else
		jsonw_array(w);
	cJSON_ArrayForEach(item, list) {
		if (named)
			jsonw_key(w, item->string);
		jsonw_str(w, item->valuestring);
	}
	jsonw_end(w);
}

static void
put_value(struct jsonw *w, const struct value *va, const cJSON *item)
{
	jsonw_key(w, va->va_name);
	switch (va->va_kind) {
	case VALUE_PATH:
		put_path(w, item->valuestring);
		break;
	case VALUE_NUMBER:
		jsonw_uint(w, (uint64_t)item->valuedouble);
		break;
	case VALUE_BOOL:
		jsonw_bool(w, cJSON_IsTrue(item));
		break;
	case VALUE_WORDS:
	case VALUE_MAP:
		put_list(w, item);
		break;
	default:
		jsonw_str(w, item->valuestring);
		break;
	}
}

/* Writes those that are given or have a preset. */
void
args_put(struct jsonw *w, const struct tool *tool, const cJSON *args)
{
	const struct value	*va;
	const cJSON		*item;

	for (va = tool->to_args; va->va_kind != VALUE_NONE; va++) {
		if (va->va_flags & VALUE_OURS)
			continue;
		if ((item = json_get(args, va->va_name)) != NULL)
			put_value(w, va, item);
		else if (va->va_kind == VALUE_NUMBER && va->va_preset >= 0)
			put_uint(w, va->va_name, (uint64_t)va->va_preset);
	}
}
