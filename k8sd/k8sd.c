/* SPDX-License-Identifier: ISC */

/*
 * egressd-k8sd: the process that speaks to API servers.
 */

#include "https/https.h"
#include "k8sd.h"
#include "pod.h"

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	OPENING_HANDLERS,
	[MSG_CONF_CLUSTER] = k8sd_parent_conf_cluster,
	[MSG_CONF_FILE] = k8sd_parent_conf_file,
	[MSG_CONF_POD] = k8sd_parent_conf_pod,
	[MSG_CONF_POD_TEXT] = k8sd_parent_conf_pod_text,
	[MSG_CONF_RESOLVER] = k8sd_parent_conf_resolver,
	[MSG_POD_CONF] = k8sd_parent_pod_conf,
};

static int
k8sd_channel(const struct msg_channel *mc, int fd)
{
	if (mc->peer != ROLE_CONTROLD)
		return -1;
	control_open(fd);
	return 0;
}

static void
k8sd_warm(void)
{
	https_warm();
	pods_warm();
}

int
main(int argc, char *argv[])
{
	static const struct child k8sd = {
		.ch_role = ROLE_K8SD,
		.ch_sandbox = &k8sd_sandbox,
		.ch_handlers = parent_handlers,
		.ch_warm = k8sd_warm,
		.ch_channel = k8sd_channel,
		.ch_begin = slice_begin,
		.ch_weigh = slice_weigh,
		.ch_commit = slice_commit,
		.ch_abort = slice_abort,
	};

	return child_main(&k8sd, argc, argv);
}
