/* SPDX-License-Identifier: ISC */

/*
 * Options where they are kept: whoever holds an object knows its table.
 */

#include <ctype.h>
#include <stdlib.h>

#include "option.h"

bool
option_is_text(const struct option *op)
{
	switch (op->op_type) {
	case OPTION_TEXT:
	case OPTION_PATH:
	case OPTION_URL:
	case OPTION_URL_CLEAR:
	case OPTION_HEADER:
	case OPTION_LABEL:
	case OPTION_LOWER:
	case OPTION_MILLI:
		return true;
	default:
		return false;
	}
}

bool
option_is_number(const struct option *op)
{
	switch (op->op_type) {
	case OPTION_MS:
	case OPTION_BYTES:
	case OPTION_COUNT:
	case OPTION_ENUM:
	case OPTION_YESNO:
	case OPTION_FLAG:
		return true;
	default:
		return false;
	}
}

uint64_t
option_number(const struct option *op, const void *object)
{
	const void	*slot = (const char *)object + op->op_slot;

	switch (op->op_type) {
	case OPTION_MS:
	case OPTION_BYTES:
		return *(const uint64_t *)slot;
	case OPTION_COUNT:
	case OPTION_ENUM:
		return *(const uint32_t *)slot;
	default:
		return *(const bool *)slot;
	}
}

void
option_set_number(const struct option *op, void *object, uint64_t n)
{
	void	*slot = (char *)object + op->op_slot;

	switch (op->op_type) {
	case OPTION_MS:
	case OPTION_BYTES:
		*(uint64_t *)slot = n;
		break;
	case OPTION_COUNT:
	case OPTION_ENUM:
		*(uint32_t *)slot = (uint32_t)n;
		break;
	default:
		*(bool *)slot = n != 0;
		break;
	}
}

const char **
option_text(const struct option *op, void *object)
{
	return (const char **)(void *)((char *)object + op->op_slot);
}

void
option_presets(const struct option *table, void *object)
{
	const struct option	*op;

	for (op = table; op->op_type != OPTION_END; op++)
		if (option_is_number(op))
			option_set_number(op, object, op->op_preset);
}

void
option_free(const struct option *table, void *object)
{
	const struct option	*op;

	for (op = table; op->op_type != OPTION_END; op++)
		if (option_is_text(op))
			free((void *)(uintptr_t)*option_text(op, object));
}

/* Whether a number is one that the file could have said. */
bool
option_in_range(const struct option *op, uint64_t n)
{
	uint64_t	 i;

	if (op->op_type == OPTION_FLAG || op->op_type == OPTION_YESNO)
		return n <= 1;
	if (op->op_type != OPTION_ENUM)
		return n >= op->op_min && n <= op->op_max;
	for (i = 0; i < n && op->op_words[i] != NULL; i++)
		continue;
	return op->op_words[i] != NULL;
}

int
option_milli(const char *text)
{
	int	 n, unit;

	if (text[0] < '0' || text[0] > '2' || (text[1] != '\0' &&
	    (text[1] != '.' || text[2] == '\0')))
		return -1;
	n = (text[0] - '0') * 1000;
	for (unit = 100, text += text[1] == '\0' ? 1 : 2; *text != '\0';
	    text++, unit /= 10) {
		if (!isdigit((unsigned char)*text) || unit == 0)
			return -1;
		n += (*text - '0') * unit;
	}
	return n <= 2000 ? n : -1;
}
