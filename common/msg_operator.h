/* SPDX-License-Identifier: ISC */

/*
 * What operators ask of questions, answers and sessions: controld asks, and
 * policyd, who has them, answers with the cookie of the question.  controld
 * has a credit for each kind: one survey of the state, one list of each kind,
 * one watch, and a bounded number of errands and inquiries under way.
 */

/* The state of all sessions and deciders, each told of, then the end. */
MSG(STATE_ASK, cookie, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)

/* Times are nanoseconds since the epoch, ca_end is in seconds. */
MSG(STATE_SESSION, state_session, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(state_session, U32(cookie) STR(session, SESSION_LEN) U8(state)
    U64(started) U32(restarts) STR(ca, FINGERPRINT_LEN) U64(ca_since)
    U64(ca_end) U32(ca_changes) U32(pending) U8(paused))

MSG(STATE_DECIDER, state_decider, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(state_decider, U32(cookie) STR(name, NAME_LEN) U8(kind) U32(asked)
    U32(waiting) U8(breaker))

MSG(STATE_END, cookie, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)

/* Answered when the list of questions has another version than this. */
MSG(PENDING_WATCH, version, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(version, U64(version))

MSG(PENDING_CHANGED, version, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)

/*
 * One of list_kind; of kept answers those of a session, or of all of them.
 * Without query, paths end before theirs.
 */
MSG(LIST_ASK, list_ask, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(list_ask, U32(cookie) U8(kind) U8(query) STR(session, SESSION_LEN))

/* redacted: so many bytes of the path are hidden. */
MSG(LISTED_PENDING, listed_pending, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(listed_pending, U32(cookie) U32(id) STR(session, SESSION_LEN)
    STR(decider, NAME_LEN) U32(rule) U8(scheme) U16(port) STR(host, HOST_LEN)
    STR(method, METHOD_LEN) STR(path, SHOWN_LEN) U8(truncated) U64(redacted)
    U64(waiting_ms) U64(left_ms))

/*
 * whole: kept for a request and not for a place, hence with method, path and
 * class of size.  What has no end has the largest number left.
 */
MSG(LISTED_ANSWER, listed_answer, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(listed_answer, U32(cookie) STR(session, SESSION_LEN)
    STR(decider, NAME_LEN) U32(rule) U8(whole) U8(scheme) U16(port)
    STR(host, HOST_LEN) STR(method, METHOD_LEN) STR(path, SHOWN_LEN)
    U8(truncated) U64(redacted) U8(size) U8(allow) STR(reason, PATH_LEN)
    U64(age_ms) U64(left_ms) U32(left_uses))

/* known: there is such a session.  more: so many had no room. */
MSG(LIST_END, list_end, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(list_end, U32(cookie) U8(known) U64(version) U32(more))

/* Errands; each is answered by CONTROL_DONE, the result is a control_result. */
MSG(PENDING_ANSWER, pending_answer, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(pending_answer, U32(cookie) U32(id) U8(allow) U8(remember)
    STR(reason, PATH_LEN))

/* No session means all, and so does no host. */
MSG(CACHE_CLEAR, cache_clear, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(cache_clear, U32(cookie) STR(session, SESSION_LEN) STR(host, HOST_LEN))

MSG(CONTEXT_MESSAGE, context_message, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(context_message, U32(cookie) STR(session, SESSION_LEN)
    STR(role, NAME_LEN) STR(content, CONTENT_LEN) U8(truncated))

/* Names and values in turn, with a NUL behind each. */
MSG(CONTEXT_METADATA, context_metadata, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(context_metadata, U32(cookie) STR(session, SESSION_LEN)
    BYTES(pairs, METADATA_LEN))

/* count: 1 if an answer is remembered, answers cleared, messages kept. */
MSG(CONTROL_DONE, control_done, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(control_done, U32(cookie) U8(result) U32(count))

/* A question that an operator makes up: its messages, then what it is about. */
MSG(INQUIRY_MESSAGE, inquiry_message, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(inquiry_message, STR(content, CONTENT_LEN) U8(truncated))

MSG(INQUIRY_ASK, inquiry_ask, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(inquiry_ask, U32(cookie) STR(decider, NAME_LEN) U8(scheme) U16(port)
    STR(host, HOST_LEN) STR(method, METHOD_LEN) STR(path, URL_LEN))

/* The question as it was put, or why it was not: one of inquiry_result. */
MSG(INQUIRY_ASKED, inquiry_asked, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(inquiry_asked, U32(cookie) U8(result) BYTES(document, QUESTION_LEN))

/* To each that was put, also to one that was dropped: an answer_result. */
MSG(INQUIRY_ANSWER, inquiry_answer, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(inquiry_answer, U32(cookie) U8(result) STR(reason, PATH_LEN))

MSG(INQUIRY_DROP, cookie, R_CONTROLD, R_POLICYD, FD_NEVER, S_OPEN)
