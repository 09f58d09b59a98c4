/* SPDX-License-Identifier: ISC */

/*
 * Questions to deciders.
 */

/* The document is one JSON object; policyd waits no longer than timeout_ms. */
MSG(QUESTION, question, R_POLICYD, R_DECIDERD, FD_NEVER, S_OPEN)
FIELDS(question, U32(id) U64(timeout_ms) STR(decider, NAME_LEN)
    BYTES(document, QUESTION_LEN))

MSG(QUESTION_DROP, cookie, R_POLICYD, R_DECIDERD, FD_NEVER, S_OPEN)

/* result is one of answer_result; the reason is the decider's own words. */
MSG(ANSWER, answer, R_DECIDERD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(answer, U32(id) U8(result) STR(reason, PATH_LEN))
