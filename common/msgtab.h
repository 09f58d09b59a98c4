/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * Every message that may pass between two of our processes.
 *
 * A row of MSG_TABLE says who may send it to whom, whether a descriptor
 * comes with it, and in which state of the channel it is legal.  The list
 * FIELDS_x beside it says what it carries.  From these two come the enum,
 * the names in logs, struct msg_x, its encoder and its decoder, the smallest
 * and the largest length, and the checks in ipc.c; regress/ipc walks them
 * too.  To add a message, add a row and a list.
 *
 *	U8 U16 U32 U64		numbers, network order
 *	STR(name, max)		text of at most max bytes, no NUL inside
 *	BYTES(name, max)	any bytes, at most max of them
 *
 * Nothing here is a pointer or a size in the receiver: numbers name things
 * that the receiver looks up.
 */

#ifndef MSGTAB_H
#define MSGTAB_H

#include "role.h"

/*
 * States of a channel, as each end sees it.  The channel to the parent goes
 * boot, setup, prepare, commit, run and again prepare for each reload; a side
 * channel between two children is open from the start.
 */
#define S_BOOT		0x01	/* the child does not know who it is */
#define S_SETUP		0x02	/* confined, never configured */
#define S_PREPARE	0x04	/* a generation is being sent or weighed */
#define S_COMMIT	0x08	/* committed, not yet confirmed */
#define S_RUN		0x10
#define S_OPEN		0x20	/* side channel */
#define S_UP		(S_SETUP | S_PREPARE | S_COMMIT | S_RUN)
#define S_WORK		(S_PREPARE | S_COMMIT | S_RUN)

/*
 * With FD_MUST the descriptor may still be missing in one way: the kernel had
 * no slot for it.  The handler is told and treats it as a failed attempt.
 */
enum msg_fd { FD_NEVER, FD_MUST };

