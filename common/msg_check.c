/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this, box too, which has no event loop.  The peer is
 * trusted with nothing: a message is taken only if the table allows it from
 * that peer, to this process, in this state, at that length, with or without
 * a descriptor, and if it decodes to the last byte.
 */

#include <stdarg.h>
#include <stdio.h>

#include "msg.h"

static int	 bad(const struct msg_way *, const char *, ...)
		    __attribute__((__format__(__printf__, 2, 3)));

static int
bad(const struct msg_way *mw, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(mw->mw_why, mw->mw_size, fmt, ap);
	va_end(ap);
	return -1;
}

/*
 * IMSG_FD_LOST, a descriptor for which the kernel had no slot, is no fault of
 * the sender: the message is taken, and its handler finds no descriptor.
 */
static int
check(const struct msg_way *mw, const struct msg_desc *md,
    const struct imsg *im)
{
	size_t	 len = ibuf_size(&im->data);

	if (!(md->md_from & (1U << mw->mw_from)))
		return bad(mw, "%s is not for %s to send", md->md_name,
		    role_name(mw->mw_from));
	if (!(md->md_to & (1U << mw->mw_to)))
		return bad(mw, "%s is not for %s to receive", md->md_name,
		    role_name(mw->mw_to));
	if (!(md->md_states & mw->mw_state))
		return bad(mw, "%s in state 0x%02x, legal in 0x%02x",
		    md->md_name, mw->mw_state, md->md_states);
	if (len < md->md_min || len > md->md_max)
		return bad(mw, "%s of %zu bytes, want %zu to %zu",
		    md->md_name, len, md->md_min, md->md_max);
	if (md->md_fd == FD_NEVER && im->fd != IMSG_FD_NONE)
		return bad(mw, "%s with a descriptor", md->md_name);
	if (md->md_fd == FD_MUST && im->fd == IMSG_FD_NONE)
		return bad(mw, "%s without a descriptor", md->md_name);
	return 0;
}

const struct msg_desc *
msg_take(const struct msg_way *mw, struct imsg *im, union msg *m)
{
	const struct msg_desc	*md;

	if ((md = msg_find(im->type)) == NULL) {
		bad(mw, "unknown message %u", im->type);
		return NULL;
	}
	if (check(mw, md, im) == -1)
		return NULL;
	if (md->md_get(&im->data, m) == -1) {
		bad(mw, "%s does not decode", md->md_name);
		return NULL;
	}
	return md;
}
