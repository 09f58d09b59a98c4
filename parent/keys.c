/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: files that hold a secret.  Whoever else can read one
 * has the secret as well, so it is refused as ssh(1) refuses a key.
 */

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exposure.h"
#include "parent.h"

/*
 * Root may let a group read what is root's: so do service managers and
 * clusters that hand out secrets.  A user's own group may be everybody's.
 */
static int
weigh(const struct stat *st, const char *path, bool any_owner, struct why *why)
{
	mode_t	 others = S_IRWXG | S_IRWXO;

	if (!S_ISREG(st->st_mode))
		return why_set(why, "%s: not a regular file", path);
	if (!any_owner && st->st_uid != 0 && st->st_uid != geteuid())
		return why_set(why, "%s: belongs to uid %u, neither root nor "
		    "the user running egressd", path, st->st_uid);
	if (st->st_uid == 0)
		others &= ~(mode_t)S_IRGRP;
	if (st->st_mode & others)
		return why_set(why, "%s: holds a secret, and its mode %04o "
		    "gives others rights; chmod %s", path,
		    (unsigned int)st->st_mode & 07777,
		    st->st_uid == 0 ? "600 or 640" : "600");
	return 0;
}

static int
key_open_of(const struct conf_pos *pos, const char *path, uid_t *owner,
    struct why *why)
{
	struct why	 what;
	struct stat	 st;
	int		 fd;

	if ((fd = place_read(path, &what)) != -1) {
		if (fstat(fd, &st) == -1)
			why_set(&what, "%s: %s", path, strerror(errno));
		else if (weigh(&st, path, owner != NULL, &what) == 0) {
			if (owner != NULL)
				*owner = st.st_uid;
			return fd;
		}
		close(fd);
	}
	return why_set(why, "%s:%u: %s", pos->p_file, pos->p_line, what.text);
}

/* A secret to read; -1, and why begins with where the file is named. */
int
key_open(const struct conf_pos *pos, const char *path, struct why *why)
{
	return key_open_of(pos, path, NULL, why);
}

/* The same, of whoever it is: the caller lends that user no rights. */
int
key_open_any(const struct conf_pos *pos, const char *path, uid_t *owner,
    struct why *why)
{
	return key_open_of(pos, path, owner, why);
}

struct warning {
	const struct config	*wn_conf;
	bool			 wn_modes;
};

static bool
is_kubeconfig(const struct config *conf, const char *path)
{
	const struct conf_cluster	*cl;

	TAILQ_FOREACH(cl, &conf->cf_clusters, cl_entry)
		if (cl->cl_kubeconfig == path)
			return true;
	return false;
}

static int
warn_of(const struct conf_pos *pos, const char *path, void *arg)
{
	struct warning	*wn = arg;
	struct stat	 st;
	struct why	 what;
	const char	*tree;
	char		 real[PATH_MAX];

	if (path == NULL)
		return 0;
	if (wn->wn_modes && stat(path, &st) == 0 && weigh(&st, path,
	    is_kubeconfig(wn->wn_conf, path), &what) == -1)
		log_warnx("%s:%u: %s", pos->p_file, pos->p_line, what.text);
	if (realpath(path, real) != NULL &&
	    (tree = exposure_shown_in(real)) != NULL)
		log_warnx("%s:%u: %s: holds a secret, and every sandbox is "
		    "shown %s", pos->p_file, pos->p_line, path, tree);
	return 0;
}

/* modes: warn of files that would be refused, for a check refuses none. */
void
keys_warn(const struct config *conf, bool modes)
{
	struct warning	 wn = { .wn_conf = conf, .wn_modes = modes };

	conf_secrets(conf, warn_of, &wn);
}
