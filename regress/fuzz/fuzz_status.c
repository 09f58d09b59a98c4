/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for k8sd/status.c: what is taken for a Status makes sense, and
 * its texts are short and printable.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "k8sd/status.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static void
check_text(const char *text, size_t size)
{
	size_t	 i, len = strnlen(text, size);

	REQUIRE(len < size);
	for (i = 0; i < len; i++)
		REQUIRE(text[i] >= ' ' && text[i] < 0x7f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct status	 st;
	char		*text, shown[16];

	/* A copy without a NUL after it. */
	if ((text = malloc(size > 0 ? size : 1)) == NULL)
		abort();
	memcpy(text, data, size);
	status_text(text, size, shown, sizeof(shown));
	check_text(shown, sizeof(shown));
	if (status_parse(text, size, &st) == 0) {
		check_text(st.st_reason, sizeof(st.st_reason));
		check_text(st.st_message, sizeof(st.st_message));
		if (st.st_kind == STATUS_EXIT)
			REQUIRE(st.st_code >= 1 && st.st_code <= 255);
		else
			REQUIRE(st.st_code == 0);
		REQUIRE(st.st_kind != STATUS_EXIT ||
		    strcmp(st.st_reason, "NonZeroExitCode") == 0);
	}
	free(text);
	return 0;
}
