/* SPDX-License-Identifier: ISC */

/*
 * Sessions whose sandbox is a pod, between controld, the parent and k8sd.  A
 * number is a session's, as in msg_session.h; a ticket is controld's name for
 * a question.
 *
 *	POD_START	POD_PROGRESS ..., then one POD_DONE
 *	POD_DONE, ok	one POD_ENDED, some day
 *	POD_DONE, not	nothing more: the number is forgotten
 *	POD_STOP	POD_ENDED; also where POD_DONE has not come, which then
 *			does not come.  One for a number that is forgotten has
 *			crossed its end on the way, and is not answered
 *	POD_ASK		POD_ITEM ..., then one POD_ANSWER
 *	POD_LOGS	one POD_ANSWER, when the log has ended
 */

/*
 * What the gate of a session is told, before the session is asked for: one of
 * pod_conf_what, in a file that is sealed.  sha256 is of the configuration;
 * private: a rule of it opens what is not on the Internet; resolvers are
 * addresses with a space between them.
 */
MSG(POD_CONF, pod_conf, R_PARENT, R_K8SD, FD_MUST, S_WORK)
FIELDS(pod_conf, U32(number) U8(what) STR(sha256, FINGERPRINT_LEN) U8(private)
    STR(resolvers, PATH_LEN))

/*
 * sandbox is a block of the configuration, owner a uid.  named: whoever asked
 * gave the session its id, and the pod outlives it.  cwd is "" for the block's
 * own, deadline_ms 0 for none; the variables come on top of the block's.
 */
MSG(POD_START, pod_start, R_CONTROLD, R_K8SD, FD_NEVER, S_OPEN)
FIELDS(pod_start, U32(number) STR(session, SESSION_LEN) STR(sandbox, NAME_LEN)
    STR(policy, NAME_LEN) U32(owner) U8(named) STR(cwd, PATH_LEN)
    U64(deadline_ms) BYTES(variables, VARIABLES_LEN))

MSG(POD_PROGRESS, pod_progress, R_K8SD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(pod_progress, U32(number) STR(text, PATH_LEN))

/*
 * ok: 1, and the pod's name; else why not, and one of pod_error.  gated: there
 * is a gate of ours in it (msg_podd.h).
 */
MSG(POD_DONE, pod_done, R_K8SD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(pod_done, U32(number) U8(ok) U8(code) U8(gated) STR(pod, HOST_LEN)
    STR(text, PATH_LEN))

/* A client's connection, which the sandbox is to serve from now on. */
MSG(POD_ATTACH, pod_attach, R_CONTROLD, R_K8SD, FD_MUST, S_OPEN)
FIELDS(pod_attach, U32(number))

/* fate is one of pod_fate. */
MSG(POD_STOP, pod_stop, R_CONTROLD, R_K8SD, FD_NEVER, S_OPEN)
FIELDS(pod_stop, U32(number) U8(fate))

/*
 * The session's part in its pod is over.  cause is CAUSE_NONE where controld
 * has asked for it, else one of session_cause, and text says what happened.
 */
MSG(POD_ENDED, pod_ended, R_K8SD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(pod_ended, U32(number) U8(cause) STR(text, PATH_LEN))

/*
 * A question about pods, what is one of pod_ask.  sandbox is a block, or for
 * POD_ASK_CHECK a cluster where there is no such block; session is the id of
 * one, for POD_ASK_TERMINATE and POD_ASK_HEARTBEAT.  uid: only pods of
 * sessions of this owner's, UINT32_MAX for everybody's.
 */
MSG(POD_ASK, pod_ask, R_CONTROLD, R_K8SD, FD_NEVER, S_OPEN)
FIELDS(pod_ask, U32(ticket) U8(what) STR(sandbox, NAME_LEN)
    STR(session, SESSION_LEN) U32(uid) U64(age_s) U8(dry_run)
    STR(selector, PATH_LEN))

/* The log of a container, one of pod_container; k8sd writes it there. */
MSG(POD_LOGS, pod_logs, R_CONTROLD, R_K8SD, FD_MUST, S_OPEN)
FIELDS(pod_logs, U32(ticket) STR(sandbox, NAME_LEN) STR(session, SESSION_LEN)
    U8(container) U8(follow) U32(tail))

/*
 * One of a list: state is one of pod_state.  Of POD_ASK_CHECK, pod is what
 * was looked at, and its state POD_OK, POD_NOT or POD_UNKNOWN.
 */
MSG(POD_ITEM, pod_item, R_K8SD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(pod_item, U32(ticket) STR(session, SESSION_LEN) STR(pod, HOST_LEN)
    U32(owner) U8(state) U64(age_s) STR(text, PATH_LEN))

MSG(POD_ANSWER, pod_answer, R_K8SD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(pod_answer, U32(ticket) U8(ok) U8(code) STR(text, PATH_LEN))