/* M(NAME, fields, senders, receivers, descriptor, states) */
#define MSG_TABLE(M) \
	/* start */ \
	M(BOOT, boot, R_PARENT, R_CHILDREN, FD_NEVER, S_BOOT) \
	M(CHANNEL, channel, R_PARENT, R_CHILDREN, FD_MUST, S_UP) \
	M(LOG_LEVEL, log_level, R_PARENT, R_CHILDREN, FD_NEVER, S_UP) \
	/* configuration: one transaction per generation */ \
	M(CONF_BEGIN, generation, R_PARENT, R_CHILDREN, FD_NEVER, \
	    S_SETUP | S_RUN) \
	M(CONF_END, generation, R_PARENT, R_CHILDREN, FD_NEVER, S_PREPARE) \
	M(CONF_COMMIT, generation, R_PARENT, R_CHILDREN, FD_NEVER, S_PREPARE) \
	M(CONF_ABORT, generation, R_PARENT, R_CHILDREN, FD_NEVER, S_PREPARE) \
	M(CONF_ACK, generation, R_CHILDREN, R_PARENT, FD_NEVER, S_PREPARE) \
	M(CONF_NAK, conf_nak, R_VOTERS, R_PARENT, FD_NEVER, S_PREPARE) \
	M(CONF_DONE, generation, R_CHILDREN, R_PARENT, FD_NEVER, S_COMMIT) \
	/* slices */ \
	M(CONF_CONTROL, conf_control, R_PARENT, R_POLICYD, FD_MUST, S_PREPARE) \
	M(CONF_LIMITS, conf_limits, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE) \
	M(CONF_SESSION, conf_session, R_PARENT, R_POLICYD | R_RECORDER, \
	    FD_NEVER, S_PREPARE) \
	M(CONF_POLICY, conf_policy, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE) \
	M(CONF_RULE, conf_rule, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE) \
	M(CONF_COND, conf_cond, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE) \
	M(CONF_ENVIRONMENT, conf_environment, R_PARENT, R_POLICYD, FD_NEVER, \
	    S_PREPARE) \
	M(CONF_AUDIT, conf_audit, R_PARENT, R_RECORDER, FD_MUST, S_PREPARE) \
	M(CONF_AUDIT_SAME, empty, R_PARENT, R_RECORDER, FD_NEVER, S_PREPARE) \
	M(CONF_TIP, empty, R_PARENT, R_RECORDER, FD_MUST, S_PREPARE) \
	M(CONF_JUDGE, conf_judge, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE) \
	M(CONF_REDACT, conf_redact, R_PARENT, R_POLICYD | R_RECORDER, \
	    FD_NEVER, S_PREPARE) \
	M(CONF_GAP, conf_gap, R_PARENT, R_RECORDER, FD_NEVER, S_PREPARE) \
	M(CONF_DIAL, conf_dial, R_PARENT, R_DIALER, FD_NEVER, S_PREPARE) \
	M(CONF_HOST, conf_host, R_PARENT, R_DIALER, FD_NEVER, S_PREPARE) \
	M(CONF_RESOLVER, conf_resolver, R_PARENT, R_DIALER | R_DECIDERD, \
	    FD_NEVER, S_PREPARE) \
	M(CONF_DENY_NET, conf_deny_net, R_PARENT, R_DIALER, FD_NEVER, \
	    S_PREPARE) \
	M(CONF_DECIDER, conf_decider, R_PARENT, R_DECIDERD, FD_NEVER, \
	    S_PREPARE) \
	M(CONF_HEADER, conf_header, R_PARENT, R_DECIDERD, FD_NEVER, S_PREPARE) \
	M(CONF_CLUSTER, conf_cluster, R_PARENT, R_K8SD, FD_NEVER, S_PREPARE) \
	M(CONF_FILE, conf_file, R_PARENT, R_DECIDERD | R_K8SD | R_ENGINE, \
	    FD_MUST, S_PREPARE) \
	M(CONF_ENGINE, conf_engine, R_PARENT, R_ENGINE, FD_NEVER, S_PREPARE) \
	M(CONF_LISTEN, conf_listen, R_PARENT, R_ENGINE, FD_MUST, S_PREPARE) \
	/* what control clients ask for and policyd cannot do */ \
	M(STATUS_ASK, cookie, R_POLICYD, R_PARENT, FD_NEVER, S_WORK) \
	M(STATUS_PROC, status_proc, R_PARENT, R_POLICYD, FD_NEVER, S_WORK) \
	M(STATUS_END, status_end, R_PARENT, R_POLICYD, FD_NEVER, S_WORK) \
	M(RELOAD_ASK, cookie, R_POLICYD, R_PARENT, FD_NEVER, S_WORK) \
	M(RELOAD_DONE, reload_done, R_PARENT, R_POLICYD, FD_NEVER, S_WORK) \
	M(LOG_ASK, log_level, R_POLICYD, R_PARENT, FD_NEVER, S_WORK) \
	M(PEER_ASK, cookie, R_POLICYD, R_PARENT, FD_MUST, S_WORK) \
	M(PEER_ANSWER, peer_answer, R_PARENT, R_POLICYD, FD_NEVER, S_WORK) \
	M(FOLLOW_ASK, follow, R_POLICYD, R_PARENT, FD_MUST, S_WORK) \
	M(FOLLOW, follow, R_PARENT, R_RECORDER, FD_MUST, S_WORK) \
	M(SESSION_ASK, session_ask, R_POLICYD, R_PARENT, FD_MUST, S_WORK) \
	M(SESSION_DONE, session_done, R_PARENT, R_POLICYD, FD_NEVER, S_WORK) \
	M(CLIENT, empty, R_PARENT, R_POLICYD, FD_MUST, S_WORK) \
	M(AUDIT_ASK, cookie, R_POLICYD, R_RECORDER, FD_NEVER, S_OPEN) \
	M(AUDIT_STATUS, audit_status, R_RECORDER, R_POLICYD, FD_NEVER, S_OPEN) \
	M(REFUSALS_ASK, refusals_ask, R_POLICYD, R_RECORDER, FD_NEVER, \
	    S_OPEN) \
	M(REFUSAL, refusal, R_RECORDER, R_POLICYD, FD_NEVER, S_OPEN) \
	M(REFUSALS, refusals, R_RECORDER, R_POLICYD, FD_NEVER, S_OPEN) \
	/* sessions */ \
	M(ENGINE_HELLO, generation, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN) \
	M(ENGINE_CA, engine_ca, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN) \
	M(ENGINE_BYE, empty, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN) \
	M(ENGINE_TRUST, engine_trust, R_ENGINE, R_PARENT, FD_NEVER, S_COMMIT) \
	M(ENGINE_BAD, engine_bad, R_POLICYD | R_RECORDER | R_DIALER, R_PARENT, \
	    FD_NEVER, S_WORK) \
	M(RECORD_SESSION, record_session, R_POLICYD, R_RECORDER, FD_NEVER, \
	    S_OPEN) \
	/* deciders; programs and sockets are the parent's to open */ \
	M(QUESTION, question, R_POLICYD, R_DECIDERD, FD_NEVER, S_OPEN) \
	M(QUESTION_DROP, cookie, R_POLICYD, R_DECIDERD, FD_NEVER, S_OPEN) \
	M(ANSWER, answer, R_DECIDERD, R_POLICYD, FD_NEVER, S_OPEN) \
	M(HELPER_ASK, helper_ask, R_DECIDERD, R_PARENT, FD_NEVER, S_WORK) \
	M(HELPER, cookie, R_PARENT, R_DECIDERD, FD_MUST, S_WORK) \
	M(HELPER_FAILED, helper_failed, R_PARENT, R_DECIDERD, FD_NEVER, \
	    S_WORK) \
	M(HELPER_EXITED, helper_failed, R_PARENT, R_DECIDERD, FD_NEVER, \
	    S_WORK) \
	M(HELPER_DONE, cookie, R_DECIDERD, R_PARENT, FD_NEVER, S_WORK) \
	M(RECORD_DECIDER, record_decider, R_POLICYD, R_RECORDER, FD_NEVER, \
	    S_OPEN) \
	/* a local sandbox and its engine */ \
	M(BOX_LISTEN, box_listen, R_BOX, R_ENGINE, FD_MUST, S_OPEN) \
	M(BOX_READY, box_ready, R_BOX, R_ENGINE, FD_NEVER, S_OPEN) \
	M(BOX_TRUST, box_trust, R_ENGINE, R_BOX, FD_MUST, S_OPEN) \
	M(BOX_GO, box_go, R_ENGINE, R_BOX, FD_NEVER, S_OPEN) \
	/* a request: verdict, connection, records */ \
	M(ASK, ask, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN) \
	M(ASK_DROP, cookie, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN) \
	M(VERDICT, verdict, R_POLICYD, R_ENGINE, FD_NEVER, S_OPEN) \
	M(GRANT, grant, R_POLICYD, R_DIALER, FD_NEVER, S_OPEN) \
	M(DIALED, dialed, R_DIALER, R_ENGINE, FD_MUST, S_OPEN) \
	M(DIAL_FAILED, dial_failed, R_DIALER, R_ENGINE, FD_NEVER, S_OPEN) \
	M(SOCKET_ASK, socket_kind, R_DIALER, R_PARENT, FD_NEVER, S_WORK) \
	M(SOCKET, socket_kind, R_PARENT, R_DIALER, FD_MUST, S_WORK) \
	M(CREDIT, credit, R_RECORDER, R_ENGINE, FD_NEVER, S_OPEN) \
	M(RECORD_OPENED, record_opened, R_ENGINE, R_RECORDER, FD_NEVER, \
	    S_OPEN) \
	M(RECORD_VERDICT, record_verdict, R_ENGINE, R_RECORDER, FD_NEVER, \
	    S_OPEN) \
	M(RECORD_HEAD, record_head, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN) \
	M(RECORD_BODY, record_body, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN) \
	M(RECORD_CLOSED, record_closed, R_ENGINE, R_RECORDER, FD_NEVER, \
	    S_OPEN) \
	M(RECORD_DONE, record_done, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN) \
	M(RECORD_OTHER, record_other, R_ENGINE, R_RECORDER, FD_NEVER, S_OPEN)

