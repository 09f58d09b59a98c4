/* SPDX-License-Identifier: ISC */

/*
 * What control clients ask for and controld cannot do itself: it asks the
 * parent or the recorder, whose answer has the cookie of the question.
 */

MSG(STATUS_ASK, cookie, R_CONTROLD, R_PARENT, FD_NEVER, S_WORK)

MSG(STATUS_PROC, status_proc, R_PARENT, R_CONTROLD, FD_NEVER, S_WORK)
FIELDS(status_proc, U32(cookie) U8(role) U32(pid) STR(session, SESSION_LEN))

MSG(STATUS_END, status_end, R_PARENT, R_CONTROLD, FD_NEVER, S_WORK)
FIELDS(status_end, U32(cookie) U64(generation) U64(started) U8(privileged)
    U8(log_level) STR(configuration, PATH_LEN) STR(sha256, FINGERPRINT_LEN))

MSG(RELOAD_ASK, cookie, R_CONTROLD, R_PARENT, FD_NEVER, S_WORK)

MSG(RELOAD_DONE, reload_done, R_PARENT, R_CONTROLD, FD_NEVER, S_WORK)
FIELDS(reload_done, U32(cookie) U8(result) U64(generation) STR(text, TEXT_LEN))

MSG(LOG_ASK, log_level, R_CONTROLD, R_PARENT, FD_NEVER, S_WORK)

/* The only client of a private daemon, and whose it is. */
MSG(CLIENT, client, R_PARENT, R_CONTROLD, FD_MUST, S_WORK)
FIELDS(client, U32(uid) U32(gid))

MSG(PEER_ASK, cookie, R_CONTROLD, R_PARENT, FD_MUST, S_WORK)

MSG(PEER_ANSWER, peer_answer, R_PARENT, R_CONTROLD, FD_NEVER, S_WORK)
FIELDS(peer_answer, U32(cookie) U8(welcome) U32(uid) U32(gid))

/*
 * An empty session means all of them; kinds is a set of 1 << record kind, from
 * one of follow_from.  The rest is of who acknowledges: see spool.c.
 */
MSG(FOLLOW_ASK, follow, R_CONTROLD, R_PARENT, FD_MUST, S_WORK)
FIELDS(follow, U32(kinds) STR(session, SESSION_LEN) U8(from) U64(first)
    U64(window) U64(term))

MSG(FOLLOW, follow, R_PARENT, R_RECORDER, FD_MUST, S_WORK)
MSG(AUDIT_ASK, cookie, R_CONTROLD, R_RECORDER, FD_NEVER, S_OPEN)

MSG(AUDIT_STATUS, audit_status, R_RECORDER, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(audit_status, U32(cookie) U64(seq) U32(followers) U8(full)
    STR(path, PATH_LEN) U64(spool) U64(waiting) U64(acknowledged))

/* Records up to seq need not be kept; result is one of ack_result. */
MSG(ACK_ASK, ack_ask, R_CONTROLD, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(ack_ask, U32(cookie) U64(seq) U64(term))

MSG(ACK_DONE, ack_done, R_RECORDER, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(ack_done, U32(cookie) U8(result) U64(acknowledged) U64(sent))

/* What a session was refused: each REFUSAL with how often, then the sum. */
MSG(REFUSALS_ASK, refusals_ask, R_CONTROLD, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(refusals_ask, U32(cookie) STR(session, SESSION_LEN))

MSG(REFUSAL, refusal, R_RECORDER, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(refusal, U32(cookie) U64(count) STR(host, HOST_LEN)
    STR(reason, NAME_LEN))

MSG(REFUSALS, refusals, R_RECORDER, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(refusals, U32(cookie) U64(total))
