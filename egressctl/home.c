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
 * egressctl: whose home a sandbox is to be kept out of.  HOME is the caller's
 * word, and may be unset, "/" or another's; the user database is asked here,
 * because box is linked statically and cannot.
 */

#include <err.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egressctl.h"

#define ENTRY_MAX	(1024 * 1024)

/* As getpwuid_r(3) has them, for a user without an entry. */
static int
is_no_entry(int error)
{
	return error == 0 || error == ENOENT || error == ESRCH ||
	    error == EBADF || error == EPERM;
}

/* The calling user's by the database, or NULL if it knows of none. */
const char *
user_home(void)
{
	struct passwd	 pw, *found = NULL;
	char		*buf = NULL, *home = NULL;
	size_t		 size = 1024;
	int		 error = ERANGE;

	while (error == ERANGE && size <= ENTRY_MAX) {
		free(buf);
		size *= 2;
		if ((buf = malloc(size)) == NULL)
			err(EXIT_NO_RUN, NULL);
		error = getpwuid_r(geteuid(), &pw, buf, size, &found);
	}
	if (found == NULL && !is_no_entry(error))
		errc(EXIT_NO_RUN, error, "user database: uid %u", geteuid());
	if (found != NULL && *pw.pw_dir == '/' &&
	    (home = strdup(pw.pw_dir)) == NULL)
		err(EXIT_NO_RUN, NULL);
	free(buf);
	return home;
}
