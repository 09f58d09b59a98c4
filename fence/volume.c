/* SPDX-License-Identifier: ISC */

/*
 * egressd-fence runs this in a pod, after the rules: what the volumes that the
 * gate and the workspace share have to be like.  Nobody else runs yet, or, if
 * the pod's network was lost and is new, gate and workspace still do; so
 * whatever is there is left as it is.  There is no capability here to do it
 * with: the volumes are the user's own, root's.
 */

#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fence.h"

#define TRUST_SESSION	"pod"		/* the session of a pod's gate */
#define BOX		"egressd-box"

/* Where a container mounts one of these, a missing one becomes a directory. */
static const char *const trust_files[] = { "ca.pem", "bundle.pem", "ca.jks" };

/* A directory of ours, and of nobody else's to write to. */
static int
volume_open(int at, const char *path)
{
	int	 fd;

	if ((fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC)) == -1 || fchmod(fd, 0755) == -1)
		err(1, "%s", path);
	return fd;
}

/* The kubelet makes new volumes open to everybody; egressd refuses those. */
void
volume_close(const char *path)
{
	close(volume_open(AT_FDCWD, path));
}

static void
volume_file(int dir, const char *name)
{
	struct stat	 sb;
	int		 fd;

	if (unlinkat(dir, name, AT_REMOVEDIR) == -1 && errno != ENOENT &&
	    errno != ENOTDIR)
		err(1, "%s", name);
	if ((fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW |
	    O_NONBLOCK | O_CLOEXEC, 0644)) == -1 || fstat(fd, &sb) == -1 ||
	    fchmod(fd, 0644) == -1)
		err(1, "%s", name);
	if (!S_ISREG(sb.st_mode))
		errx(1, "%s: not a file", name);
	close(fd);
}

void
volume_trust(const char *path)
{
	size_t	 i;
	int	 volume, dir;

	volume = volume_open(AT_FDCWD, path);
	if (mkdirat(volume, TRUST_SESSION, 0755) == -1 && errno != EEXIST)
		err(1, "%s/%s", path, TRUST_SESSION);
	dir = volume_open(volume, TRUST_SESSION);
	for (i = 0; i < NITEMS(trust_files); i++)
		volume_file(dir, trust_files[i]);
	close(dir);
	close(volume);
}

/* box knows how to copy itself; it lives beside us. */
void
volume_install(const char *path)
{
	char	 box[PATH_MAX], *dir, name[] = BOX, verb[] = "install";
	char	*argv[] = { name, verb, NULL, NULL };
	ssize_t	 n;

	if ((n = readlink("/proc/self/exe", box, sizeof(box) - 1)) == -1)
		err(1, "/proc/self/exe");
	box[n] = '\0';
	if ((dir = strrchr(box, '/')) == NULL)
		errx(1, "%s: no directory", box);
	*dir = '\0';
	if (strlcat(box, "/" BOX, sizeof(box)) >= sizeof(box) ||
	    (argv[2] = strdup(path)) == NULL)
		err(1, "%s", box);
	execv(box, argv);
	err(1, "%s", box);
}
