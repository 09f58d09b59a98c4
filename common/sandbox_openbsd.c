/* SPDX-License-Identifier: ISC */

/*
 * Every child runs this on OpenBSD: chroot, the uid change, pledge.
 */

#ifdef __OpenBSD__

#include <grp.h>
#include <unistd.h>

#include "log.h"
#include "sandbox.h"

void
sandbox_drop(const struct identity *id)
{
	if (id->id_uid == 0)
		return;
	if (chroot(id->id_root) == -1 || chdir("/") == -1)
		fatal("chroot %s", id->id_root);
	if (setgroups(1, &id->id_gid) == -1 ||
	    setresgid(id->id_gid, id->id_gid, id->id_gid) == -1 ||
	    setresuid(id->id_uid, id->id_uid, id->id_uid) == -1)
		fatal("uid %u gid %u: cannot change to it", id->id_uid,
		    id->id_gid);
}

void
sandbox_limit(const struct sandbox *sb)
{
	struct rlimit	 rl = { sb->sb_files, sb->sb_files };

	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("limit of descriptors");
}

const char *
sandbox_missing(void)
{
	return NULL;
}

/* No path is unveiled: a started child opens nothing. */
void
sandbox_enter(const struct sandbox *sb)
{
	if (unveil(NULL, NULL) == -1)
		fatal("unveil");
	if (pledge(sb->sb_pledge, NULL) == -1)
		fatal("pledge %s", sb->sb_pledge);
}

#endif /* __OpenBSD__ */
