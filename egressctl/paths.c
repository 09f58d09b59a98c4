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
