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
 * Which paths of the host a sandbox may see, for box, which shows them, and
 * for egressctl and the parent, which warn of what is shown.  All names are real ones.
 */

#ifndef EXPOSURE_H
#define EXPOSURE_H

/*
 * The system's directories, or links to directories, that each sandbox sees as
 * the host has them, up to a NULL.  Of /etc it sees a part.
 */
extern const char *const exposure_shown[];

/* Which of these it is in, or NULL. */
const char	*exposure_shown_in(const char *path);

/* Whether it is the tree or in it. */
int		 exposure_beneath(const char *path, const char *tree);

/* What follows the name of the system's tree that it is in, or NULL. */
const char	*exposure_system(const char *path);

/* Why it must not be shown by anybody's word, or NULL. */
const char	*exposure_why_not(const char *path);

/*
 * The same for a working directory that nobody has named.  Homes are those of
 * HOME, of the user database (NULL: none) and, if the command is to be root in
 * there, /root.
 */
const char	*exposure_why_not_cwd(const char *cwd, const char *user_home,
		    int as_root);

#endif /* EXPOSURE_H */
