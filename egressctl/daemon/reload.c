/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the daemon's configuration, loaded again.
 */

#include "egressctl.h"
#include "show.h"

static void
reload_put(const cJSON *answer)
{
	fputs("configuration loaded, generation ", stdout);
	json_put(stdout, json_get(answer, "generation"));
	putchar('\n');
}

const struct command command_reload = {
	.co_name = "reload",
	.co_synopsis = "reload",
	.co_help = "load the configuration file again",
	.co_run = exchange_run,
	.co_op = "reload",
	.co_show = reload_put,
};
