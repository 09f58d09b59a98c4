/* SPDX-License-Identifier: ISC */

/*
 * Numbers that stand for something, in messages and in the configuration, and
 * the word for each where it has one.  A list has both, so that every process
 * and egressctl spell them alike:
 *
 *	W(constant, "word")
 *
 * unfolds to the enum, to x_words[] with NULL at the end, to x_name(), which
 * is NULL for a number that is none, and to x_find(), which is -1 for a word
 * that is none.  A number that comes from a peer is checked against its _MAX.
 */

#ifndef WORDS_H
#define WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "codes.h"
#include "reasons.h"

#define WORD_CONSTANT(constant, word)	constant,
#define WORD_FUNCTIONS(x)						\
extern const char *const x##_words[];					\
const char	*x##_name(uint32_t);					\
int		 x##_find(const char *);

/* "a, b or c", for messages about a word that is none of them. */
void	 words_join(const char *const *, char *, size_t);

/* In order of severity. */
#define LOG_LEVELS(W) \
	W(LOG_LVL_ERROR, "error") \
	W(LOG_LVL_WARN, "warn") \
	W(LOG_LVL_INFO, "info") \
	W(LOG_LVL_DEBUG, "debug") \
	W(LOG_LVL_TRACE, "trace") /* every message, by its name */
enum log_level { LOG_LEVELS(WORD_CONSTANT) LOG_LVL_MAX };
WORD_FUNCTIONS(log_level)

#define URL_SCHEMES(W) \
	W(URL_HTTP, "http") \
	W(URL_HTTPS, "https") \
	W(URL_TCP, "tcp") /* not looked into */
enum url_scheme { URL_SCHEMES(WORD_CONSTANT) URL_SCHEME_MAX };
WORD_FUNCTIONS(url_scheme)

#define PROTOCOLS(W) \
	W(PROTOCOL_HTTP10, "http/1.0") \
	W(PROTOCOL_HTTP11, "http/1.1") \
	W(PROTOCOL_H2, "h2") \
	W(PROTOCOL_TCP, "tcp") \
	W(PROTOCOL_UDP, "udp") \
	W(PROTOCOL_ICMP, "icmp") \
	W(PROTOCOL_OTHER, "other") \
	W(PROTOCOL_TLS, "tls") /* it never came to HTTP */
enum protocol { PROTOCOLS(WORD_CONSTANT) PROTOCOL_MAX };
WORD_FUNCTIONS(protocol)

/* ---- policies ------------------------------------------------------------ */

#define RULE_KINDS(W) \
	W(RULE_ALLOW, "allow") \
	W(RULE_DENY, "deny") \
	W(RULE_PASS, "pass") \
	W(RULE_DECIDE, "decide") \
	W(RULE_NARROW, "narrow")
enum rule_kind { RULE_KINDS(WORD_CONSTANT) RULE_KIND_MAX };
WORD_FUNCTIONS(rule_kind)

#define RULE_SCHEMES(W) \
	W(SCHEME_ANY, "any") \
	W(SCHEME_HTTP, "http") \
	W(SCHEME_HTTPS, "https")
enum rule_scheme { RULE_SCHEMES(WORD_CONSTANT) SCHEME_MAX };
WORD_FUNCTIONS(rule_scheme)

#define RULE_CACHES(W) \
	W(CACHE_HOST, "host") /* per session and host */ \
	W(CACHE_REQUEST, "request") \
	W(CACHE_OFF, "off")
enum rule_cache { RULE_CACHES(WORD_CONSTANT) CACHE_MAX };
WORD_FUNCTIONS(rule_cache)

/* How a refusal looks to the client. */
#define POLICY_REFUSES(W) \
	W(REFUSE_403, "403") \
	W(REFUSE_RESET, "reset") \
	W(REFUSE_ALERT, "alert")
enum policy_refuse { POLICY_REFUSES(WORD_CONSTANT) REFUSE_MAX };
WORD_FUNCTIONS(policy_refuse)

/* What happens when records cannot be written. */
#define POLICY_FULLS(W) \
	W(FULL_DENY, "deny") \
	W(FULL_GAP, "gap")
enum policy_full { POLICY_FULLS(WORD_CONSTANT) FULL_MAX };
WORD_FUNCTIONS(policy_full)

