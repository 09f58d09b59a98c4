/* SPDX-License-Identifier: ISC */

/*
 * Mounts into a sandbox that runs.  Its first process runs this, before there
 * is a command: from then on what is mounted in the outer mount namespace comes
 * to be in the commands' one as well, and is locked there.  The outer namespace
 * itself waits, as a descriptor, in a channel of which the parent never reads;
 * so the first process can give up its rights.  Who mounts something there is
 * a child of the parent (parent/mount_move.c).
 */

#include <sys/mount.h>

#include <err.h>
#include <fcntl.h>
#include <unistd.h>

#include "box.h"
#include "fdpass.h"

void
mounts_offer(const struct box *bx)
{
	struct mount_attr	 ma = { .propagation = MS_SHARED };
	int			 fd;

	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &ma, sizeof(ma)) == -1)
		err(BOX_FAILED, "sandbox: shared mounts");
	if ((fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "sandbox: mount namespace");
	if (fdpass_send(bx->bx_mounts, 'M', fd, 0) == -1)
		err(BOX_FAILED, "sandbox: mount namespace");
	close(fd);
	close(bx->bx_mounts);
}