#define FIELDS_empty(U8, U16, U32, U64, STR, BYTES)

#define FIELDS_cookie(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie)

#define FIELDS_generation(U8, U16, U32, U64, STR, BYTES) \
	U64(generation)

/*
 * uid 0: stay who you are (started without privileges), no chroot.  life is
 * another one each time that the daemon starts.
 */
#define FIELDS_boot(U8, U16, U32, U64, STR, BYTES) \
	U8(role) U8(log_level) U8(log_marks) U32(uid) U32(gid) U64(life) \
	STR(chroot, PATH_LEN) STR(session, NAME_LEN)

/* The other end of a pair.  Session and instance name an engine. */
#define FIELDS_channel(U8, U16, U32, U64, STR, BYTES) \
	U8(peer) U32(instance) STR(session, NAME_LEN) STR(policy, NAME_LEN)

#define FIELDS_log_level(U8, U16, U32, U64, STR, BYTES) \
	U8(level)

#define FIELDS_conf_nak(U8, U16, U32, U64, STR, BYTES) \
	U64(generation) STR(why, PATH_LEN)

#define FIELDS_conf_control(U8, U16, U32, U64, STR, BYTES) \
	U8(read_only)

#define FIELDS_conf_limits(U8, U16, U32, U64, STR, BYTES) \
	U32(clients) U32(sessions) U32(pending)

