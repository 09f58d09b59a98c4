/* SPDX-License-Identifier: ISC */

/*
 * The whole table, for whoever has defined MSG, or FIELDS and the kinds of
 * field, as what rows and lists are to become; they are undefined again at
 * the end.  Included once for each purpose, so there is no guard.
 */

#ifndef MSG
#define MSG(type, fields, from, to, fd, states)
#endif
#ifndef FIELDS
#define FIELDS(fields, ...)
#endif

/* Lists that several parts share. */
FIELDS(empty,)
FIELDS(cookie, U32(cookie))
FIELDS(generation, U64(generation))
FIELDS(log_level, U8(level))

#include "msg_conf.h"
#include "msg_control.h"
#include "msg_operator.h"
#include "msg_session.h"
#include "msg_flow.h"
#include "msg_record.h"
#include "msg_decide.h"
#include "msg_open.h"
#include "msg_box.h"
#include "msg_pod.h"
#include "msg_podd.h"

#undef MSG
#undef FIELDS
#undef U8
#undef U16
#undef U32
#undef U64
#undef STR
#undef BYTES
