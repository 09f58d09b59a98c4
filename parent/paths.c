/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: where things are.  The GNUmakefile gives the values of
 * the installed program, which are fixed when it is linked; the one under
 * build/ looks beside itself.
 */

#include "parent.h"
#include "tree.h"

const char	*path_libexec = PATH_LIBEXEC;
const char	*path_run = PATH_RUN;
const char	 path_conf[] = PATH_CONF;
const char	 path_socket[] = PATH_SOCKET;

void
paths_init(void)
{
#ifdef PATH_TREE
	path_libexec = tree_path("libexec", path_libexec);
	path_run = tree_path("run", path_run);
#endif
}
