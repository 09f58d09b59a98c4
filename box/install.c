/* SPDX-License-Identifier: ISC */

/*
 * A pod's init container runs this, from our image, which has no shell: box
 * copies itself to a volume that the workspace then runs it from.  Nothing of
 * the workspace runs yet; but the volume may hold the copy of an earlier time,
 * which may be in use.
 */

#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "box.h"

#define INSTALL_NAME	"egressd-box"
#define INSTALL_PART	".egressd-box.new"
#define INSTALL_PIECE	(1024 * 1024)

static void
install_copy(int from, int to)
{
	static char	 buf[INSTALL_PIECE];
	ssize_t		 n, done, put;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (done = 0; done < n; done += put)
			if ((put = write(to, buf + done,
			    (size_t)(n - done))) == -1)
				err(BOX_FAILED, "%s", INSTALL_PART);
	if (n == -1)
		err(BOX_FAILED, "/proc/self/exe");
}

/* A volume is everybody's to write to until its owner says otherwise. */
static int
install_directory(const char *path)
{
	struct stat	 sb;
	int		 dir;

	if (mkdir(path, 0755) == -1 && errno != EEXIST)
		err(BOX_FAILED, "%s", path);
	if ((dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1 ||
	    fstat(dir, &sb) == -1)
		err(BOX_FAILED, "%s", path);
	if (sb.st_uid == geteuid() && fchmod(dir, 0755) == -1)
		err(BOX_FAILED, "%s", path);
	return dir;
}

/* The name leads to a whole program at all times: a copy, then a rename. */
int
install_main(int argc, char **argv)
{
	int	 dir, from, to;

	if (argc != 2) {
		fprintf(stderr, "usage: egressd-box install directory\n");
		return BOX_FAILED;
	}
	if ((from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "/proc/self/exe");
	dir = install_directory(argv[1]);
	if (unlinkat(dir, INSTALL_PART, 0) == -1 && errno != ENOENT)
		err(BOX_FAILED, "%s/%s", argv[1], INSTALL_PART);
	if ((to = openat(dir, INSTALL_PART, O_WRONLY | O_CREAT | O_EXCL |
	    O_NOFOLLOW | O_CLOEXEC, 0755)) == -1)
		err(BOX_FAILED, "%s/%s", argv[1], INSTALL_PART);
	install_copy(from, to);
	if (fchmod(to, 0755) == -1 || close(to) == -1 ||
	    renameat(dir, INSTALL_PART, dir, INSTALL_NAME) == -1)
		err(BOX_FAILED, "%s/%s", argv[1], INSTALL_NAME);
	return 0;
}
