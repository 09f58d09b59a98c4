/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: the list of tools, with the schemas that follow from their
 * tables.
 */

#include <stdlib.h>
#include <string.h>

#include "mcp.h"

static cJSON	*schema_object(const struct value *);

static cJSON *
schema_type(const char *type)
{
	cJSON	*schema = must(cJSON_CreateObject());

	cJSON_AddStringToObject(schema, "type", type);
	return schema;
}

static cJSON *
schema_array(cJSON *items)
{
	cJSON	*schema = schema_type("array");

	cJSON_AddItemToObject(schema, "items", items);
	return schema;
}

static cJSON *
schema_encoding(void)
{
	static const char *const	 words[] = { "utf-8", "base64" };
	cJSON				*schema = schema_type("string");

	cJSON_AddItemToObject(schema, "enum",
	    must(cJSON_CreateStringArray(words, 2)));
	return schema;
}

static cJSON *
schema_number(const struct value *va)
{
	cJSON	*schema = schema_type("integer");

	cJSON_AddItemToObject(schema, "minimum", exact(va->va_min));
	cJSON_AddItemToObject(schema, "maximum", exact(va->va_max));
	if (va->va_preset >= 0)
		cJSON_AddNumberToObject(schema, "default", va->va_preset);
	return schema;
}

static cJSON *
schema_map(void)
{
	cJSON	*schema = schema_type("object");

	cJSON_AddItemToObject(schema, "additionalProperties",
	    schema_type("string"));
	return schema;
}

static cJSON *
schema_value(const struct value *va)
{
	cJSON	*schema;

	switch (va->va_kind) {
	case VALUE_PATH:
		schema = schema_type("string");
		cJSON_AddNumberToObject(schema, "minLength", 1);
		return schema;
	case VALUE_NUMBER:
		return schema_number(va);
	case VALUE_FRACTION:
		return schema_type("number");
	case VALUE_BOOL:
		return schema_type("boolean");
	case VALUE_WORDS:
		return schema_array(schema_type("string"));
	case VALUE_MAP:
		return schema_map();
	case VALUE_ENCODING:
		return schema_encoding();
	case VALUE_MATCHES:
		return schema_array(schema_object(match_values));
	case VALUE_ENTRIES:
		return schema_array(schema_object(entry_values));
	case VALUE_REFUSALS:
		return schema_array(schema_object(refusal_values));
	default:
		return schema_type("string");
	}
}

static cJSON *
schema_object(const struct value *table)
{
	cJSON	*schema = schema_type("object"), *properties, *value;
	cJSON	*needed = must(cJSON_CreateArray());

	properties = must(cJSON_AddObjectToObject(schema, "properties"));
	for (; table->va_kind != VALUE_NONE; table++) {
		value = schema_value(table);
		cJSON_AddStringToObject(value, "description", table->va_about);
		cJSON_AddItemToObject(properties, table->va_name, value);
		if (table->va_flags & VALUE_NEEDED)
			cJSON_AddItemToArray(needed,
			    must(cJSON_CreateString(table->va_name)));
	}
	cJSON_AddItemToObject(schema, "required", needed);
	return schema;
}

/* Hints, which a client need not believe. */
static void
add_annotations(cJSON *object, const struct tool *tool)
{
	cJSON	*hints = must(cJSON_AddObjectToObject(object, "annotations"));
	int	 flags = tool->to_flags;

	cJSON_AddStringToObject(hints, "title", tool->to_title);
	cJSON_AddBoolToObject(hints, "readOnlyHint", flags & TOOL_READS);
	cJSON_AddBoolToObject(hints, "destructiveHint",
	    flags & TOOL_DESTROYS);
	cJSON_AddBoolToObject(hints, "idempotentHint", flags & TOOL_AGAIN);
	cJSON_AddBoolToObject(hints, "openWorldHint", flags & TOOL_WORLD);
}

static cJSON *
schema_gives(const struct tool *tool)
{
	cJSON	*schema = schema_object(tool->to_gives);

	cJSON_AddItemToObject(cJSON_GetObjectItemCaseSensitive(schema,
	    "properties"), "notice", schema_type("string"));
	return schema;
}

static cJSON *
schema_tool(const struct tool *tool, enum version version)
{
	cJSON	*object = must(cJSON_CreateObject()), *args;

	cJSON_AddStringToObject(object, "name", tool->to_name);
	if (version >= VERSION_2025_06_18)
		cJSON_AddStringToObject(object, "title", tool->to_title);
	cJSON_AddStringToObject(object, "description", tool->to_about);
	args = schema_object(tool->to_args);
	cJSON_AddBoolToObject(args, "additionalProperties", 0);
	cJSON_AddItemToObject(object, "inputSchema", args);
	if (version >= VERSION_2025_06_18)
		cJSON_AddItemToObject(object, "outputSchema",
		    schema_gives(tool));
	if (version >= VERSION_2025_03_26)
		add_annotations(object, tool);
	return object;
}

/* All that this sandbox has, always in the same order. */
cJSON *
schema_tools(struct server *sv, enum version version)
{
	const struct tool	*tool;
	cJSON			*list = must(cJSON_CreateArray());

	for (tool = tools; tool->to_name != NULL; tool++)
		if (tool_here(sv, tool))
			cJSON_AddItemToArray(list, schema_tool(tool, version));
	return list;
}
