/* SPDX-License-Identifier: ISC */

/*
 * A local sandbox and its engine, on the channel that whoever made the sandbox
 * has made.
 */

/* What listens, or reports packets, in the sandbox: one of listen_kind. */
MSG(BOX_LISTEN, box_listen, R_BOX, R_ENGINE, FD_MUST, S_OPEN)
FIELDS(box_listen, U8(kind))

/* redirect: every TCP port arrives, not only the well-known ones. */
MSG(BOX_READY, box_ready, R_BOX, R_ENGINE, FD_NEVER, S_OPEN)
FIELDS(box_ready, U8(redirect))

/* A sealed memory file: one of trust_kind. */
MSG(BOX_TRUST, box_trust, R_ENGINE, R_BOX, FD_MUST, S_OPEN)
FIELDS(box_trust, U8(kind))

MSG(BOX_GO, box_go, R_ENGINE, R_BOX, FD_NEVER, S_OPEN)
FIELDS(box_go, STR(session, SESSION_LEN))