#define FIELDS_conf_session(U8, U16, U32, U64, STR, BYTES) \
	STR(session, NAME_LEN) STR(policy, NAME_LEN)

/* Rules follow their policy, conditions their rule. */
#define FIELDS_conf_policy(U8, U16, U32, U64, STR, BYTES) \
	STR(name, NAME_LEN) U8(allow) U8(refuse) U8(on_full) \
	U64(quota_out) U32(pause_denials) U64(pause_ms)

/* body is the limit in bytes, or UINT64_MAX. */
#define FIELDS_conf_rule(U8, U16, U32, U64, STR, BYTES) \
	U32(index) U8(kind) U8(tcp) U8(scheme) U8(to_private) U64(body) \
	U64(timeout_ms) U8(cache) U64(ttl_ms) U32(uses) U32(messages)

/* A host, path, method, prefix or decider; ports; metadata has a value. */
#define FIELDS_conf_cond(U8, U16, U32, U64, STR, BYTES) \
	U8(kind) U16(first) U16(last) STR(text, PATH_LEN) STR(value, PATH_LEN)

/* A pattern of the policy before it, in the order of their turn. */
#define FIELDS_conf_environment(U8, U16, U32, U64, STR, BYTES) \
	U8(pass) STR(pattern, NAME_LEN)

/* show: it is not to be hidden, although it usually is. */
#define FIELDS_conf_redact(U8, U16, U32, U64, STR, BYTES) \
	STR(policy, NAME_LEN) U8(kind) U8(show) STR(name, NAME_LEN)

/* A policy whose sessions go on while records are lost. */
#define FIELDS_conf_gap(U8, U16, U32, U64, STR, BYTES) \
	STR(policy, NAME_LEN)

#define FIELDS_conf_dial(U8, U16, U32, U64, STR, BYTES) \
	U64(timeout_ms)

#define FIELDS_conf_host(U8, U16, U32, U64, STR, BYTES) \
	STR(name, HOST_LEN) STR(address, ADDRESS_LEN)

#define FIELDS_conf_resolver(U8, U16, U32, U64, STR, BYTES) \
	STR(address, ADDRESS_LEN) U16(port)

#define FIELDS_conf_deny_net(U8, U16, U32, U64, STR, BYTES) \
	STR(prefix, ADDRESS_LEN)

/* temperature in thousandths, or UINT32_MAX; 0 and "": what the server does. */
#define FIELDS_conf_decider(U8, U16, U32, U64, STR, BYTES) \
	STR(name, NAME_LEN) U8(kind) U8(api) U8(form) U8(persistent) \
	STR(url, PATH_LEN) STR(model, NAME_LEN) \
	U32(max_tokens) U32(temperature) STR(effort, NAME_LEN) \
	STR(key_header, NAME_LEN) U64(timeout_ms) U32(concurrency)

/* Of the decider sent before it. */
#define FIELDS_conf_header(U8, U16, U32, U64, STR, BYTES) \
	STR(name, NAME_LEN) STR(value, PATH_LEN)

