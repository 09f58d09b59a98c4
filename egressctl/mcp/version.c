/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: the versions of the protocol that are spoken.
 */

#include <err.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mcp.h"

static const char *const names[VERSION_MAX] = {
	[VERSION_NONE] = "",
	[VERSION_2024_11_05] = "2024-11-05",
	[VERSION_2025_03_26] = "2025-03-26",
	[VERSION_2025_06_18] = "2025-06-18",
	[VERSION_2025_11_25] = "2025-11-25",
	[VERSION_2026_07_28] = "2026-07-28",
};

const char *
version_name(enum version version)
{
	return names[version];
}

enum version
version_find(const char *name)
{
	enum version	v;

	for (v = VERSION_MAX - 1; v > VERSION_NONE; v--)
		if (name != NULL && strcmp(names[v], name) == 0)
			break;
	return v;
}

/* All, the newest first. */
cJSON *
version_list(void)
{
	cJSON		*list = must(cJSON_CreateArray());
	enum version	 v;

	for (v = VERSION_MAX - 1; v > VERSION_NONE; v--)
		cJSON_AddItemToArray(list,
		    must(cJSON_CreateString(names[v])));
	return list;
}

/* Who we are, as a client is told. */
cJSON *
version_server(enum version version)
{
	cJSON	*server = must(cJSON_CreateObject());

	cJSON_AddStringToObject(server, "name", "egressd");
	if (version >= VERSION_2025_06_18)
		cJSON_AddStringToObject(server, "title", "egressd sandbox");
	cJSON_AddStringToObject(server, "version", EGRESSD_VERSION);
	return server;
}

cJSON *
exact(double number)
{
	char	text[32];

	if (number < -INTEGER_MAX || number > INTEGER_MAX ||
	    number != (double)(int64_t)number)
		return must(cJSON_CreateNumber(number));
	snprintf(text, sizeof(text), "%lld", (long long)number);
	return must(cJSON_CreateRaw(text));
}

cJSON *
exact_copy(const cJSON *item)
{
	return cJSON_IsNumber(item) ? exact(item->valuedouble) :
	    must(cJSON_Duplicate(item, 1));
}

void *
must(void *memory)
{
	if (memory == NULL)
		err(EXIT_NO_DAEMON, NULL);
	return memory;
}
