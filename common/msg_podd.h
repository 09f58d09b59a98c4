/* SPDX-License-Identifier: ISC */

/*
 * The channels to gates in pods.  A channel is an exec in a pod's gate: k8sd
 * carries its bytes, podd speaks with whoever is there, and controld has both
 * do so for as long as the session lasts.  Its number is controld's, and
 * another one each time that the pod is dialled.
 *
 *	POD_CHANNEL	one POD_CHANNEL_OPENED or POD_CHANNEL_ENDED
 *	... OPENED	one POD_CHANNEL_ENDED, some day
 *	PODD_OPEN	PODD_STATE ...; of them PODD_LOST or PODD_HOSTILE is the
 *			last, and is podd's word that it has closed
 *	PODD_CLOSE	nothing more; one for a number that is forgotten has
 *			crossed its end on the way
 *	PODD_RELOAD	one PODD_RELOADED, unless the channel ends before
 */

/* The pod is that of the session's number, as in msg_pod.h. */
MSG(POD_CHANNEL, pod_channel, R_CONTROLD, R_K8SD, FD_NEVER, S_OPEN)
FIELDS(pod_channel, U32(number) U32(channel))

/*
 * One end of a pair, of which k8sd has the other.  sha256 is that of the
 * configuration which the gate was given, or "": nobody knows.
 */
MSG(POD_CHANNEL_OPENED, pod_channel_opened, R_K8SD, R_CONTROLD, FD_MUST, S_OPEN)
FIELDS(pod_channel_opened, U32(channel) STR(uid, NAME_LEN) STR(node, HOST_LEN)
    U64(term) STR(sha256, FINGERPRINT_LEN))

MSG(POD_CHANNEL_ENDED, pod_channel_ended, R_K8SD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(pod_channel_ended, U32(channel) STR(text, PATH_LEN))

MSG(PODD_OPEN, podd_open, R_CONTROLD, R_PODD, FD_MUST, S_OPEN)
FIELDS(podd_open, U32(channel) STR(session, SESSION_LEN) STR(pod, HOST_LEN)
    STR(uid, NAME_LEN) STR(node, HOST_LEN) U64(term)
    STR(sha256, FINGERPRINT_LEN))

MSG(PODD_CLOSE, podd_close, R_CONTROLD, R_PODD, FD_NEVER, S_OPEN)
FIELDS(podd_close, U32(channel))

/* state is one of podd_state. */
MSG(PODD_STATE, podd_state, R_PODD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(podd_state, U32(channel) U8(state) STR(text, PATH_LEN))

/* The gate is to read its configuration again, until it is this one. */
MSG(PODD_RELOAD, podd_reload, R_CONTROLD, R_PODD, FD_NEVER, S_OPEN)
FIELDS(podd_reload, U32(channel) STR(sha256, FINGERPRINT_LEN))

MSG(PODD_RELOADED, podd_reloaded, R_PODD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(podd_reloaded, U32(channel) U8(ok) STR(text, PATH_LEN))

/*
 * A record of a pod's, under the number that it has there; its members, one
 * JSON object, come before it in pieces.  at is nanoseconds since the epoch.
 */
MSG(POD_MEMBERS, pod_members, R_PODD, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(pod_members, BYTES(text, MEMBERS_LEN))

MSG(POD_RECORD, pod_record, R_PODD, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(pod_record, U32(channel) U8(kind) U64(at) U64(origin_seq)
    STR(session, SESSION_LEN) STR(pod, HOST_LEN) STR(uid, NAME_LEN)
    STR(node, HOST_LEN))

/* All of the channel's up to this one are written, where there is a file. */
MSG(POD_RECORDED, pod_recorded, R_RECORDER, R_PODD, FD_NEVER, S_OPEN)
FIELDS(pod_recorded, U32(channel) U64(origin_seq))

/* Some could not be: the channel is to be closed, and the pod heard again. */
MSG(POD_UNRECORDED, pod_unrecorded, R_RECORDER, R_PODD, FD_NEVER, S_OPEN)
FIELDS(pod_unrecorded, U32(channel))

/* The end of a pod's channel, for the record. */
MSG(RECORD_POD, record_pod, R_CONTROLD, R_RECORDER, FD_NEVER, S_OPEN)
FIELDS(record_pod, U8(kind) U64(at) STR(session, SESSION_LEN)
    STR(pod, HOST_LEN) STR(uid, NAME_LEN) STR(node, HOST_LEN)
    STR(reason, PATH_LEN))

/*
 * A pod's question to a decider; its number is the pod's.  The path is as the
 * pod shows it: redacted bytes are hidden already, and it may be cut.
 */
MSG(POD_QUESTION, pod_question, R_PODD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(pod_question, U32(channel) U64(id) STR(session, SESSION_LEN)
    STR(decider, NAME_LEN) U32(rule) U64(timeout_ms) U8(scheme) U16(port)
    U64(length) STR(host, HOST_LEN) STR(method, METHOD_LEN)
    STR(path, SHOWN_LEN) U8(truncated) U64(redacted))

MSG(POD_QUESTION_DROP, pod_question_drop, R_PODD, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(pod_question_drop, U32(channel) U64(id) STR(session, SESSION_LEN))

/*
 * result is one of answer_result; hostile: the question is one that no gate
 * of the session's would ask, and the reason says why; keep: as in ANSWER.
 */
MSG(POD_QUESTION_ANSWER, pod_question_answer, R_POLICYD, R_PODD, FD_NEVER,
    S_OPEN)
FIELDS(pod_question_answer, U32(channel) U64(id) U8(result) U8(hostile)
    U8(keep) STR(reason, PATH_LEN))
