/* SPDX-License-Identifier: ISC */

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
		return REASON_DECIDER_TIMEOUT;
	case ANSWER_BAD_RETURN:
		return REASON_DECIDER_BAD_RETURN;
	default:
		return REASON_DECIDER_ERROR;
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
