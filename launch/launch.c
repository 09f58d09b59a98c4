/* SPDX-License-Identifier: ISC */

/*
 * egressd-launch starts a sandbox, or a program of one, elsewhere than in the
 * service that the daemon runs in: what that service forbids to the daemon
 * would hold in the sandbox, too.
 *
 *	egressd.service	    |		egressd-launch@N.service
 *	 parent		    |
 *	   egressd-launch --+-- socket -- egressd-launch
 *	   (ask.c)	    |		  (serve.c)
 *			    |		     box, ...
 *
 * The parent's child stands in for the process: it ends when that does and as
 * that did, passes SIGTERM on, and what it was started for ends with it.
 * Both ends are root, or one user, and trust each other; nobody else can
 * connect.
 */

#include <unistd.h>

#include "packet.h"

int
main(int argc, char *argv[])
{
	return argc == 1 ? serve_run(STDIN_FILENO) : ask_run(argc, argv);
}
