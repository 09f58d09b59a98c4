/* SPDX-License-Identifier: ISC */

/*
 * Every message that may pass between two of our processes.
 *
 * The parts, msg_conf.h to msg_podd.h, are one file for each conversation.
 * They consist of rows and lists:
 *
 *	MSG(NAME, fields, senders, receivers, descriptor, states)
 *	FIELDS(fields, U8(kind) STR(session, NAME_LEN) ...)
 *
 * A row says who may send the message to whom, whether a descriptor comes
 * with it, and in which state of the channel it is legal.  The list says what
 * it carries; several rows may share one.  From these two come the enum, the
 * names in logs, struct msg_fields, its encoder and its decoder, the smallest
 * and the largest length, and the checks of whoever receives it; regress/ipc
 * walks them too.  To add a message, add a row and a list.
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
#include "words.h"

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

enum msg_type {
	MSG_NONE,
#define MSG(type, ...) MSG_##type,
#include "msg_rows.h"
	MSG_MAX
};

#define CREDIT_MAX	2048	/* requests open at once, of an engine */

#endif /* MSGTAB_H */
