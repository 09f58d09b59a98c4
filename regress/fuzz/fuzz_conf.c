/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for the parser of egressd.conf.  Whatever the input is, the
 * parser either refuses it with a message or prints it in a form that parses
 * to the same print.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"

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