/* What is hidden in records and questions. */
#define REDACT_KINDS(W) \
	W(REDACT_HEADER, "header") \
	W(REDACT_QUERY, "query") \
	W(REDACT_FIELD, "field") /* of a body: JSON, forms */
enum redact_kind { REDACT_KINDS(WORD_CONSTANT) REDACT_KIND_MAX };
WORD_FUNCTIONS(redact_kind)

#define VERDICTS(W) \
	W(VERDICT_ALLOW, "allow") \
	W(VERDICT_DENY, "deny") \
	W(VERDICT_LOOK, "look") /* of a connection: read it, then ask again */
enum verdict { VERDICTS(WORD_CONSTANT) VERDICT_MAX };
WORD_FUNCTIONS(verdict)

/* For what else the verdict holds, until the generation changes. */
#define VERDICT_SCOPES(W) \
	W(VERDICT_ONCE, "once") \
	W(VERDICT_HOST, "host") /* session, host, port and scheme */
enum verdict_scope { VERDICT_SCOPES(WORD_CONSTANT) VERDICT_SCOPE_MAX };
WORD_FUNCTIONS(verdict_scope)

#define RULE_NONE	UINT32_MAX	/* the default decided */

/* ---- deciders ------------------------------------------------------------ */

#define DECIDER_KINDS(W) \
	W(DECIDER_AGENT, "agent") \
	W(DECIDER_WEBHOOK, "webhook") \
	W(DECIDER_EXEC, "exec") \
	W(DECIDER_SOCKET, "socket") \
	W(DECIDER_CONTROL, "control") /* a control client answers */ \
	W(DECIDER_OPERATOR, "operator") /* policyd's own: a person answers */
enum decider_kind { DECIDER_KINDS(WORD_CONSTANT) DECIDER_KIND_MAX };
WORD_FUNCTIONS(decider_kind)

#define DECIDER_APIS(W) \
	W(API_ANTHROPIC, "anthropic") \
	W(API_OPENAI, "openai")
enum decider_api { DECIDER_APIS(WORD_CONSTANT) API_MAX };
WORD_FUNCTIONS(decider_api)

/* How a model is made to give a decision. */
#define DECIDER_FORMS(W) \
	W(FORM_AUTO, "auto") /* as a schema, or as the API can do it */ \
	W(FORM_SCHEMA, "schema") \
	W(FORM_JSON, "json") /* an object of its own making */ \
	W(FORM_TOOL, "tool") /* which it has to call */
enum decider_form { DECIDER_FORMS(WORD_CONSTANT) FORM_MAX };
WORD_FUNCTIONS(decider_form)

#define DECISIONS(W) \
	W(ANSWER_ALLOW, "allow") \
	W(ANSWER_DENY, "deny") \
	W(ANSWER_UNSURE, "unsure") /* the next decider of the chain says */
enum answer_result {
	DECISIONS(WORD_CONSTANT)
	ANSWER_TIMEOUT,
	ANSWER_ERROR,		/* it could not be asked */
	ANSWER_BAD_RETURN,	/* what it said is no answer */
	ANSWER_RESULT_MAX
};
WORD_FUNCTIONS(decision)

/* ---- records ------------------------------------------------------------- */

#define RECORD_KINDS(W) \
	W(RECORD_REQUEST_OPENED, "request_opened") \
	W(RECORD_REQUEST_ALLOWED, "request_allowed") \
	W(RECORD_REQUEST_DENIED, "request_denied") \
	W(RECORD_REQUEST_CLOSED, "request_closed") \
	W(RECORD_REQUEST_FAILED, "request_failed") \
	W(RECORD_DECIDER_FAILURE, "decider_failure") \
	W(RECORD_SESSION_STARTED, "session_started") \
	W(RECORD_SESSION_ENDED, "session_ended") \
	W(RECORD_SESSION_ATTACHED, "session_attached") \
	W(RECORD_SESSION_DETACHED, "session_detached") \
	W(RECORD_CONNECTION_REFUSED, "connection_refused") \
	W(RECORD_NAME_ASKED, "name_asked") \
	W(RECORD_GAP, "gap") \
	W(RECORD_FILE_OPENED, "file_opened") \
	W(RECORD_POD_GAP, "pod_gap") \
	W(RECORD_POD_LOST, "pod_lost") /* its channel was given up */ \
	W(RECORD_POD_HOSTILE, "pod_hostile")
