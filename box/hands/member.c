/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: from a CALL's members to the state of its operation, by
 * the operation's table.  The client is not trusted: what the table does not
 * have is refused by name.
 */

#include <stdio.h>
#include <string.h>

#include "op.h"

static int
is_all_strings(const struct jsonr *jr)
{
	for (jr = jr->jr_first; jr != NULL; jr = jr->jr_next)
		if (jr->jr_type != JSONR_STRING)
			return 0;
	return 1;
}

/* Anywhere in a member, also where it would do no harm. */
static int
has_nul(const struct jsonr *jr)
{
	const struct jsonr	*value;

	if (jr->jr_type == JSONR_NUL)
		return 1;
	for (value = jr->jr_first; value != NULL; value = value->jr_next)
		if (has_nul(value))
			return 1;
	return 0;
}

/* By its name, as far as it can be told; 0 if there is one. */
int
members_whole(const struct jsonr *object, char *why, size_t size)
{
	const struct jsonr	*jr;

	for (jr = object->jr_first; jr != NULL; jr = jr->jr_next)
		if (has_nul(jr)) {
			snprintf(why, size, "%.100s: NUL in a string",
			    jr->jr_name);
			return 0;
		}
	return 1;
}

static int
member_fits(const struct member *mb, const struct jsonr *jr)
{
	switch (mb->mb_type) {
	case MEMBER_STRING:
		return jr->jr_type == JSONR_STRING;
	case MEMBER_INTEGER:
		return jr->jr_type == JSONR_INTEGER &&
		    jr->jr_number >= mb->mb_min && jr->jr_number <= mb->mb_max;
	case MEMBER_BOOL:
		return jr->jr_type == JSONR_BOOL;
	case MEMBER_STRINGS:
		return jr->jr_type == JSONR_ARRAY && is_all_strings(jr);
	case MEMBER_MAP:
		return jr->jr_type == JSONR_OBJECT && is_all_strings(jr);
	case MEMBER_OBJECT:
		return jr->jr_type == JSONR_OBJECT;
	}
	return 0;
}

static void
member_set(const struct member *mb, const struct jsonr *jr, void *to)
{
	char	*p = (char *)to + mb->mb_offset;

	switch (mb->mb_type) {
	case MEMBER_STRING:
		*(const char **)(void *)p = jr->jr_text;
		break;
	case MEMBER_INTEGER:
		*(int64_t *)(void *)p = jr->jr_number;
		break;
	case MEMBER_BOOL:
		*(int *)(void *)p = (int)jr->jr_number;
		break;
	case MEMBER_STRINGS:
	case MEMBER_MAP:
	case MEMBER_OBJECT:
		*(const struct jsonr **)(void *)p = jr;
		break;
	}
}

/* Default of a member that was not given; pointers are NULL already. */
static void
member_preset(const struct member *mb, void *to)
{
	struct jsonr	 jr = { .jr_number = mb->mb_preset };

	if (mb->mb_type == MEMBER_INTEGER || mb->mb_type == MEMBER_BOOL)
		member_set(mb, &jr, to);
}

static void
member_why(const struct member *mb, char *why, size_t size)
{
	static const char	*kinds[] = {
		[MEMBER_STRING] = "a string", [MEMBER_BOOL] = "true or false",
		[MEMBER_STRINGS] = "an array of strings",
		[MEMBER_MAP] = "an object of strings",
		[MEMBER_OBJECT] = "an object"
	};

	if (mb->mb_type == MEMBER_INTEGER)
		snprintf(why, size, "%s: not an integer from %lld to %lld",
		    mb->mb_name, (long long)mb->mb_min, (long long)mb->mb_max);
	else
		snprintf(why, size, "%s: not %s", mb->mb_name,
		    kinds[mb->mb_type]);
}

/* Every member that was given, but for op, is of the table. */
static int
members_known(const struct member *table, const struct jsonr *object, char *why,
    size_t size)
{
	const struct member	*mb;
	const struct jsonr	*jr;

	for (jr = object->jr_first; jr != NULL; jr = jr->jr_next) {
		if (strcmp(jr->jr_name, "op") == 0)
			continue;
		for (mb = table; mb->mb_name != NULL; mb++)
			if (strcmp(mb->mb_name, jr->jr_name) == 0)
				break;
		if (mb->mb_name == NULL) {
			snprintf(why, size, "%.100s: no such member",
			    jr->jr_name);
			return -1;
		}
	}
	return 0;
}

/* Fill in a state of zeros; or -1 and why. */
int
members_take(const struct member *table, const struct jsonr *object, void *to,
    char *why, size_t size)
{
	const struct member	*mb;
	const struct jsonr	*jr;

	if (members_known(table, object, why, size) == -1)
		return -1;
	for (mb = table; mb->mb_name != NULL; mb++) {
		if ((jr = jsonr_member(object, mb->mb_name)) == NULL) {
			if (mb->mb_must) {
				snprintf(why, size, "%s: missing",
				    mb->mb_name);
				return -1;
			}
			member_preset(mb, to);
			continue;
		}
		if (!member_fits(mb, jr)) {
			member_why(mb, why, size);
			return -1;
		}
		member_set(mb, jr, to);
	}
	return 0;
}
