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
 * policyd: deciders that did not decide.  Who floods us with questions must
 * not flood the recorder, whose end would be the daemon's: what it cannot
 * take is counted, and the next record tells.
 */

#include <stdio.h>

#include "clock.h"
#include "policyd.h"

const char *
failure_reason(enum answer_result result)
{
	switch (result) {
	case ANSWER_TIMEOUT:
		return "decider_timeout";
	case ANSWER_BAD_RETURN:
		return "decider_bad_return";
	default:
		return "decider_error";
	}
}

void
failure_record(const struct session *se, const struct subject *sj,
    const char *decider, enum answer_result result, const char *detail,
    uint64_t waited)
{
	static uint64_t	 lost;
	char		 text[PATH_LEN + 1];

	if (channel_recorder->ip_congested) {
		lost++;
		return;
	}
	if (lost > 0)
		snprintf(text, sizeof(text), "%.900s (%llu failures before "
		    "this one are not on record)", detail,
		    (unsigned long long)lost);
	else
		snprintf(text, sizeof(text), "%s", detail);
	lost = 0;
	ipc_send(channel_recorder, -1, RECORD_DECIDER, record_decider,
	    .at = clock_wall_ns(), .session = se->se_name, .decider = decider,
	    .reason = failure_reason(result), .detail = text,
	    .waited_ms = waited > UINT32_MAX ? UINT32_MAX : waited,
	    .scheme = sj->sj_scheme, .port = sj->sj_port,
	    .host = sj->sj_host, .method = sj->sj_method,
	    .path = sj->sj_path);
}
