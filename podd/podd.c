/* SPDX-License-Identifier: ISC */

/*
 * egressd-podd: the process that speaks with the gates in pods.  No
 * configuration concerns it: controld says which channels there are.
 */

#include "podd.h"

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
};

int
main(int argc, char *argv[])
{
	static const struct child podd = {
		.ch_role = ROLE_PODD,
		.ch_sandbox = &podd_sandbox,
		.ch_handlers = parent_handlers,
		.ch_channel = podd_channel,
	};

	return child_main(&podd, argc, argv);
}
