/* SPDX-License-Identifier: ISC */

/*
 * What is written down.  An engine opens a request once it has credit, and
 * tells its facts as they come; policyd tells of sessions and of deciders that
 * failed, the parent of who is attached to a sandbox.
 */

/*
 * So many requests more may be opened.  While hold is set none may: records
 * would be lost and the policy does not accept that.
 */
MSG(CREDIT, credit, R_RECORDER, R_ENGINE, FD_NEVER, S_OPEN)
FIELDS(credit, U32(count) U8(hold))

/*
 * fields: the head's field lines, "name: value\r\n" each.  inspected is 0 for
 * a flow that is not looked into.  With allowed the verdict is known already,
 * and RECORD_VERDICT does not follow.
 */
MSG(RECORD_OPENED, record_opened, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_opened, U64(request) U64(at) U8(scheme) U8(protocol) U16(port)
    STR(host, HOST_LEN) STR(method, METHOD_LEN) STR(path, URL_LEN)
    BYTES(fields, FIELDS_LEN) U8(inspected) U8(allowed) U8(rule_kind) U32(rule))

/* decider, cached, waited_ms and reason as in a verdict. */
MSG(RECORD_VERDICT, record_verdict, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_verdict, U64(request) U64(at) U8(verdict) U8(rule_kind) U32(rule)
    STR(reason, PATH_LEN) STR(decider, NAME_LEN) U8(cached) U32(waited_ms))

MSG(RECORD_HEAD, record_head, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_head, U64(request) U16(status) STR(address, ADDRESS_LEN)
    BYTES(fields, FIELDS_LEN))

/* A piece of a body's beginning; answer 0 is the request's, 1 the reply's. */
MSG(RECORD_BODY, record_body, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_body, U64(request) U8(answer) BYTES(data, PIECE_LEN))

/* failed: the request was allowed and did not end cleanly; then why. */
MSG(RECORD_CLOSED, record_closed, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_closed, U64(request) U64(at) U8(failed) U64(bytes_in)
    U64(bytes_out) U64(request_body) U64(answer_body) BYTES(request_hash, 32)
    BYTES(answer_hash, 32) STR(reason, PATH_LEN))

/* RECORD_HEAD, RECORD_BODY and RECORD_CLOSED of an answer that was short. */
MSG(RECORD_DONE, record_done, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_done, U64(request) U64(at) U64(bytes_in) U64(bytes_out)
    U64(request_body) U64(answer_body) U16(status) STR(address, ADDRESS_LEN)
    BYTES(fields, FIELDS_LEN) BYTES(data, PIECE_LEN))

/* What never became a request: a refused connection, a name asked. */
MSG(RECORD_OTHER, record_other, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_other, U8(kind) U64(at) U8(protocol) U16(port) STR(host, HOST_LEN)
    STR(reason, PATH_LEN))

/*
 * Times are nanoseconds since the epoch.  told: whoever made the sandbox has
 * said which variables its command has; the environment is their names.
 */
MSG(RECORD_SESSION, record_session, R_POLICYD, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_session, U8(kind) U64(at) STR(session, SESSION_LEN)
    STR(policy, NAME_LEN) STR(reason, PATH_LEN) STR(ca, FINGERPRINT_LEN)
    U8(told) STR(environment, ENVIRONMENT_LEN))

/* Whose connection a sandbox serves since when, or has served until now. */
MSG(RECORD_ATTACHED, record_attached, R_PARENT, R_RECORDER, FD_NEVER, S_WORK)
FIELDS(record_attached, U8(kind) U64(at) U64(since) STR(session, SESSION_LEN)
    U32(number) U32(uid) U32(pid) STR(program, PROGRAM_LEN))

/* A decider that did not decide, and what it was asked about. */
MSG(RECORD_DECIDER, record_decider, R_POLICYD, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_decider, U64(at) STR(session, SESSION_LEN) STR(decider, NAME_LEN)
    STR(reason, NAME_LEN) STR(detail, PATH_LEN) U32(waited_ms) U8(scheme)
    U16(port) STR(host, HOST_LEN) STR(method, METHOD_LEN) STR(path, URL_LEN))
