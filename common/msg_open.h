/* SPDX-License-Identifier: ISC */

/*
 * Descriptors that the parent opens for a child.  The kind is one of open_kind,
 * the object a name from the child's own slice of the configuration, the cookie
 * a number of the child's until it is done.
 */

MSG(OPEN_ASK, open_ask, R_DECIDERD | R_K8SD, R_PARENT, FD_NEVER, S_WORK)
FIELDS(open_ask, U32(cookie) U8(kind) STR(object, NAME_LEN))

MSG(OPENED, cookie, R_PARENT, R_DECIDERD | R_K8SD, FD_MUST, S_WORK)

/* why is empty for a program that has ended with exit code 0. */
MSG(OPEN_FAILED, open_ended, R_PARENT, R_DECIDERD | R_K8SD, FD_NEVER, S_WORK)
FIELDS(open_ended, U32(cookie) STR(why, PATH_LEN))

MSG(OPEN_ENDED, open_ended, R_PARENT, R_DECIDERD | R_K8SD, FD_NEVER, S_WORK)

/* The child has closed it, or no longer waits; a program is killed. */
MSG(OPEN_DONE, cookie, R_DECIDERD | R_K8SD, R_PARENT, FD_NEVER, S_WORK)
