/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this; see name.h.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "name.h"
#include "role.h"

#define LETTER_DIGIT	"abcdefghijklmnopqrstuvwxyz" \
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

_Static_assert(NAME_LEN == 64 && SESSION_LEN == 255,
    "the texts below say 64 and 255");

static int
name_only(const char *name, const char *set)
{
	return name[strspn(name, set)] == '\0';
}

const char *
name_error(const char *name)
{
	size_t	 len = strlen(name);

	if (len == 0 || len > NAME_LEN)
		return "names have 1 to 64 bytes";
	if (!name_only(name, LETTER_DIGIT "._-"))
		return "names are of letters, digits, ., _ and -";
	if (name_only(name, "."))
		return "names are not of dots alone";
	if (name[0] == '-')
		return "names do not begin with -";
	return NULL;
}

const char *
name_session_error(const char *id)
{
	static char	 why[96];
	size_t		 len = strlen(id), i;

	if (len == 0 || len > SESSION_LEN)
		return "session ids have 1 to 255 bytes";
	for (i = 0; i < len; i++)
		if (id[i] < ' ' || id[i] > '~') {
			snprintf(why, sizeof(why), "session ids are of "
			    "printable ASCII characters, byte %zu is 0x%02x",
			    i + 1, (unsigned char)id[i]);
			return why;
		}
	if (id[0] == ' ' || id[len - 1] == ' ')
		return "session ids do not begin or end with a space";
	if (id[0] == '-')
		return "session ids do not begin with -";
	return NULL;
}

static const char *
variable_error(const char *name, const char *set, const char *why)
{
	size_t	 len = strlen(name);

	if (len == 0 || len > NAME_LEN)
		return "names have 1 to 64 bytes";
	if (!name_only(name, set) || isdigit((unsigned char)name[0]))
		return why;
	return NULL;
}

const char *
name_variable_error(const char *name)
{
	return variable_error(name, LETTER_DIGIT "_", "names are of letters, "
	    "digits and _, not beginning with a digit");
}

const char *
name_pattern_error(const char *pattern)
{
	return variable_error(pattern, LETTER_DIGIT "_*", "patterns are of "
	    "letters, digits, _ and *, not beginning with a digit");
}
