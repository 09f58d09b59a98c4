/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what a Status of the API says.  API servers are strangers,
 * and behind them is whatever runs in a pod.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "jsonr.h"
#include "status.h"

void
status_text(const char *text, size_t len, char *out, size_t size)
{
	size_t	 i;

	for (i = 0; i < len && i + 1 < size; i++)
		out[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] :
		    text[i] == '\n' || text[i] == '\t' || text[i] == '\r' ?
		    ' ' : '?';
	while (i > 0 && out[i - 1] == ' ')
		i--;
	out[i] = '\0';
}

/* A member that is a string, or NULL. */
static const struct jsonr *
text_of(const struct jsonr *jr, const char *name)
{
	const struct jsonr	*value = NULL;

	if (jr != NULL && jr->jr_type == JSONR_OBJECT)
		value = jsonr_member(jr, name);
	return value != NULL && value->jr_type == JSONR_STRING ? value : NULL;
}

static bool
says(const struct jsonr *jr, const char *name, const char *text)
{
	const struct jsonr	*value = text_of(jr, name);

	return value != NULL && strcmp(value->jr_text, text) == 0;
}

static void
copy(const struct jsonr *jr, const char *name, char *out, size_t size)
{
	const struct jsonr	*value = text_of(jr, name);

	status_text(value != NULL ? value->jr_text : "",
	    value != NULL ? value->jr_len : 0, out, size);
}

/* Digits and no more, 1 to 255. */
static int
take_code(const char *text, int *code)
{
	const char	*why;

	if (text[0] < '1' || text[0] > '9' || strlen(text) > 3)
		return -1;
	*code = (int)strtonum(text, 1, 255, &why);
	return why == NULL ? 0 : -1;
}

/* "details": {"causes": [{"reason": "ExitCode", "message": "3"}]} */
static int
take_exit(const struct jsonr *jr, struct status *st)
{
	const struct jsonr	*details, *causes, *cause, *text;
	unsigned int		 found = 0;

	if ((details = jsonr_member(jr, "details")) == NULL ||
	    details->jr_type != JSONR_OBJECT ||
	    (causes = jsonr_member(details, "causes")) == NULL ||
	    causes->jr_type != JSONR_ARRAY)
		return -1;
	for (cause = causes->jr_first; cause != NULL; cause = cause->jr_next) {
		if (!says(cause, "reason", "ExitCode"))
			continue;
		if ((text = text_of(cause, "message")) == NULL ||
		    take_code(text->jr_text, &st->st_code) == -1)
			return -1;
		found++;
	}
	st->st_kind = STATUS_EXIT;
	return found == 1 ? 0 : -1;
}

static int
take(const struct jsonr *jr, struct status *st)
{
	memset(st, 0, sizeof(*st));
	if (jr->jr_type != JSONR_OBJECT ||
	    (jsonr_member(jr, "kind") != NULL && !says(jr, "kind", "Status")))
		return -1;
	copy(jr, "reason", st->st_reason, sizeof(st->st_reason));
	copy(jr, "message", st->st_message, sizeof(st->st_message));
	if (says(jr, "status", "Success")) {
		st->st_kind = STATUS_SUCCESS;
		return 0;
	}
	if (!says(jr, "status", "Failure"))
		return -1;
	if (says(jr, "reason", "NonZeroExitCode"))
		return take_exit(jr, st);
	st->st_kind = STATUS_FAILURE;
	return 0;
}

int
status_parse(const char *text, size_t len, struct status *st)
{
	struct jsonr	*jr;
	const char	*why;
	int		 rv;

	if (len > STATUS_LEN || (jr = jsonr_parse(text, len, &why)) == NULL)
		return -1;
	rv = take(jr, st);
	jsonr_free(jr);
	return rv;
}
