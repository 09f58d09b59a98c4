/* SPDX-License-Identifier: ISC */

/*
 * The first process of a gated pod's workspace runs this, and so do the hands,
 * which come from outside, each time: what the container's runtime leaves open.
 * Whatever they start has no more rights than they.
 *
 * The fence knows the gate's packets by a mark.  It sees nothing of sockets
 * that are not of the network namespace, and a filter of system calls nothing
 * of what io_uring does.
 */

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/capability.h>

#include <err.h>
#include <stdint.h>
#include <unistd.h>

#include "box.h"

/* Rights that go round the gate. */
static const struct {
	int		 cap;
	const char	*name;
} rights[] = {
	{ CAP_NET_ADMIN,	"NET_ADMIN" },	/* rules, routes, marks */
	{ CAP_NET_RAW,		"NET_RAW" },	/* packets, and marks */
	{ CAP_SYS_ADMIN,	"SYS_ADMIN" },	/* marks, by BPF */
	{ CAP_SYS_MODULE,	"SYS_MODULE" },	/* the kernel itself */
	{ CAP_SYS_RAWIO,	"SYS_RAWIO" },
};

static int
pod_may_have(const struct __user_cap_data_struct *data, int cap)
{
	const struct __user_cap_data_struct *d = &data[CAP_TO_INDEX(cap)];

	return prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 ||
	    ((d->permitted | d->inheritable) & CAP_TO_MASK(cap)) != 0;
}

/* Whatever comes into the container later has the same. */
void
pod_check_rights(void)
{
	struct __user_cap_header_struct	 hdr = {
		_LINUX_CAPABILITY_VERSION_3, 0
	};
	struct __user_cap_data_struct	 data[_LINUX_CAPABILITY_U32S_3];
	size_t				 i;

	if (syscall(SYS_capget, &hdr, data) == -1)
		err(BOX_FAILED, "capabilities");
	for (i = 0; i < NITEMS(rights); i++)
		if (pod_may_have(data, rights[i].cap))
			errx(BOX_FAILED, "this container may have the "
			    "capability %s, and with it go round the gate",
			    rights[i].name);
}

void
pod_confine(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		err(BOX_FAILED, "no new privileges");
	confine_calls();
}
