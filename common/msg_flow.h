/* SPDX-License-Identifier: ISC */

/*
 * A request, or a connection that is not looked into: verdict, grant and the
 * connected socket.
 */

/*
 * May this be?  With dial other than 0, an allowed request is also granted a
 * connection, which the dialer hands over under that number.  again is an
 * earlier question about the same, or 0: it was allowed without a connection,
 * and now turns out to need one.  length is that of the body, UINT64_MAX if
 * nobody knows it yet.
 */
MSG(ASK, ask, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN)
FIELDS(ask, U32(id) U32(dial) U32(again) U8(about) U8(scheme) U16(port)
    U64(length) STR(host, HOST_LEN) STR(method, METHOD_LEN) STR(path, URL_LEN))

MSG(ASK_DROP, cookie, R_ENGINE, R_POLICYD, FD_NEVER, S_OPEN)

/*
 * scope says how far the verdict reaches, rule is UINT32_MAX for the default,
 * body is the limit in bytes.  decider is who was asked, if anybody was, or
 * whose answer was kept; its reason is told of an allow, too.
 */
MSG(VERDICT, verdict, R_POLICYD, R_ENGINE, FD_NEVER, S_OPEN)
FIELDS(verdict, U32(id) U8(verdict) U8(scope) U8(rule_kind) U32(rule)
    U64(generation) U64(body) STR(reason, PATH_LEN) STR(decider, NAME_LEN)
    U8(cached) U32(waited_ms))

/* nets: prefixes that the rule opens, separated by spaces. */
MSG(GRANT, grant, R_POLICYD, R_DIALER, FD_NEVER, S_OPEN)
FIELDS(grant, U32(instance) U32(dial) U16(port) U8(to_private)
    STR(host, HOST_LEN) STR(nets, PATH_LEN))

MSG(DIALED, dialed, R_DIALER, R_ENGINE, FD_MUST, S_OPEN)
FIELDS(dialed, U32(dial) STR(address, ADDRESS_LEN))

MSG(DIAL_FAILED, dial_failed, R_DIALER, R_ENGINE, FD_NEVER, S_OPEN)
FIELDS(dial_failed, U32(dial) U8(failure) STR(why, PATH_LEN))

MSG(SOCKET_ASK, socket_kind, R_DIALER, R_PARENT, FD_NEVER, S_WORK)
FIELDS(socket_kind, U8(kind))

MSG(SOCKET, socket_kind, R_PARENT, R_DIALER, FD_MUST, S_WORK)
