/* SPDX-License-Identifier: ISC */

/*
 * What a policy and its rules may say, a row for each.  Included once for
 * each purpose, with the macros defined that the purpose needs; so there is
 * no guard.  In the order in which `egressd -nv' prints them.
 *
 *	POLICY_OPTION(type, member, word, told, ...)
 *	POLICY_HAND(word)
 *	RULE_CONDITION(KIND, word, where, values)
 *	RULE_READS(KIND, word, where, values, meets)
 *	RULE_OPTION(type, member, word, where, ...)
 *
 * type is one of enum option_type.  A word of NULL is not in the file: the
 * option is set and printed by the code of a POLICY_HAND or a condition, and
 * travels as the others do.  told are the processes that are told; policyd has
 * all of a rule.  The dots are RANGE, PRESET and WORDS of option.h.
 *
 * A condition is a list of values; conf/conf_cond.c reads and prints each sort
 * of them: host, port, method, path, net, name, pair.  RULE_READS is one on
 * what a request says: meets is the function of policy.c that matches it.
 */

#ifndef POLICY_OPTION
#define POLICY_OPTION(type, member, word, told, ...)
#endif
#ifndef POLICY_HAND
#define POLICY_HAND(word)
#endif
#ifndef RULE_CONDITION
#define RULE_CONDITION(kind, word, where, values)
#endif
#ifndef RULE_READS
#define RULE_READS(kind, word, where, values, meets)			\
	RULE_CONDITION(kind, word, where, values)
#endif
#ifndef RULE_OPTION
#define RULE_OPTION(type, member, word, where, ...)
#endif

POLICY_HAND("default")
POLICY_OPTION(ENUM, refuse, "refuse with", R_ENGINE, WORDS(policy_refuse_words))
POLICY_OPTION(BYTES, capture, "capture body", R_ENGINE, RANGE(0, 64 * KB),
    PRESET(4 * KB))
POLICY_OPTION(FLAG, capture_hash, "capture hash", R_ENGINE)
POLICY_HAND("capture redact")
POLICY_HAND("capture show")
POLICY_OPTION(BYTES, quota_out, "quota out", R_ENGINE,
    RANGE(1, 1024 * 1024 * GB))
POLICY_HAND("pause")
POLICY_OPTION(COUNT, pause_denials, NULL, R_POLICYD, RANGE(1, 1000000))
POLICY_OPTION(MS, pause_ms, NULL, R_POLICYD, RANGE(SEC, DAY))
POLICY_OPTION(ENUM, full, "audit on full", 0, WORDS(policy_full_words))

/*
 * tcp and pass are decided before a byte is read, so they take no condition
 * on a request; a deny dials nothing and cuts nothing.
 */
RULE_CONDITION(DECIDER, NULL, IN_ASK | IN_TCP, name)
RULE_CONDITION(HOST, "host", IN_ANY, host)
RULE_CONDITION(PORT, "port", IN_ANY, port)
RULE_READS(METHOD, "method", IN_READ, method, method_meets)
RULE_READS(PATH, "path", IN_READ, path, path_meets)
RULE_CONDITION(NET, "to", IN_ANY & ~IN_DENY, net)
RULE_OPTION(FLAG, to_private, NULL, IN_ANY & ~IN_DENY)
RULE_OPTION(ENUM, scheme, "scheme", IN_READ, WORDS(rule_scheme_words))
RULE_OPTION(BYTES, body, "body", IN_ALLOW | IN_ASK, RANGE(0, 1024 * GB),
    PRESET(UINT64_MAX))
RULE_OPTION(MS, timeout_ms, "timeout", IN_ASK | IN_TCP, RANGE(100, DAY))
RULE_OPTION(ENUM, cache, "cache", IN_ASK | IN_TCP, WORDS(rule_cache_words))
RULE_OPTION(MS, ttl_ms, "ttl", IN_ASK | IN_TCP, RANGE(SEC, 30 * DAY))
RULE_OPTION(COUNT, uses, "uses", IN_ASK | IN_TCP, RANGE(1, 1000000))
RULE_OPTION(COUNT, messages, "messages", IN_ASK | IN_TCP, RANGE(0, 100),
    PRESET(5))
RULE_CONDITION(METADATA, "metadata", IN_ASK | IN_TCP, pair)

#undef POLICY_OPTION
#undef POLICY_HAND
#undef RULE_CONDITION
#undef RULE_READS
#undef RULE_OPTION
