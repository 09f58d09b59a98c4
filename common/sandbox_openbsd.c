/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

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