/* What policyd must know of a decider: not where it is, nor its key. */
#define FIELDS_conf_judge(U8, U16, U32, U64, STR, BYTES) \
	STR(name, NAME_LEN) U8(kind) U64(timeout_ms) U32(concurrency)

#define FIELDS_conf_cluster(U8, U16, U32, U64, STR, BYTES) \
	STR(name, NAME_LEN) U8(in_cluster) STR(context, PATH_LEN) \
	STR(server, PATH_LEN) STR(user, PATH_LEN)

/* Key, prompt, token, certificate, ...: of the object sent before it. */
#define FIELDS_conf_file(U8, U16, U32, U64, STR, BYTES) \
	U8(what)

/* asks: the policy has rules about connections, not only about requests. */
#define FIELDS_conf_engine(U8, U16, U32, U64, STR, BYTES) \
	STR(policy, NAME_LEN) U8(refuse) U8(asks) U32(capture) \
	U8(capture_hash) U64(quota_out) \
	U32(connections) U64(handshake_ms) U64(head_ms) U64(response_ms) \
	U64(idle_ms) U64(tunnel_ms) U64(total_ms)

/* A bound socket: one of listen_kind. */
#define FIELDS_conf_listen(U8, U16, U32, U64, STR, BYTES) \
	U8(kind) U8(transparent)

#define FIELDS_conf_audit(U8, U16, U32, U64, STR, BYTES) \
	STR(path, PATH_LEN)

#define FIELDS_status_proc(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U8(role) U32(pid) STR(session, NAME_LEN)

#define FIELDS_status_end(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U64(generation) U64(started) U8(privileged) \
	U8(log_level) STR(configuration, PATH_LEN)

#define FIELDS_reload_done(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U8(result) U64(generation) STR(text, TEXT_LEN)

#define FIELDS_peer_answer(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U8(welcome)

/* An empty session means all of them; kinds is a set of 1 << record kind. */
#define FIELDS_follow(U8, U16, U32, U64, STR, BYTES) \
	U32(kinds) STR(session, NAME_LEN)

/* A session for a sandbox whose box is at the other end of the descriptor. */
#define FIELDS_session_ask(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) STR(session, NAME_LEN) STR(policy, NAME_LEN)

#define FIELDS_session_done(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U8(ok) STR(text, PATH_LEN)

#define FIELDS_audit_status(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U64(seq) U32(followers) U8(full) STR(path, PATH_LEN)

/* What a session was refused: each REFUSAL with how often, then the sum. */
#define FIELDS_refusals_ask(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) STR(session, NAME_LEN)

#define FIELDS_refusal(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U64(count) STR(host, HOST_LEN) STR(reason, NAME_LEN)

#define FIELDS_refusals(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) U64(total)

/* The certificate of a session's CA, as PEM and as a Java key store. */
#define FIELDS_engine_trust(U8, U16, U32, U64, STR, BYTES) \
	STR(ca, 4096) BYTES(java, 4096)

/* What it is known by, in hexadecimal, and its end: seconds since the epoch. */
#define FIELDS_engine_ca(U8, U16, U32, U64, STR, BYTES) \
	STR(sha256, FINGERPRINT_LEN) U64(not_after)

#define FIELDS_engine_bad(U8, U16, U32, U64, STR, BYTES) \
	U32(instance) STR(why, PATH_LEN)

/*
 * Times are nanoseconds since the epoch.  told: whoever made the sandbox has
 * said which variables its command has; the environment is their names.
 */
#define FIELDS_record_session(U8, U16, U32, U64, STR, BYTES) \
	U8(kind) U64(at) STR(session, NAME_LEN) STR(policy, NAME_LEN) \
	STR(reason, PATH_LEN) STR(ca, FINGERPRINT_LEN) U8(told) \
	STR(environment, ENVIRONMENT_LEN)

/* The document is one JSON object; who asks is done waiting after so long. */
#define FIELDS_question(U8, U16, U32, U64, STR, BYTES) \
	U32(id) U64(timeout_ms) STR(decider, NAME_LEN) \
	BYTES(document, QUESTION_LEN)

/* result is one of answer_result; the reason is the decider's own words. */
#define FIELDS_answer(U8, U16, U32, U64, STR, BYTES) \
	U32(id) U8(result) STR(reason, PATH_LEN)

