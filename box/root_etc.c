/* SPDX-License-Identifier: ISC */

/*
 * The sandbox's first process runs this before there is a command: /etc.
 *
 * A directory of our own with each entry of the host's /etc, copied or mounted
 * read-only, so that an entry can be left out, and others be put in: names
 * resolve at the gate, and the session's CA is trusted.
 *
 * Left out is what others may not read on the host, and what the table below
 * names.  The first rule matters when the caller is root, or in a group that
 * may read it: only root can leave its supplementary groups outside.
 */

#include <sys/mount.h>
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

#define COPY_MAX	(32 * 1024)
#define PASSWD_NEW	"/etc/.passwd"
#define PASSWD_MAX	(1024 * 1024)
#define DEPTH_MAX	8

/* Names in /etc that stay outside, as fnmatch(3) patterns. */
static const struct {
	const char	*name;
	const char	*why;
} etc_hidden[] = {
	{ "shadow*",		"password hashes" },
	{ "gshadow*",		"password hashes" },
	{ "security/opasswd",	"password hashes" },
	{ "sudoers*",		"who may become root on the host" },
	{ "polkit-1",		"who may do what on the host" },
	{ "ssh",		"host keys" },
	{ "ssl/private",	"keys" },
	{ "pki/private",	"keys" },
	{ "letsencrypt",	"keys" },
	{ "krb5.keytab",	"keys" },
	{ "wireguard",		"keys" },
	{ "openvpn",		"keys" },
	{ "ipsec*",		"keys" },
	{ "swanctl",		"keys" },
	{ "ppp",		"passwords of links" },
	{ "NetworkManager",	"passwords of links" },
	{ "netplan",		"passwords of links" },
	{ "wpa_supplicant",	"passwords of links" },
	{ "docker",		"credentials of the container engine" },
	{ "containers",		"credentials of the container engine" },
	{ "containerd",		"credentials of the container engine" },
	{ "kubernetes",		"credentials of the cluster" },
	{ "rancher",		"credentials of the cluster" },
	{ "egressd*",		"our own configuration and policy" },
	{ "apt/auth.conf*",	"passwords of repositories" },
	/* Ours, made below. */
	{ "hosts",		"names resolve at the gate" },
	{ "nsswitch.conf",	"names resolve at the gate" },
	{ "resolv.conf",	"names resolve at the gate" },
	{ "ssl/cert.pem",	"the session's CA is trusted" },
};

static const char	resolv_conf[] =
	"# the gate answers, whichever server is asked\n"
	"nameserver " BOX_ADDRESS4 "\n"
	"options ndots:0\n";

static const char	nsswitch_conf[] =
	"passwd: files\n"
	"group: files\n"
	"shadow: files\n"
	"gshadow: files\n"
	"hosts: files dns\n"
	"networks: files\n"
	"protocols: files\n"
	"services: files\n"
	"ethers: files\n"
	"rpc: files\n"
	"netgroup: files\n";

static int
etc_is_hidden(const char *name)
{
	size_t	 i;

	for (i = 0; i < NITEMS(etc_hidden); i++)
		if (fnmatch(etc_hidden[i].name, name, FNM_PATHNAME) == 0)
			return 1;
	for (i = 0; i < ETC_ADDED; i++)
		if (strcmp(etc_added[i].ea_name, name) == 0)
			return 1;
	return 0;
}

/* 1 if an entry somewhere below is hidden or added: made like /etc itself. */
static int
etc_is_opened(const char *name)
{
	size_t	 i, len = strlen(name);

	for (i = 0; i < NITEMS(etc_hidden); i++)
		if (strncmp(etc_hidden[i].name, name, len) == 0 &&
		    etc_hidden[i].name[len] == '/')
			return 1;
	for (i = 0; i < ETC_ADDED; i++)
		if (strncmp(etc_added[i].ea_name, name, len) == 0 &&
		    etc_added[i].ea_name[len] == '/')
			return 1;
	return 0;
}

/* Copy a small file, cheaper than a mount; 0 if it is not small. */
static int
etc_copy(int dir, const char *file, const char *path)
{
	char	 data[COPY_MAX];
	ssize_t	 n = -1;
	int	 fd;

	if ((fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) != -1) {
		n = read(fd, data, sizeof(data));
		close(fd);
	}
	if (n == -1 || n == sizeof(data))
		return 0;
	mnt_write(path, data, n);
	return 1;
}

static void	 etc_farm(const struct mnt *, const char *);

static void
etc_entry(const struct mnt *mn, int dir, const char *file, const char *name)
{
	struct stat	 st;
	char		 path[PATH_MAX], link[PATH_MAX];
	ssize_t		 n;

	if (snprintf(path, sizeof(path), "/etc/%s", name) >= (int)sizeof(path))
		return;
	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return;
	if (S_ISLNK(st.st_mode)) {
		if ((n = readlinkat(dir, file, link, sizeof(link) - 1)) == -1)
			return;
		link[n] = '\0';
		if (symlink(link, path) == -1)
			err(BOX_FAILED, "sandbox: %s", path);
		return;
	}
	if (root_is_secret(&st) || (!S_ISDIR(st.st_mode) &&
	    !S_ISREG(st.st_mode)))
		return;
	if (S_ISDIR(st.st_mode) && etc_is_opened(name)) {
		mnt_mkdir(path, 0755);
		etc_farm(mn, name);
	} else if (S_ISDIR(st.st_mode) || !etc_copy(dir, file, path))
		mnt_bind(mn, path, path, MNT_SYSTEM);
}

