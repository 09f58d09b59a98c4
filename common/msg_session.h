/* SPDX-License-Identifier: ISC */

/*
 * The life of a session and of its engine.
 */

/*
 * A session for a sandbox whose box is at the other end of the descriptor.
 * number is controld's, and no other session has it meanwhile.  told: whoever
 * made the sandbox has said which variables its command has; the environment
 * is their names.
 */
MSG(SESSION_ASK, session_ask, R_CONTROLD, R_PARENT, FD_MUST, S_WORK)
FIELDS(session_ask, U32(number) STR(session, SESSION_LEN) STR(policy, NAME_LEN)
    U8(told) STR(environment, ENVIRONMENT_LEN))

/*
 * A session whose sandbox is the parent's to make.  sandbox is a block of the
 * configuration, "" the one that is built in.  The descriptor is the client's
 * connection: the parent sees for itself whose it is.  cwd is what the client
 * has named, or "", and the variables come on top of the block's.  Of mounts
 * each is r or w, a path outside, NUL, a path inside, NUL.
 */
MSG(SANDBOX_ASK, sandbox_ask, R_CONTROLD, R_PARENT, FD_MUST, S_WORK)
FIELDS(sandbox_ask, U32(number) STR(session, SESSION_LEN) STR(policy, NAME_LEN)
    STR(sandbox, NAME_LEN) STR(cwd, PATH_LEN)
    BYTES(variables, VARIABLES_LEN) BYTES(mounts, MOUNTS_LEN))

/* A client's connection, which the sandbox is to serve from now on. */
MSG(SESSION_ATTACH, session_attach, R_CONTROLD, R_PARENT, FD_MUST, S_WORK)
FIELDS(session_attach, U32(number))

/*
 * A path outside that the sandbox is to have at one inside.  The descriptor is
 * the client's connection: what it names is opened with its own rights.
 */
MSG(SESSION_MOUNT, session_mount, R_CONTROLD, R_PARENT, FD_MUST, S_WORK)
FIELDS(session_mount, U32(cookie) U32(number) STR(source, PATH_LEN)
    STR(target, PATH_LEN) U8(write))

/* It is there, or why it is not: one of mount_result. */
MSG(SESSION_MOUNTED, session_mounted, R_PARENT, R_CONTROLD, FD_NEVER, S_WORK)
FIELDS(session_mounted, U32(cookie) U8(result) STR(text, PATH_LEN))

/*
 * The session is to end: one of session_cause.  text: of CAUSE_SANDBOX, which
 * is for pods only, what became of it.
 */
MSG(SESSION_STOP, session_stop, R_CONTROLD, R_PARENT, FD_NEVER, S_WORK)
FIELDS(session_stop, U32(number) U8(cause) STR(text, PATH_LEN))

/*
 * Its engine runs, and the sandbox that the parent makes serves; or neither
 * ever will.  refused: the sandbox is not for that client.  cgroup: a control
 * group keeps its limits.
 */
MSG(SESSION_DONE, session_done, R_PARENT, R_CONTROLD, FD_NEVER, S_WORK)
FIELDS(session_done, U32(number) U8(ok) U8(refused) U8(cause) U8(cgroup)
    STR(text, PATH_LEN))

/*
 * The same session, for policyd: before the channel to its engine, and when
 * the engine has ended, or is about to for a cause.  policyd tells controld
 * why that was.  Without an engine the session runs from the one message to
 * the other.
 */
MSG(SESSION_OPEN, session_open, R_PARENT, R_POLICYD, FD_NEVER, S_WORK)
FIELDS(session_open, U32(number) STR(session, SESSION_LEN) STR(policy, NAME_LEN)
    U8(engine) U8(told) STR(environment, ENVIRONMENT_LEN))

MSG(SESSION_CLOSE, session_close, R_PARENT, R_POLICYD, FD_NEVER, S_WORK)
FIELDS(session_close, U32(number) U8(cause) STR(text, PATH_LEN))

MSG(SESSION_ENDED, session_ended, R_POLICYD, R_CONTROLD, FD_NEVER, S_OPEN)
FIELDS(session_ended, U32(number) STR(reason, PATH_LEN))

MSG(ENGINE_HELLO, generation, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN)

/* The CA: fingerprint in hexadecimal, end in seconds since the epoch. */
MSG(ENGINE_CA, engine_ca, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(engine_ca, STR(sha256, FINGERPRINT_LEN) U64(not_after))

MSG(ENGINE_BYE, empty, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN)

/* The certificate of a session's CA, as PEM and as a Java key store. */
MSG(ENGINE_TRUST, engine_trust, R_ENGINE, R_PARENT, FD_NEVER, S_COMMIT)
FIELDS(engine_trust, STR(ca, 4096) BYTES(java, 4096))

/* The files are where clients look for them. */
MSG(TRUST_WRITTEN, empty, R_PARENT, R_ENGINE, FD_NEVER, S_COMMIT | S_RUN)

MSG(ENGINE_BAD, engine_bad, R_POLICYD | R_RECORDER | R_DIALER, R_PARENT,
    FD_NEVER, S_WORK)
FIELDS(engine_bad, U32(instance) STR(why, PATH_LEN))
