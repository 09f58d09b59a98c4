/* SPDX-License-Identifier: ISC */

/*
 * egressd-box and children of the parent run this; see kernelfs.h.
 */

#include <sys/vfs.h>

#include <linux/magic.h>

#include <stddef.h>

#include "kernelfs.h"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

/* Headers in use do not name them all. */
#define MAGIC_CONFIGFS		0x62656570
#define MAGIC_FUSECTL		0x65735543
#define MAGIC_MQUEUE		0x19800202
#define MAGIC_PIDFS		0x50494446
#define MAGIC_RESCTRL		0x07655821
#define MAGIC_RPC_PIPEFS	0x67596969

static const struct {
	unsigned long	 magic;
	const char	*name;
} kernel_systems[] = {
	{ ANON_INODE_FS_MAGIC,	"an anonymous object" },
	{ BINFMTFS_MAGIC,	"binfmt_misc" },
	{ BPF_FS_MAGIC,		"bpf" },
	{ CGROUP2_SUPER_MAGIC,	"cgroup2" },
	{ CGROUP_SUPER_MAGIC,	"cgroup" },
	{ DEBUGFS_MAGIC,	"debugfs" },
	{ DEVPTS_SUPER_MAGIC,	"devpts" },
	{ EFIVARFS_MAGIC,	"efivarfs" },
	{ MAGIC_CONFIGFS,	"configfs" },
	{ MAGIC_FUSECTL,	"fusectl" },
	{ MAGIC_MQUEUE,		"mqueue" },
	{ MAGIC_PIDFS,		"pidfs" },
	{ MAGIC_RESCTRL,	"resctrl" },
	{ MAGIC_RPC_PIPEFS,	"rpc_pipefs" },
	{ NSFS_MAGIC,		"nsfs" },
	{ PROC_SUPER_MAGIC,	"proc" },
	{ SECURITYFS_MAGIC,	"securityfs" },
	{ SELINUX_MAGIC,	"selinuxfs" },
	{ SMACK_MAGIC,		"smackfs" },
	{ SYSFS_MAGIC,		"sysfs" },
	{ TRACEFS_MAGIC,	"tracefs" },
};

const char *
kernelfs_name(int fd)
{
	struct statfs	 sf;
	size_t		 i;

	if (fstatfs(fd, &sf) == -1)
		return NULL;
	for (i = 0; i < NITEMS(kernel_systems); i++)
		if ((unsigned long)sf.f_type == kernel_systems[i].magic)
			return kernel_systems[i].name;
	return NULL;
}
