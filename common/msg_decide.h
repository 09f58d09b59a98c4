/* SPDX-License-Identifier: ISC */

/*
 * Questions to deciders.
 */

/*
 * The document is one JSON object; policyd waits no longer than timeout_ms.
 * The rule is that of the session's policy, RULE_NONE if an operator asks.
 */
MSG(QUESTION, question, R_POLICYD, R_DECIDERD, FD_NEVER, S_OPEN)
FIELDS(question, U32(id) U64(timeout_ms) STR(decider, NAME_LEN) U32(rule)
    BYTES(document, QUESTION_LEN))

MSG(QUESTION_DROP, cookie, R_POLICYD, R_DECIDERD, FD_NEVER, S_OPEN)

/*
 * result is one of answer_result; the reason is the decider's own words.
 * keep: it may serve other requests, if the rule has answers kept.
 */
MSG(ANSWER, answer, R_DECIDERD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(answer, U32(id) U8(result) U8(keep) STR(reason, PATH_LEN))

/* A control client who answers questions to deciders of the kind control. */
MSG(SERVE_ASK, serve, R_CONTROLD, R_PARENT, FD_MUST, S_WORK)
FIELDS(serve, U64(term))

MSG(SERVE, serve, R_PARENT, R_DECIDERD, FD_MUST, S_WORK)

/* There is one, who may do better than the one before. */
MSG(SERVED, empty, R_DECIDERD, R_POLICYD, FD_NEVER, S_OPEN)
