/* SPDX-License-Identifier: ISC */

/*
 * egressctl: where things are.  The GNUmakefile gives the values of the
 * installed program, which are fixed when it is linked; the one under build/
 * looks beside itself.
 */

#include "egressctl.h"
#include "tree.h"

const char	*path_egressd = PATH_EGRESSD;
const char	*path_box = PATH_LIBEXEC "/egressd-box";
const char	 path_conf[] = PATH_CONF;
const char	 path_socket[] = PATH_SOCKET;
const char	 path_profiles[] = PATH_PROFILES;

void
paths_init(void)
{
#ifdef PATH_TREE
	path_egressd = tree_path("egressd", path_egressd);
	path_box = tree_path("libexec/egressd-box", path_box);
#endif
}
