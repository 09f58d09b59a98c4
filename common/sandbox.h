/* SPDX-License-Identifier: ISC */

/*
 * Confinement.  A role names the system calls that it needs, in groups with
 * a reason each; everything else is denied.  sandbox_linux.c makes seccomp
 * and Landlock rules of it, sandbox_openbsd.c a pledge.
 */

#ifndef SANDBOX_H
#define SANDBOX_H

#include <sys/types.h>
#include <sys/resource.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __linux__
#include <seccomp.h>
#else
#define SCMP_SYS(x)	0
#endif

struct sandbox_group {
	const char	*sg_why;
	const int	*sg_calls;	/* up to SANDBOX_END */
};

/* A call that is permitted with these values of its arguments only. */
struct sandbox_narrow {
	const char	*sn_why;
	int		 sn_call;
	unsigned int	 sn_count;
	struct {
		unsigned int	 arg;
		uint64_t	 value;
	}		 sn_args[2];
};

struct sandbox {
	const struct sandbox_group	*sb_groups;	/* to a NULL reason */
	const struct sandbox_narrow	*sb_narrow;	/* likewise, or NULL */
	const struct sandbox		*sb_library;	/* its calls too */
	bool				 sb_connect;	/* TCP, to anywhere */
	const char			*sb_pledge;	/* OpenBSD */
	rlim_t				 sb_files;	/* descriptors */
};

#define SANDBOX_END	(-1000000)
#define SANDBOX_CALLS(...)	(const int []){ __VA_ARGS__, SANDBOX_END }

struct identity {
	uid_t		 id_uid;
	gid_t		 id_gid;
	const char	*id_root;	/* chroot here */
};

/* What of it the kernel does not have, or NULL. */
const char	*sandbox_missing(void);

/* All of these end the process when they cannot do what they say. */
void	 sandbox_drop(const struct identity *);
void	 sandbox_limit(const struct sandbox *);
void	 sandbox_enter(const struct sandbox *);
void	 landlock_enter(const struct sandbox *);
void	 sandbox_trap(void);

#endif /* SANDBOX_H */
