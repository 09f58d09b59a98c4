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
 * egressctl: secrets that a configuration names, before a sandbox and a daemon
 * of our own are made.  Both have the caller's rights, so what the sandbox is
 * shown its command can read.
 */

#include <err.h>
#include <limits.h>
#include <stdlib.h>

#include "conf.h"
#include "egressctl.h"

static int
visit(const struct conf_pos *pos, const char *path, void *arg)
{
	int	(**is_seen)(const char *) = arg;
	char	real[PATH_MAX];

	if (path == NULL || realpath(path, real) == NULL || !(*is_seen)(real))
		return 0;
	warnx("%s:%u: %s: the sandbox would see this secret; keep it "
	    "elsewhere", pos->p_file, pos->p_line, path);
	return 1;
}

/* What else is wrong with the configuration, the daemon tells. */
int
secrets_check(const char *path, int (*is_seen)(const char *))
{
	struct conf_errors	 errors = { .ce_count = 0 };
	struct config		*conf = conf_parse(path, &errors);
	int			 seen;

	conf_errors_free(&errors);
	if (conf == NULL)
		return 0;
	seen = conf_secrets(conf, visit, &is_seen);
	conf_free(conf);
	return seen ? -1 : 0;
}
