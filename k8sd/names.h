/* SPDX-License-Identifier: ISC */

/*
 * k8sd: what pods are called and by which marks they are found again.
 */

#ifndef NAMES_H
#define NAMES_H

#include "pod.h"

#define MARK_MANAGED	"app.kubernetes.io/managed-by"
#define MARK_MANAGER	"egressd"
#define MARK_SESSION	"egressd.io/session"	/* hash of the id */
#define MARK_OWNER	"egressd.io/owner"	/* installation */

#define NOTE_PREFIX	"egressd.io/"		/* of all that is ours */
#define NOTE_ID		"egressd.io/session-id"	/* the whole id */
#define NOTE_SANDBOX	"egressd.io/sandbox"
#define NOTE_UID	"egressd.io/owner-uid"	/* who started it */
#define NOTE_POLICY	"egressd.io/policy"
#define NOTE_CONF	"egressd.io/configuration" /* hash of the gate's */
#define NOTE_HEARTBEAT	"egressd.io/heartbeat"
#define NOTE_CREATED	"egressd.io/created-at"
#define NOTE_FOLLOWER	"egressd.io/follower"	/* name of a Lease */
#define NOTE_TERM	"egressd.io/term"
#define NOTE_SPEC	"egressd.io/spec"	/* hash of what was asked */

#define HASH_LEN	10
#define DIGEST_LEN	64
#define LABEL_LEN	63

/* SHA-256 in hexadecimal digits. */
void	 names_digest(const char *, char [DIGEST_LEN + 1]);

/* Ten of them, of an id. */
void	 names_hash(const char *, char [HASH_LEN + 1]);

/* egressd-<what is left of the id>-<hash> */
void	 names_pod(const char *, char [POD_NAME_LEN + 1]);

const char	*names_installation(void);

/* The label selector of all that is ours, ready for a query. */
const char	*names_selector(void);

/* A value of a query; false if it does not fit. */
int	 names_escape(const char *, char *, size_t);

#endif /* NAMES_H */
