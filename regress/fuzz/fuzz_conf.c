/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * Fuzz target for the parser of egressd.conf.  Whatever the input is, the
 * parser either refuses it with a message or prints it in a form that parses
 * to the same print.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../parent/conf.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

/* NULL if it was refused. */
static char *
reprint(const void *data, size_t len, size_t *outlen)
{
	struct conf_errors	 errs = { .ce_count = 0 };
	struct config		*cf;
	FILE			*fp;
	char			*out = NULL;

	cf = conf_parse_buffer("fuzz", data, len, &errs);
	REQUIRE((cf == NULL) == (errs.ce_count > 0));
	if (cf != NULL) {
		REQUIRE((fp = open_memstream(&out, outlen)) != NULL);
		REQUIRE(conf_print(cf, fp) == 0);
		fclose(fp);
	}
	conf_free(cf);
	conf_errors_free(&errs);
	return out;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	*once, *twice;
	size_t	 len, again;

	if ((once = reprint(data, size, &len)) == NULL)
		return 0;
	REQUIRE((twice = reprint(once, len, &again)) != NULL);
	REQUIRE(len == again && memcmp(once, twice, len) == 0);
	free(once);
	free(twice);
	return 0;
}