/* The other end of a decider's program, or a connection to its socket. */
#define FIELDS_helper_ask(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) STR(decider, NAME_LEN)

/* Of a program that has ended, why is empty if it ended well. */
#define FIELDS_helper_failed(U8, U16, U32, U64, STR, BYTES) \
	U32(cookie) STR(why, PATH_LEN)

/* A decider that did not decide, and what it was asked about. */
#define FIELDS_record_decider(U8, U16, U32, U64, STR, BYTES) \
	U64(at) STR(session, NAME_LEN) STR(decider, NAME_LEN) \
	STR(reason, NAME_LEN) STR(detail, PATH_LEN) U32(waited_ms) \
	U8(scheme) U16(port) STR(host, HOST_LEN) STR(method, METHOD_LEN) \
	STR(path, URL_LEN)

/* What listens, or reports packets, in the sandbox: one of listen_kind. */
#define FIELDS_box_listen(U8, U16, U32, U64, STR, BYTES) \
	U8(kind)

/* redirect: every TCP port arrives, not only the well-known ones. */
#define FIELDS_box_ready(U8, U16, U32, U64, STR, BYTES) \
	U8(redirect)

/* A sealed memory file: one of trust_kind. */
#define FIELDS_box_trust(U8, U16, U32, U64, STR, BYTES) \
	U8(kind)

#define FIELDS_box_go(U8, U16, U32, U64, STR, BYTES) \
	STR(session, NAME_LEN)

/*
 * May this be?  With dial other than 0, an allowed request is also granted a
 * connection, which the dialer hands over under that number.  again is an
 * earlier question about the same, or 0: it was allowed without a connection,
 * and now turns out to need one.  length is that of the body, UINT64_MAX if
 * nobody knows it yet.
 */
#define FIELDS_ask(U8, U16, U32, U64, STR, BYTES) \
	U32(id) U32(dial) U32(again) U8(about) U8(scheme) U16(port) U64(length) \
	STR(host, HOST_LEN) STR(method, METHOD_LEN) STR(path, URL_LEN)

/*
 * scope says how far the verdict reaches, rule is UINT32_MAX for the default,
 * body is the limit in bytes.  decider is who was asked, if anybody was, or
 * whose answer was kept; its reason is told of an allow, too.
 */
#define FIELDS_verdict(U8, U16, U32, U64, STR, BYTES) \
	U32(id) U8(verdict) U8(scope) U8(rule_kind) U32(rule) \
	U64(generation) U64(body) STR(reason, PATH_LEN) \
	STR(decider, NAME_LEN) U8(cached) U32(waited_ms)

/* nets: prefixes that the rule opens, separated by spaces. */
#define FIELDS_grant(U8, U16, U32, U64, STR, BYTES) \
	U32(instance) U32(dial) U16(port) U8(to_private) \
	STR(host, HOST_LEN) STR(nets, PATH_LEN)

#define FIELDS_dialed(U8, U16, U32, U64, STR, BYTES) \
	U32(dial) STR(address, ADDRESS_LEN)

#define FIELDS_dial_failed(U8, U16, U32, U64, STR, BYTES) \
	U32(dial) U8(failure) STR(why, PATH_LEN)

#define FIELDS_socket_kind(U8, U16, U32, U64, STR, BYTES) \
	U8(kind)

#define CREDIT_MAX	2048	/* requests open at once, of an engine */

/*
 * So many requests more may be opened.  While hold is set none may: records
 * would be lost and the policy does not accept that.
 */
#define FIELDS_credit(U8, U16, U32, U64, STR, BYTES) \
	U32(count) U8(hold)

/*
 * fields: the head's field lines, "name: value\r\n" each.  inspected is 0 for
 * a flow that is not looked into.  With allowed the verdict is known already,
 * and RECORD_VERDICT does not follow.
 */
#define FIELDS_record_opened(U8, U16, U32, U64, STR, BYTES) \
	U64(request) U64(at) U8(scheme) U8(protocol) U16(port) \
	STR(host, HOST_LEN) STR(method, METHOD_LEN) STR(path, URL_LEN) \
	BYTES(fields, FIELDS_LEN) U8(inspected) U8(allowed) U8(rule_kind) \
	U32(rule)

