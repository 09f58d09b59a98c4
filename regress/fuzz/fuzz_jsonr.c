/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/jsonr.c.  What is read and written again by jsonw is
 * read as the same.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jsonr.h"
#include "jsonw.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static void
write_value(struct jsonw *w, const struct jsonr *jr)
{
	const struct jsonr	*value;
	size_t			 n = 0;

	switch (jr->jr_type) {
	case JSONR_NULL:
	case JSONR_NUMBER:
	case JSONR_NUL:
		jsonw_null(w);
		return;
	case JSONR_BOOL:
		jsonw_bool(w, (int)jr->jr_number);
		return;
	case JSONR_INTEGER:
		REQUIRE(llabs(jr->jr_number) <= JSONR_INTEGER_MAX);
		jsonw_int(w, jr->jr_number);
		return;
	case JSONR_STRING:
		REQUIRE(strlen(jr->jr_text) == jr->jr_len);
		jsonw_string(w, jr->jr_text, jr->jr_len);
		return;
	case JSONR_ARRAY:
		jsonw_array(w);
		break;
	case JSONR_OBJECT:
		jsonw_object(w);
		break;
	}
	for (value = jr->jr_first; value != NULL; value = value->jr_next) {
		n++;
		REQUIRE((value->jr_name != NULL) ==
		    (jr->jr_type == JSONR_OBJECT));
		if (value->jr_name != NULL) {
			REQUIRE(jsonr_member(jr, value->jr_name) == value);
			jsonw_key(w, value->jr_name);
		}
		write_value(w, value);
	}
	REQUIRE(n == jr->jr_len);
	jsonw_end(w);
}

/* The text of a value, to be freed with the writer. */
static const char *
write_text(struct jsonw *w, const struct jsonr *jr, size_t *len)
{
	const char	*text;

	jsonw_init(w, SIZE_MAX / 4);
	write_value(w, jr);
	text = jsonw_finish(w, len);
	REQUIRE(text != NULL);
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jsonr	*jr, *again;
	struct jsonw	 w[2];
	const char	*text[2], *why = NULL;
	size_t		 len[2];

	if ((jr = jsonr_parse((const char *)data, size, &why)) == NULL) {
		REQUIRE(why != NULL);
		return 0;
	}
	text[0] = write_text(&w[0], jr, &len[0]);
	again = jsonr_parse(text[0], len[0], &why);
	REQUIRE(again != NULL);
	text[1] = write_text(&w[1], again, &len[1]);
	REQUIRE(len[0] == len[1] && memcmp(text[0], text[1], len[0]) == 0);
	jsonw_free(&w[0]);
	jsonw_free(&w[1]);
	jsonr_free(jr);
	jsonr_free(again);
	return 0;
}
