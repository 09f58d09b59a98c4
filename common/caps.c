/* SPDX-License-Identifier: ISC */

/*
 * Every child runs this, and box: without capabilities before it reads what
 * somebody else wrote.  The parent looks which it has.
 */

#ifdef __linux__

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/capability.h>

#include <string.h>
#include <unistd.h>

#include "caps.h"

/* A right that cannot be asked about will be missed when it is used. */
uint64_t
caps_lacking(uint64_t wanted)
{
	struct __user_cap_header_struct	 head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct	 have[_LINUX_CAPABILITY_U32S_3];

	memset(have, 0, sizeof(have));
	if (syscall(SYS_capget, &head, have) == -1)
		return 0;
	return wanted & ~((uint64_t)have[1].effective << 32 |
	    have[0].effective);
}

const char *
caps_bound(void)
{
	int	 cap;

	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != -1; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == -1)
			return "capability bounding set";
	return NULL;
}

const char *
caps_drop(void)
{
	struct __user_cap_header_struct	 head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct	 none[_LINUX_CAPABILITY_U32S_3];

	memset(none, 0, sizeof(none));
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1)
		return "ambient capabilities";
	if (syscall(SYS_capset, &head, none) == -1)
		return "capabilities";
	return NULL;
}

#endif /* __linux__ */
