/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/https/ws_answer.c: an answer is read alike whether it
 * comes at once or with what follows it, and a body gets no longer by being
 * put together.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "https/ws_private.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_answer	 wa, again;
	char			*text;
	size_t			 len;

	if ((text = malloc(size > 0 ? size : 1)) == NULL)
		abort();
	memcpy(text, data, size);
	if (ws_answer_parse(text, size, &wa) == 1) {
		REQUIRE(wa.wa_head <= size);
		REQUIRE(wa.wa_status >= 100 && wa.wa_status <= 999);
		REQUIRE(ws_answer_parse(text, wa.wa_head, &again) == 1);
		REQUIRE(memcmp(&wa, &again, sizeof(wa)) == 0);
		REQUIRE(ws_answer_parse(text, wa.wa_head - 1, &again) != 1);
		len = size - wa.wa_head;
		ws_answer_dechunk(text + wa.wa_head, &len);
		REQUIRE(len <= size - wa.wa_head);
	}
	len = size;
	ws_answer_dechunk(text, &len);
	REQUIRE(len <= size);
	free(text);
	return 0;
}