/* decider, cached, waited_ms and reason as in a verdict. */
#define FIELDS_record_verdict(U8, U16, U32, U64, STR, BYTES) \
	U64(request) U64(at) U8(verdict) U8(rule_kind) U32(rule) \
	STR(reason, PATH_LEN) STR(decider, NAME_LEN) U8(cached) \
	U32(waited_ms)

#define FIELDS_record_head(U8, U16, U32, U64, STR, BYTES) \
	U64(request) U16(status) STR(address, ADDRESS_LEN) \
	BYTES(fields, FIELDS_LEN)

/* A piece of a body's beginning; answer 0 is the request's, 1 the reply's. */
#define FIELDS_record_body(U8, U16, U32, U64, STR, BYTES) \
	U64(request) U8(answer) BYTES(data, PIECE_LEN)

/* failed: the request was allowed and did not end cleanly; then why. */
#define FIELDS_record_closed(U8, U16, U32, U64, STR, BYTES) \
	U64(request) U64(at) U8(failed) U64(bytes_in) U64(bytes_out) \
	U64(request_body) U64(answer_body) \
	BYTES(request_hash, 32) BYTES(answer_hash, 32) STR(reason, PATH_LEN)

/* RECORD_HEAD, RECORD_BODY and RECORD_CLOSED of an answer that was short. */
#define FIELDS_record_done(U8, U16, U32, U64, STR, BYTES) \
	U64(request) U64(at) U64(bytes_in) U64(bytes_out) \
	U64(request_body) U64(answer_body) U16(status) \
	STR(address, ADDRESS_LEN) BYTES(fields, FIELDS_LEN) \
	BYTES(data, PIECE_LEN)

/* What never became a request: a refused connection, a name asked. */
#define FIELDS_record_other(U8, U16, U32, U64, STR, BYTES) \
	U8(kind) U64(at) U8(protocol) U16(port) STR(host, HOST_LEN) \
	STR(reason, PATH_LEN)

/* Each list once; several rows may share one. */
#define MSG_STRUCTS(S) \
	S(empty) S(cookie) S(generation) S(boot) S(channel) S(log_level) \
	S(conf_nak) S(conf_control) S(conf_limits) S(conf_session) \
	S(conf_policy) S(conf_rule) S(conf_cond) S(conf_environment) \
	S(conf_redact) S(conf_gap) S(conf_dial) S(conf_host) \
	S(conf_resolver) S(conf_deny_net) S(conf_decider) S(conf_header) \
	S(conf_cluster) S(conf_file) S(conf_engine) S(conf_listen) \
	S(conf_audit) S(conf_judge) S(question) S(answer) S(helper_ask) \
	S(helper_failed) S(record_decider) S(status_proc) S(status_end) \
	S(reload_done) \
	S(peer_answer) S(follow) S(session_ask) S(session_done) \
	S(audit_status) S(engine_bad) \
	S(engine_trust) S(engine_ca) S(refusals_ask) S(refusal) S(refusals) \
	S(record_session) S(box_listen) S(box_ready) S(box_trust) S(box_go) \
	S(ask) S(verdict) S(grant) S(dialed) S(dial_failed) S(socket_kind) \
	S(credit) S(record_opened) S(record_verdict) S(record_head) \
	S(record_body) S(record_closed) S(record_done) S(record_other)

enum msg_type {
	MSG_NONE,
#define M(type, ...) MSG_##type,
	MSG_TABLE(M)
#undef M
	MSG_MAX
};

/* Kinds of CONF_COND and CONF_FILE. */
enum cond_kind {
	COND_HOST,
	COND_PORT,
	COND_METHOD,
	COND_PATH,
	COND_NET,
	COND_DECIDER,
	COND_METADATA,
	COND_KIND_MAX
};

enum file_kind {
	FILE_KEY,
	FILE_PROMPT,
	FILE_TRUST,
	FILE_KUBECONFIG,
	FILE_TOKEN,
	FILE_CERTIFICATE,
	FILE_PASSWORD,
	FILE_KIND_MAX
};

