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

/* The recorder's redaction of paths, apart from any record. */

#include "../../common/policy.h"
#include "../../recorder/recorder.h"
#include "test.h"

/* Wherever an origin may find a name, and up to where no value goes on. */
TEST(parameters)
{
	static const struct {
		const char	*in, *out;
	} cases[] = {
		{ "/x?token=1", "/x?token=[redacted]" },
		{ "/x?a=b&token=1&c=d", "/x?a=b&token=[redacted]&c=d" },
		{ "/x?a=1&token=2&token=3",
		    "/x?a=1&token=[redacted]&token=[redacted]" },
		{ "/x??token=1", "/x??token=[redacted]" },
		{ "/x???&;?token=1", "/x???&;?token=[redacted]" },
		{ "/x?a=b?token=1&c", "/x?a=b?token=[redacted]&c" },
		{ "/x?&&token=1&&", "/x?&&token=[redacted]&&" },
		{ "/x?a;token=1", "/x?a;token=[redacted]" },
		{ "/x?token=1;2", "/x?token=[redacted]" },
		{ "/x?token=1?2&a=b", "/x?token=[redacted]&a=b" },
		{ "/x?token==1=2", "/x?token=[redacted]" },
		{ "/x?token=", "/x?token=[redacted]" },
		{ "/x?TOken=1", "/x?TOken=[redacted]" },
		{ "/x?%74o%6BeN=1", "/x?%74o%6BeN=[redacted]" },
		{ "/x?+%20%09token=1", "/x?+%20%09token=[redacted]" },
		{ "/x?token[]=1", "/x?token[]=[redacted]" },
		{ "/x?token%5b0%5D=1", "/x?token%5b0%5D=[redacted]" },
		{ "/x?list[a]=1", "/x?list[a]=[redacted]" },
		{ "/x?list[b]=1", "/x?list[b]=1" },
		{ "/x?atoken=1&tokens=2&to%=3&token",
		    "/x?atoken=1&tokens=2&to%=3&token" },
		{ "/token=1", "/token=1" },
		{ "/x?", "/x?" },
	};
	union msg	 m = { .conf_redact = { .policy = "p",
	    .kind = REDACT_QUERY, .name = "token" } };
	char		 buf[64];
	size_t		 i;

	redact_begin();
	CHECK_INT(recorder_parent_conf_redact(NULL, &m), 0);
	m.conf_redact.name = "list[a]";
	CHECK_INT(recorder_parent_conf_redact(NULL, &m), 0);
	redact_commit();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(redact_path("edge", cases[i].in, buf, sizeof(buf)),
		    cases[i].out);
	/* What grows too long is cut. */
	CHECK_STR(redact_path("edge", "/x?token=1&token=2", buf, 24),
	    "/x?token=[redacted]&tok");
	CHECK_STR(redact_path("edge", "/x?token=1&token=2", buf, 12),
	    "/x?token=[r");
}

TEST_MAIN("redact")
