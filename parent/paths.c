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
