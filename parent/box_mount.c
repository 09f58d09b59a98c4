/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: what a sandbox of ours has to do with mounts that
 * clients ask for.  Whoever asks may be a client or a controld that was taken
 * over; what may be mounted, and how, is mount.c's.
 */

#include <sys/socket.h>

#include "box.h"

/*
 * Whether clients may have something mounted in a sandbox.  Where systemd's
 * launcher starts sandboxes, our own children are forbidden what it takes.
 */
bool
box_is_mountable(const struct conf_sandbox *sb)
{
	return sb != NULL && !TAILQ_EMPTY(&sb->sb_below) &&
	    d.d_launcher == NULL;
}

/* For mounts that come later, if any may; -1 and errno. */
int
box_offer(struct box *bo, const struct conf_sandbox *sb)
{
	int	 sv[2];

	if (!box_is_mountable(sb))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	bo->bo_namespace = sv[0];
	bo->bo_spec.bs_namespace = sv[1];
	return 0;
}

/*
 * Mount something for a client; sources and targets are names yet.  The answer
 * comes in any case.
 */
static void
box_mount(struct box *bo, struct mount_spec *ms)
{
	ms->ms_box = bo;
	ms->ms_session = bo->bo_session->se_name;
	ms->ms_sandbox = bo->bo_spec.bs_sandbox;
	ms->ms_namespace = bo->bo_namespace;
	ms->ms_owner = &bo->bo_spec;
	bo->bo_mounts++;
	mount_begin(ms);
}

/* NULL if it can be, or why not.  controld may have been taken over. */
const char *
box_mount_later(struct box *bo, struct mount_spec *ms)
{
	if (ms->ms_client.pe_uid != 0 &&
	    ms->ms_client.pe_uid != bo->bo_spec.bs_uid)
		return "the session is another user's";
	if (!bo->bo_serves || bo->bo_pid == 0 || bo->bo_within_ms != 0)
		return "the sandbox does not serve";
	if (bo->bo_namespace == -1)
		return "its sandbox was started as one that takes no mounts";
	if (bo->bo_mounts == MOUNTS_MAX)
		return "it has as many mounts as it may have";
	box_mount(bo, ms);
	return NULL;
}

/* What the start asked for comes first, one after the other. */
void
box_begins(struct box *bo)
{
	struct msg_bytes	 list = {
		bo->bo_spec.bs_mounts, bo->bo_spec.bs_mountslen
	};
	struct mount_spec	 ms = { .ms_client = bo->bo_spec.bs_client };

	if (mount_next(&list, &bo->bo_mounted, &ms)) {
		box_mount(bo, &ms);
		return;
	}
	bo->bo_serves = true;
	event_del(&bo->bo_overdue);
	session_box_serves(bo->bo_session);
}

/* One of the start's is there; NULL, or why it is not. */
void
box_mounted(struct box *bo, const char *why)
{
	if (bo->bo_session == NULL)
		return;
	if (why == NULL)
		box_begins(bo);
	else
		session_box_gone(bo->bo_session, why);
}