/* All of the host's /etc, or of a directory in it. */
static void
etc_farm(const struct mnt *mn, const char *sub)
{
	char		 path[PATH_MAX], name[PATH_MAX];
	struct dirent	*de;
	DIR		*dir;
	int		 fd;

	snprintf(path, sizeof(path), "etc/%s", sub);
	if ((fd = openat(mn->mn_host, path, O_RDONLY | O_DIRECTORY |
	    O_NOFOLLOW | O_CLOEXEC)) == -1 || (dir = fdopendir(fd)) == NULL)
		err(BOX_FAILED, "/%s", path);
	while ((de = readdir(dir)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", sub,
		    *sub == '\0' ? "" : "/", de->d_name);
		if (!etc_is_hidden(name))
			etc_entry(mn, dirfd(dir), de->d_name, name);
	}
	closedir(dir);
}

/* 1 if our rights, which will be the command's, are enough to enter or read. */
static int
etc_is_open(int dir, const char *name)
{
	return faccessat(dir, name, R_OK, 0) == 0 ||
	    faccessat(dir, name, X_OK, 0) == 0;
}

/* Deeper down there may be more that only root or a group should read. */
static void
etc_hide_secrets(const char *path, int depth)
{
	char		 name[PATH_MAX];
	struct dirent	*de;
	struct stat	 st;
	DIR		*dir;

	if (depth > DEPTH_MAX || (dir = opendir(path)) == NULL) {
		mnt_hide(path);
		return;
	}
	while ((de = readdir(dir)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0 || de->d_type == DT_LNK ||
		    fstatat(dirfd(dir), de->d_name, &st,
		    AT_SYMLINK_NOFOLLOW) == -1)
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, de->d_name);
		if (root_is_secret(&st)) {
			if (etc_is_open(dirfd(dir), de->d_name))
				mnt_hide(name);
		} else if (S_ISDIR(st.st_mode))
			etc_hide_secrets(name, depth + 1);
	}
	closedir(dir);
}

static void
etc_hosts(void)
{
	char	 name[HOST_NAME_MAX + 1], text[512];
	int	 len;

	if (gethostname(name, sizeof(name)) == -1)
		strlcpy(name, "sandbox", sizeof(name));
	name[sizeof(name) - 1] = '\0';
	len = snprintf(text, sizeof(text), "127.0.0.1 localhost\n"
	    "::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s\n", name);
	mnt_write("/etc/hosts", text, len);
}

/* 1 if a line of passwd(5) has this user. */
static int
etc_knows_user(char *text, uid_t uid)
{
	char	*line, *field;
	int	 i;

	while ((line = strsep(&text, "\n")) != NULL) {
		for (i = 0; i < 3; i++)
			if ((field = strsep(&line, ":")) == NULL)
				break;
		if (i == 3 && *field != '\0' && strtoul(field, NULL, 10) == uid)
			return 1;
	}
	return 0;
}

/* A user from a directory service gets a line: nobody can be asked here. */
static void
etc_user(const struct box *bx)
{
	const char	*name = getenv("USER");
	char		*text, line[512];
	ssize_t		 n;
	size_t		 len;
	int		 fd;

	if (bx->bx_root || name == NULL || strpbrk(name, ":\n") != NULL)
		return;
	if ((text = malloc(PASSWD_MAX + sizeof(line))) == NULL)
		err(BOX_FAILED, NULL);
	if ((fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC)) == -1 ||
	    (n = read(fd, text, PASSWD_MAX)) == -1)
		n = 0;
	if (fd != -1)
		close(fd);
	text[n] = '\0';
	len = snprintf(line, sizeof(line), "%s:x:%u:%u::%s:/bin/sh\n", name,
	    bx->bx_uid, bx->bx_gid, bx->bx_home == NULL ? "/" : bx->bx_home);
	if (len >= sizeof(line) || n == PASSWD_MAX)
		goto done;
	memcpy(text + n, line, len);
	mnt_write(PASSWD_NEW, text, n + len);
	text[n] = '\0';
	if (!etc_knows_user(text, bx->bx_uid)) {
		if ((fd = open(PASSWD_NEW, O_PATH | O_CLOEXEC)) == -1)
			err(BOX_FAILED, "sandbox: " PASSWD_NEW);
		mnt_bind_fd(fd, "/etc/passwd", MNT_SYSTEM);
		close(fd);
	}
	unlink(PASSWD_NEW);
done:
	free(text);
}

void
root_etc(const struct mnt *mn, const struct box *bx)
{
	mnt_tmpfs("/etc", "755");
	etc_farm(mn, "");
	etc_hide_secrets("/etc", 0);
	etc_user(bx);
	etc_hosts();
	mnt_write("/etc/resolv.conf", resolv_conf, sizeof(resolv_conf) - 1);
	mnt_write("/etc/nsswitch.conf", nsswitch_conf,
	    sizeof(nsswitch_conf) - 1);
	root_trust(bx);
}
