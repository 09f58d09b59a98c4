/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: the capabilities that a daemon of root cannot do
 * without.  A container leaves root only some of them, and what fails for want
 * of one fails late and far from its cause.  So all that are lacking are named
 * at once, before anything is started.
 */

#include <linux/capability.h>

#include <stdint.h>
#include <string.h>

#include "caps.h"
#include "parent.h"

#define BIT(cap)	(UINT64_C(1) << (cap))

static const struct {
	int		 cap;
	const char	*name;
} needs[] = {
	{ CAP_KILL,		"KILL" },	/* children of other users */
	{ CAP_SETGID,		"SETGID" },
	{ CAP_SETUID,		"SETUID" },
	{ CAP_SETPCAP,		"SETPCAP" },	/* their bounding set */
	{ CAP_SYS_CHROOT,	"SYS_CHROOT" },
};

/* Whether marks and groups fail for want of a capability. */
bool
needs_net_admin(void)
{
	return caps_lacking(BIT(CAP_NET_ADMIN)) != 0;
}

/* Marks and groups, which need NET_ADMIN, are tried as they are opened. */
int
needs_check(struct why *why)
{
	char		 list[128] = "";
	uint64_t	 wanted = 0, lacking;
	size_t		 i;

	if (!d.d_privileged)
		return 0;
	for (i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		wanted |= BIT(needs[i].cap);
	if ((lacking = caps_lacking(wanted)) == 0)
		return 0;
	for (i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (lacking & BIT(needs[i].cap)) {
			strlcat(list, " ", sizeof(list));
			strlcat(list, needs[i].name, sizeof(list));
		}
	return why_set(why, "a daemon of root needs these capabilities and "
	    "lacks them:%s", list);
}
