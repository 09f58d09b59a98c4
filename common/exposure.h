/* SPDX-License-Identifier: ISC */

/*
 * Which paths of the host a sandbox may see, for box, which shows them, and
 * for egressctl and the parent, which warn of what is shown.  All names are
 * real ones.
 */

#ifndef EXPOSURE_H
#define EXPOSURE_H

#define BOX_TRUST_DIR	"/etc/egressd-trust"	/* in a sandbox */

/*
 * The system's directories, or links to directories, that each sandbox sees as
 * the host has them, up to a NULL.  Of /etc it sees a part.
 */
extern const char *const exposure_shown[];

/* Whether a path is absolute, each name after one slash and none . or .. */
int		 exposure_is_plain(const char *path);

/* Which of exposure_shown a path is in, or NULL. */
const char	*exposure_shown_in(const char *path);

/* Whether a path is the tree or in it. */
int		 exposure_beneath(const char *path, const char *tree);

/* The rest of a path after the system's tree that it is in, or NULL. */
const char	*exposure_system(const char *path);

/* Why a path must not be shown, even if the caller says so; or NULL. */
const char	*exposure_why_not(const char *path);

/*
 * The same for a working directory that nobody has named.  Homes are those of
 * HOME, of the user database (NULL: none) and, if the command is to be root in
 * there, /root.
 */
const char	*exposure_why_not_cwd(const char *cwd, const char *user_home,
		    int as_root);

/* The place of box's own in a sandbox that a target is in, or NULL. */
const char	*exposure_taken_by(const char *target);

#endif /* EXPOSURE_H */
