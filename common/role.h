/* SPDX-License-Identifier: ISC */

/*
 * The processes, and the length limits of the names that they exchange.
 */

#ifndef ROLE_H
#define ROLE_H

#include <stdint.h>

enum role {
	ROLE_PARENT,
	ROLE_CONTROLD,
	ROLE_POLICYD,
	ROLE_RECORDER,
	ROLE_DIALER,
	ROLE_DECIDERD,
	ROLE_K8SD,
	ROLE_PODD,
	ROLE_ENGINE,
	ROLE_BOX,		/* in a sandbox: trusted by nobody */
	ROLE_MAX
};

/* Sets of roles, for the message table. */
#define R_PARENT	(1U << ROLE_PARENT)
#define R_CONTROLD	(1U << ROLE_CONTROLD)
#define R_POLICYD	(1U << ROLE_POLICYD)
#define R_RECORDER	(1U << ROLE_RECORDER)
#define R_DIALER	(1U << ROLE_DIALER)
#define R_DECIDERD	(1U << ROLE_DECIDERD)
#define R_K8SD		(1U << ROLE_K8SD)
#define R_PODD		(1U << ROLE_PODD)
#define R_ENGINE	(1U << ROLE_ENGINE)
#define R_BOX		(1U << ROLE_BOX)
#define R_VOTERS	(R_CONTROLD | R_POLICYD | R_RECORDER | R_DIALER | \
			R_DECIDERD | R_K8SD | R_PODD)
#define R_CHILDREN	(R_VOTERS | R_ENGINE)

#define NAME_LEN	64	/* of a policy, decider, fixed session, ... */
#define SESSION_LEN	255	/* of a session id, see name.h */
#define PROGRAM_LEN	15	/* of a process, as it calls itself */
#define FINGERPRINT_LEN	64	/* of a CA: hexadecimal SHA-256 */
#define HOST_LEN	253
#define ADDRESS_LEN	64	/* printed, with a prefix length */
#define PATH_LEN	1024
#define METHOD_LEN	32
#define URL_LEN		16384	/* path and query of a request */
#define FIELDS_LEN	32768	/* all field lines of a head */
#define PIECE_LEN	4096	/* of a body's beginning */
#define CAPTURE_MAX	65536	/* bytes of a body, whatever a policy wants */
#define QUESTION_LEN	49152	/* JSON that a decider is asked with */
#define CONTENT_LEN	4096	/* of a message of a session, kept */
#define METADATA_LEN	8192	/* of a session, as JSON */
#define MEMBERS_LEN	57344	/* of a pod's record, a piece of it */
#define SHOWN_LEN	2048	/* of a path that anybody is shown */
#define ENVIRONMENT_LEN	8192	/* names of variables, a space between */
#define VARIABLES_LEN	16384	/* NAME=value, a NUL behind each */
#define MOUNTS_MAX	64	/* that clients have made in a sandbox */
#define MOUNTS_LEN	16384	/* that a start asks for: msg_session.h */
#define TEXT_LEN	8192	/* error text that goes back to a client */

/*
 * Exit code of egressd-fence if the kernel cannot redirect: box goes on
 * without redirection when it sees this, and only this.
 */
#define FENCE_LACKING	2

/* NULL for a number that is no role. */
const char	*role_name(uint32_t);

#endif /* ROLE_H */
