/* SPDX-License-Identifier: ISC */

/*
 * Why something was refused or failed: the first word of the reason in records,
 * in what a refused client is told, and in egressctl.  Details may follow
 * behind a colon.  Programs of others depend on these words: egressd.sock(5)
 * has them all, and regress/build/words.py compares.
 */

#ifndef REASONS_H
#define REASONS_H

/* The policy, or the configuration, refuses it. */
#define REASON_DEFAULT_DENY		"default_deny"
#define REASON_MATCHED_DENY_RULE	"matched_deny_rule"
#define REASON_DECIDER			"decider"	/* and its own words */
#define REASON_DECIDER_TIMEOUT		"decider_timeout"
#define REASON_DECIDER_ERROR		"decider_error"
#define REASON_DECIDER_BAD_RETURN	"decider_bad_return"
#define REASON_BODY_LIMIT		"body_limit"
#define REASON_QUOTA			"quota"
#define REASON_TOTAL_TIME		"total_time"

/* The client: what it sent, or that it left. */
#define REASON_BAD_REQUEST		"bad_request"
#define REASON_NAME_MISMATCH		"name_mismatch"
#define REASON_TLS_NAME_UNSUPPORTED	"tls_name_unsupported"
#define REASON_TLS_CLIENT_REJECTED_CA	"tls_client_rejected_ca"
#define REASON_PROTOCOL_REFUSED		"protocol_refused"
#define REASON_CLIENT_LEFT		"client_left"	/* before a verdict */

/* The origin. */
#define REASON_ADDRESS_REFUSED		"address_refused"
#define REASON_UPSTREAM_UNREACHABLE	"upstream_unreachable"
#define REASON_UPSTREAM_UNTRUSTED	"upstream_untrusted"
#define REASON_STREAM_BROKEN		"stream_broken"	/* either side's */

/* The gate itself. */
#define REASON_CA_EXPIRED		"ca_expired"
#define REASON_NO_ENGINE		"no_engine"
#define REASON_AUDIT_FULL		"audit_full"	/* also of a gap */

/* Why a session ended; nothing if the sandbox of a client's did. */
#define REASON_ENGINE_DIED		"engine_died"
#define REASON_ENGINE_COMPROMISED	"engine_compromised"
#define REASON_REMOVED			"removed"
#define REASON_STOPPED			"stopped"
#define REASON_DEADLINE			"deadline"
#define REASON_BY_REQUEST		"by_request"
#define REASON_OWNER_LEFT		"owner_left"
#define REASON_SANDBOX_DIED		"sandbox_died"	/* the daemon's */

/* Why there is a gap in the records. */
#define REASON_AUDIT_SWITCHED		"audit_switched"
#define REASON_TORN_LINE		"torn_line"
#define REASON_FILE_CUT			"file_cut"
#define REASON_TAIL_LOST		"tail_lost"
#define REASON_TAIL_CHANGED		"tail_changed"
#define REASON_TIP_MISSING		"tip_missing"
#define REASON_TIP_UNREADABLE		"tip_unreadable"
#define REASON_SLOW_FOLLOWER		"slow_follower"
#define REASON_NUMBERS_MISSING		"numbers_missing"	/* a pod's */

/* Why the channel to a gate in a pod is no more. */
#define REASON_GATE_LOST		"gate_lost"
#define REASON_GATE_HOSTILE		"gate_hostile"

#endif /* REASONS_H */
