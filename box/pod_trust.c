/* SPDX-License-Identifier: ISC */

/*
 * The first process of a gated pod's workspace runs this, if it is root: the
 * gate's CA, in the places where programs of the image look that ignore the
 * variables of the pod.  The gate writes the CA to a volume, and another one
 * when it, or the session's engine, had to start again.
 *
 * The image, and later the workspace, may have made anything of these places.
 * We are as much root as the workspace, so there is nothing to gain; but
 * nothing must keep us waiting.
 */

#include <sys/inotify.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

#define CA		"ca.pem"
#define CA_MAX		(64 * 1024)
#define BUNDLE_MAX	(16 * 1024 * 1024)
#define BEGIN		"-----BEGIN CERTIFICATE-----"
#define FROM		"# The gate of this pod (egressd), from here\n"
#define TO		"# to here\n"

/* Where update-ca-certificates(8) finds it when it makes a new bundle. */
#define LOCAL_DIR	"/usr/local/share/ca-certificates"
#define LOCAL_NAME	"egressd.crt"

/* If there is no bundle at all. */
#define BUNDLE_DIR	"/etc/ssl/certs"
#define BUNDLE_NAME	"ca-certificates.crt"

#define PART		".egressd.new"

static const char	*directory;
static int		 changes = -1;

/* A file's text, or NULL.  Not a pipe, not without end, and with no NUL. */
static char *
trust_read(int at, const char *path, off_t max, struct stat *sb)
{
	char	*text = NULL;
	ssize_t	 n;
	int	 fd;

	if ((fd = openat(at, path, O_RDONLY | O_NONBLOCK | O_NOCTTY |
	    O_CLOEXEC)) == -1)
		return NULL;
	if (fstat(fd, sb) == 0 && S_ISREG(sb->st_mode) && sb->st_size <= max &&
	    (text = malloc(sb->st_size + 1)) != NULL) {
		if ((n = pread(fd, text, sb->st_size, 0)) == -1)
			n = 0;
		text[n] = '\0';
		if (strlen(text) != (size_t)sb->st_size) {
			free(text);
			text = NULL;
		}
	}
	close(fd);
	return text;
}

static int
trust_write(int fd, const struct stat *sb, const char *text)
{
	size_t	 len = strlen(text), done;
	ssize_t	 n;

	for (done = 0; done < len; done += n)
		if ((n = write(fd, text + done, len - done)) == -1)
			return -1;
	return fchmod(fd, sb->st_mode & 07777);
}

/*
 * Readers find the old text or the new one.  A place that is a mount of its
 * own, or cannot be written to, was not meant for us.
 */
static void
trust_put(const char *dir, const char *name, const struct stat *sb,
    const char *text)
{
	int	 at, fd, failed;

	if ((at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1) {
		warn("%s", dir);
		return;
	}
	(void)unlinkat(at, PART, 0);
	if ((fd = openat(at, PART, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0600)) == -1) {
		if (errno != EROFS)
			warn("%s/%s", dir, name);
		close(at);
		return;
	}
	failed = trust_write(fd, sb, text) == -1 ||
	    renameat(at, PART, at, name) == -1;
	if (failed && errno != EBUSY)
		warn("%s/%s", dir, name);
	if (failed)
		(void)unlinkat(at, PART, 0);
	close(fd);
	close(at);
}

static void
trust_put_new(const char *dir, const char *name, const char *text)
{
	struct stat	 sb = { .st_mode = 0644 };
	char		 path[PATH_MAX], *p;

	strlcpy(path, dir, sizeof(path));
	for (p = strchr(path + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
	if (mkdir(path, 0755) == -1 && errno == EROFS)
		return;
	trust_put(dir, name, &sb, text);
}

/* Cut out the certificates that we added before. */
static void
trust_cut(char *text)
{
	char	*from, *to;

	if ((from = strstr(text, FROM)) != NULL &&
	    (to = strstr(from, TO)) != NULL) {
		to += strlen(TO);
		memmove(from, to, strlen(to) + 1);
	}
}

/* A file may have several names: its own is the one that is replaced. */
static int
trust_append(const char *path, const char *ca)
{
	struct stat	 sb;
	char		 real[PATH_MAX], *old, *all, *name;
	const char	*end;

	if (realpath(path, real) == NULL ||
	    (old = trust_read(AT_FDCWD, real, BUNDLE_MAX, &sb)) == NULL)
		return 0;
	if (strstr(old, ca) == NULL) {
		trust_cut(old);
		end = *old == '\0' || old[strlen(old) - 1] == '\n' ? "" : "\n";
		if (asprintf(&all, "%s%s" FROM "%s" TO, old, end, ca) == -1)
			err(BOX_FAILED, NULL);
		name = strrchr(real, '/');
		*name++ = '\0';
		trust_put(*real == '\0' ? "/" : real, name, &sb, all);
		free(all);
	}
	free(old);
	return 1;
}

static void
trust_spread(void)
{
	struct stat	 sb;
	char		 path[PATH_MAX], *ca, *block;
	int		 found = 0;
	size_t		 i;

	snprintf(path, sizeof(path), "%s/" CA, directory);
	if ((ca = trust_read(AT_FDCWD, path, CA_MAX, &sb)) == NULL)
		return;
	/* Empty until the gate has one, and cut short while it writes. */
	if (strstr(ca, BEGIN) != NULL && ca[strlen(ca) - 1] == '\n') {
		for (i = 0; root_bundles[i] != NULL; i++)
			found |= trust_append(root_bundles[i], ca);
		if (asprintf(&block, FROM "%s" TO, ca) == -1)
			err(BOX_FAILED, NULL);
		if (!found)
			trust_put_new(BUNDLE_DIR, BUNDLE_NAME, block);
		trust_put_new(LOCAL_DIR, LOCAL_NAME, ca);
		free(block);
	}
	free(ca);
}

/*
 * All pods of a node have their watches from one purse of its root's: without
 * one the CA of now is all that there is.
 */
static void
trust_watch(void)
{
	if ((changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) == -1 ||
	    inotify_add_watch(changes, directory, IN_CLOSE_WRITE |
	    IN_MOVED_TO) == -1 ||
	    fcntl(changes, F_SETOWN, getpid()) == -1 ||
	    fcntl(changes, F_SETFL, O_NONBLOCK | O_ASYNC) == -1)
		warn("%s: another CA will not be seen", directory);
}

/* SIGIO says that there may be changes, and waits while it is blocked. */
void
pod_trust_begin(const char *dir)
{
	if (geteuid() != 0)
		return;
	directory = dir;
	trust_watch();
	trust_spread();
}

void
pod_trust_changed(void)
{
	char	 buf[4096] __attribute__((__aligned__(8)));
	const struct inotify_event *ev;
	ssize_t	 n, at;
	int	 ours = 0;

	if (changes == -1)
		return;
	while ((n = read(changes, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += sizeof(*ev) + ev->len) {
			ev = (const void *)(buf + at);
			ours |= (ev->mask & IN_Q_OVERFLOW) != 0 ||
			    (ev->len > 0 && strcmp(ev->name, CA) == 0);
		}
	if (ours)
		trust_spread();
}