enum listen_kind {
	LISTEN_TCP,		/* everything but DNS */
	LISTEN_DNS_UDP,
	LISTEN_DNS_TCP,
	LISTEN_NFLOG,		/* what the fence refused */
	LISTEN_KIND_MAX
};

enum trust_kind {
	TRUST_CA,		/* the session's CA, PEM */
	TRUST_BUNDLE,		/* the public bundle and the CA, PEM */
	TRUST_JAVA,		/* the CA as a Java key store */
	TRUST_KIND_MAX
};

#define REFUSALS_TOLD	8	/* places of a session; more are counted */

enum about {
	ABOUT_CONNECTION,	/* before anything is read: tcp, pass */
	ABOUT_REQUEST,
	QUESTION_MAX
};

enum url_scheme {
	URL_HTTP,
	URL_HTTPS,
	URL_TCP,		/* not looked into */
	URL_SCHEME_MAX
};

enum verdict {
	VERDICT_ALLOW,
	VERDICT_DENY,
	VERDICT_LOOK,		/* of a connection: read it, then ask again */
	VERDICT_MAX
};

/* For what else the verdict holds, until the generation changes. */
enum verdict_scope {
	VERDICT_ONCE,
	VERDICT_HOST,		/* session, host, port and scheme */
	VERDICT_SCOPE_MAX
};

#define RULE_NONE	UINT32_MAX	/* the default decided */

enum decider_kind {
	DECIDER_AGENT,
	DECIDER_WEBHOOK,
	DECIDER_EXEC,
	DECIDER_SOCKET,
	DECIDER_OPERATOR,	/* policyd's own: a person answers */
	DECIDER_KIND_MAX
};

enum decider_api {
	API_ANTHROPIC,
	API_OPENAI,
	API_MAX
};

/* How a model is made to give a decision. */
enum decider_form {
	FORM_AUTO,		/* as a schema, or as the API can do it */
	FORM_SCHEMA,
	FORM_JSON,		/* an object of its own making */
	FORM_TOOL,		/* which it has to call */
	FORM_MAX
};

enum answer_result {
	ANSWER_ALLOW,
	ANSWER_DENY,
	ANSWER_UNSURE,		/* the next one of the chain is to say */
	ANSWER_TIMEOUT,
	ANSWER_ERROR,		/* it could not be asked */
	ANSWER_BAD_RETURN,	/* what it said is no answer */
	ANSWER_RESULT_MAX
};

enum dial_failure {
	DIAL_ADDRESS_REFUSED,	/* by the address policy */
	DIAL_UNREACHABLE,	/* no such name, no answer, refused */
	DIAL_FAILURE_MAX
};

enum socket_kind {
	SOCKET_TCP4,
	SOCKET_TCP6,
	SOCKET_UDP4,
	SOCKET_UDP6,
	SOCKET_KIND_MAX
};

enum protocol {
	PROTOCOL_HTTP10,
	PROTOCOL_HTTP11,
	PROTOCOL_H2,
	PROTOCOL_TCP,
	PROTOCOL_UDP,
	PROTOCOL_ICMP,
	PROTOCOL_OTHER,
	PROTOCOL_TLS,		/* it never came to HTTP */
	PROTOCOL_MAX
};

/* Kinds of record; record_kind_name() has the words. */
enum record_kind {
	RECORD_REQUEST_OPENED,
	RECORD_REQUEST_ALLOWED,
	RECORD_REQUEST_DENIED,
	RECORD_REQUEST_CLOSED,
	RECORD_REQUEST_FAILED,
	RECORD_DECIDER_FAILURE,
	RECORD_SESSION_STARTED,
	RECORD_SESSION_ENDED,
	RECORD_CONNECTION_REFUSED,
	RECORD_NAME_ASKED,
	RECORD_GAP,
	RECORD_FILE_OPENED,
	RECORD_KIND_MAX
};

/* Answers of RELOAD_DONE. */
enum reload_result {
	RELOAD_OK,
	RELOAD_BAD_CONF,
	RELOAD_REFUSED,
	RELOAD_BUSY,
	RELOAD_RESULT_MAX
};

#endif /* MSGTAB_H */