enum record_kind { RECORD_KINDS(WORD_CONSTANT) RECORD_KIND_MAX };
WORD_FUNCTIONS(record_kind)

/* ---- numbers without a word ---------------------------------------------- */

/* Kinds of CONF_FILE. */
enum file_kind {
	FILE_KEY,
	FILE_PROMPT,
	FILE_TRUST,
	FILE_KUBECONFIG,
	FILE_TOKEN,
	FILE_CERTIFICATE,
	FILE_PASSWORD,
	FILE_MERGE,		/* into the manifest of a pod */
	FILE_KIND_MAX
};

enum listen_kind {
	LISTEN_TCP,		/* everything but DNS */
	LISTEN_DNS_UDP,
	LISTEN_DNS_TCP,
	LISTEN_NFLOG,		/* what the fence refused */
	LISTEN_KIND_MAX
};

#define BOX_LISTENERS	16	/* of a sandbox, all kinds together */

enum trust_kind {
	TRUST_CA,		/* the session's CA, PEM */
	TRUST_BUNDLE,		/* the public bundle and the CA, PEM */
	TRUST_JAVA,		/* the CA as a Java key store */
	TRUST_NSS_CERTS,	/* the CA as an NSS database, cert9.db */
	TRUST_NSS_KEYS,		/* and key4.db, without which it is not read */
	TRUST_KIND_MAX
};

#define REFUSALS_TOLD	8	/* places of a session; more are counted */

enum about {
	ABOUT_CONNECTION,	/* before anything is read: tcp, pass */
	ABOUT_REQUEST,
	QUESTION_MAX
};

/* How a cluster is told who asks, besides a certificate. */
enum cluster_auth {
	AUTH_NONE,
	AUTH_TOKEN,		/* that does not change */
	AUTH_TOKEN_FILE,
	AUTH_BASIC,
	AUTH_PLUGIN,
	CLUSTER_AUTH_MAX
};

/* Of CONF_POD: of a pod that has ended, and of one whose session does. */
enum pod_stale {
	POD_STALE_ERROR,
	POD_STALE_RECREATE
};

enum pod_delete {
	POD_DELETE_UNSET,	/* no with an id, yes without */
	POD_DELETE_NO,
	POD_DELETE_YES
};

/* Files of POD_CONF: the trust comes first. */
enum pod_conf_what {
	POD_CONF_TRUST,
	POD_CONF_TEXT
};

/* Texts of CONF_POD_TEXT; from POD_TEXT_PAIRS on, one of a list. */
enum pod_text {
	POD_TEXT_NAMESPACE,
	POD_TEXT_IMAGE,
	POD_TEXT_BOX_IMAGE,
	POD_TEXT_CWD,
	POD_TEXT_ID,
	POD_TEXT_SIZE,
	POD_TEXT_CLAIM,
	POD_TEXT_GIT,
	POD_TEXT_GIT_REF,
	POD_TEXT_ACCOUNT,
	POD_TEXT_PULL_POLICY,
	POD_TEXT_RUNTIME_CLASS,
	POD_TEXT_ENVIRONMENT,	/* the first of those */
	POD_TEXT_LABEL,
	POD_TEXT_ANNOTATION,
	POD_TEXT_REQUEST,
	POD_TEXT_LIMIT,
	POD_TEXT_GATE_REQUEST,
	POD_TEXT_GATE_LIMIT,
	POD_TEXT_NODE_SELECTOR,
	POD_TEXT_PULL_SECRET,
	POD_TEXT_TOLERATION,	/* its text is the key */
	POD_TEXT_MAX
};
#define POD_TEXT_PAIRS	POD_TEXT_ENVIRONMENT

/* Kinds of OPEN_ASK: what the parent opens, by whose name. */
enum open_kind {
	OPEN_DECIDER_PROGRAM,
	OPEN_DECIDER_SOCKET,
	OPEN_CLUSTER_TOKEN,	/* anew each time: it is replaced */
	OPEN_CLUSTER_PLUGIN,
	OPEN_KIND_MAX
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

/* Where a follower begins. */
enum follow_from {
	FOLLOW_LIVE,		/* with what comes */
	FOLLOW_NUMBER,
	FOLLOW_ACKNOWLEDGED,	/* after that; it acknowledges itself */
	FOLLOW_FROM_MAX
};
/* A window holds any record. */
#define FOLLOW_WINDOW_MIN	(256 * 1024)
#define FOLLOW_WINDOW_MAX	(64 * 1024 * 1024)
#define FOLLOW_WINDOW		(1024 * 1024)

/* Answers of ACK_DONE. */
enum ack_result {
	ACK_OK,
	ACK_NO_SPOOL,
	ACK_OLD_TERM,
	ACK_LOW,		/* acknowledged before */
	ACK_HIGH,		/* not sent yet */
	ACK_FAILED,		/* it could not be written down */
	ACK_RESULT_MAX
};

/* Answers of RELOAD_DONE. */
enum reload_result {
	RELOAD_OK,
	RELOAD_BAD_CONF,
	RELOAD_REFUSED,
	RELOAD_BUSY,
	RELOAD_RESULT_MAX
};

/* What became of a mount into a sandbox that runs. */
enum mount_result {
	MOUNT_DONE,
	MOUNT_FAILED,
	MOUNT_DENIED,		/* by the configuration */
	MOUNT_BUSY,		/* too many at once */
	MOUNT_RESULT_MAX
};

/* Who makes a sandbox, and of what. */
#define SANDBOX_KINDS(W) \
	W(SANDBOX_LOCAL, "local") \
	W(SANDBOX_VIRTUAL, "virtual") \
	W(SANDBOX_KUBERNETES, "kubernetes") \
	W(SANDBOX_CUSTOM, "custom")
enum sandbox_kind { SANDBOX_KINDS(WORD_CONSTANT) SANDBOX_KIND_MAX };
WORD_FUNCTIONS(sandbox_kind)

/* Why somebody ends the session of a sandbox; the words are reasons. */
#define SESSION_CAUSES(W) \
	W(CAUSE_NONE, "") \
	W(CAUSE_DEADLINE, REASON_DEADLINE) \
	W(CAUSE_REQUEST, REASON_BY_REQUEST) \
	W(CAUSE_OWNER, REASON_OWNER_LEFT) \
	W(CAUSE_SANDBOX, REASON_SANDBOX_DIED)
enum session_cause { SESSION_CAUSES(WORD_CONSTANT) SESSION_CAUSE_MAX };
WORD_FUNCTIONS(session_cause)

/* ---- pods ---------------------------------------------------------------- */

/* Why k8sd could not; the words are codes of the control socket. */
#define POD_ERRORS(W) \
	W(POD_ERROR_NONE, "") \
	W(POD_ERROR_START, CODE_START_FAILED) /* none of the others */ \
	W(POD_ERROR_UNREACHABLE, CODE_CLUSTER_UNREACHABLE) \
	W(POD_ERROR_REFUSED, CODE_CLUSTER_REFUSED) /* the API says no */ \
	W(POD_ERROR_FOREIGN, CODE_FOREIGN_POD) /* not our marks */ \
	W(POD_ERROR_DIFFERS, CODE_POD_DIFFERS) /* not as wanted */ \
	W(POD_ERROR_STALE, CODE_STALE_POD) /* Succeeded, Failed */ \
	W(POD_ERROR_FOLLOWED, CODE_FOLLOWED_ELSEWHERE) \
	W(POD_ERROR_FAILED, CODE_POD_FAILED) /* image, scheduling, ... */ \
	W(POD_ERROR_READY, CODE_READY_TIMEOUT) \
	W(POD_ERROR_DELETE, CODE_DELETE_TIMEOUT) /* the old one stays */ \
	W(POD_ERROR_PHASE, CODE_UNEXPECTED_PHASE) \
	W(POD_ERROR_WORKSPACE, CODE_WORKSPACE_SOURCE) /* git */ \
	W(POD_ERROR_REMOTE, CODE_REMOTE_ERROR) /* with its output */ \
	W(POD_ERROR_HEARTBEAT, CODE_BAD_HEARTBEAT) \
	W(POD_ERROR_UNKNOWN, CODE_UNKNOWN_SESSION) /* it has no pod */ \
	W(POD_ERROR_SANDBOX, CODE_UNKNOWN_SANDBOX) \
	W(POD_ERROR_CONF, CODE_BAD_CONFIGURATION) \
	W(POD_ERROR_LONG, CODE_TOO_LONG) \
	W(POD_ERROR_CLUSTER, CODE_UNKNOWN_CLUSTER) \
	W(POD_ERROR_SUPPORT, CODE_NOT_SUPPORTED) \
	W(POD_ERROR_BUSY, CODE_BUSY) \
	W(POD_ERROR_PERMIT, CODE_NOT_PERMITTED) /* another owner's */
enum pod_error { POD_ERRORS(WORD_CONSTANT) POD_ERROR_MAX };
WORD_FUNCTIONS(pod_error)

/* Of POD_ITEM. */
#define POD_STATES(W) \
	W(POD_UNKNOWN, "unknown") \
	W(POD_PENDING, "pending") \
	W(POD_RUNNING, "running") \
	W(POD_SUCCEEDED, "succeeded") \
	W(POD_FAILED, "failed") \
	W(POD_TERMINATING, "terminating") \
	W(POD_DELETED, "deleted") /* reap, terminate */ \
	W(POD_KEPT, "kept") /* it would be, or could not be deleted */ \
	W(POD_OK, "ok") \
	W(POD_NOT, "not")
enum pod_state { POD_STATES(WORD_CONSTANT) POD_STATE_MAX };
WORD_FUNCTIONS(pod_state)

#define POD_CONTAINERS(W) \
	W(POD_WORKSPACE, "workspace") \
	W(POD_GATE, "gate")
enum pod_container { POD_CONTAINERS(WORD_CONSTANT) POD_CONTAINER_MAX };
WORD_FUNCTIONS(pod_container)

/* Of POD_ASK. */
enum pod_ask {
	POD_ASK_LIST,
	POD_ASK_REAP,
	POD_ASK_TERMINATE,
	POD_ASK_HEARTBEAT,
	POD_ASK_CHECK,
	POD_ASK_MAX
};

/* Of POD_STOP: what becomes of the pod. */
enum pod_fate {
	POD_FATE_RULE,		/* the block's; else one without an id goes */
	POD_FATE_KEEP,
	POD_FATE_DELETE,
	POD_FATE_MAX
};

/* States of PODD_STATE; an operator is shown the words. */
#define PODD_STATES(W) \
	W(PODD_UP, "up") \
	W(PODD_OTHER_CONF, "other_configuration") /* than it was given */ \
	W(PODD_LOST, "lost") \
	W(PODD_HOSTILE, "hostile")
enum podd_state { PODD_STATES(WORD_CONSTANT) PODD_STATE_MAX };
WORD_FUNCTIONS(podd_state)

/* Of STATE_SESSION: a session outlives its engines. */
#define SESSION_STATES(W) \
	W(SESSION_WAITING, "waiting") /* for an engine */ \
	W(SESSION_STARTING, "starting") /* until the engine says hello */ \
	W(SESSION_RUNNING, "running")
enum session_state { SESSION_STATES(WORD_CONSTANT) SESSION_STATE_MAX };
WORD_FUNCTIONS(session_state)

/* Of STATE_DECIDER: whether it is asked. */
#define BREAKER_STATES(W) \
	W(BREAKER_CLOSED, "closed") \
	W(BREAKER_OPEN, "open") /* not asked, as it fails */ \
	W(BREAKER_PROBING, "probing") /* asked once, to see */
enum breaker_state { BREAKER_STATES(WORD_CONSTANT) BREAKER_STATE_MAX };
WORD_FUNCTIONS(breaker_state)

/* What LIST_ASK asks for. */
enum list_kind {
	LIST_PENDING,		/* questions that wait for a person */
	LIST_CACHE,		/* answers that sessions keep */
	LIST_KIND_MAX
};

/* Of CONTROL_DONE. */
enum control_result {
	CONTROL_OK,
	CONTROL_NONE,		/* no such session or question */
	CONTROL_TOO_MUCH,
	CONTROL_RESULT_MAX
};

/* Of INQUIRY_ASKED. */
enum inquiry_result {
	INQUIRY_ASKED,
	INQUIRY_UNKNOWN,	/* no such decider */
	INQUIRY_PERSON,		/* who cannot be asked like that */
	INQUIRY_TOO_LONG,
	INQUIRY_BUSY,
	INQUIRY_RESULT_MAX
};

/*
 * Numbers of questions to deciderd are policyd's; those of inquiries are
 * controld's cookies, which leave the highest bit free, with that bit.
 */
#define INQUIRY_BIT	UINT32_C(0x80000000)

#endif /* WORDS_H */
