/* SPDX-License-Identifier: ISC */

/*
 * The sandbox's first process runs this before there is a command: the
 * session's CA, in the places where programs look for one.  Most have the
 * system's bundle, or a variable that names a file (env.c).  Browsers have
 * bundles of their own and policies in /etc:
 *
 *	Chromium and its kin read a directory of files; the last one wins
 *	Firefox reads one file; ours takes the place of the host's
 *
 * Others on NSS have a database in the home (root_nss.c).
 * All traffic ends at the gate, so what a host's policy says of roots has no
 * meaning in there.
 */

#include <sys/mount.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "exposure.h"

#define BUNDLE		BOX_TRUST_DIR "/bundle.pem"
#define CA		BOX_TRUST_DIR "/ca.pem"
#define BEGIN		"-----BEGIN CERTIFICATE-----\n"
#define END		"-----END CERTIFICATE-----"
#define BASE64		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" \
			"0123456789+/="

/* Where systems keep the bundle: ours is mounted over what there is. */
const char *const root_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ca-certificates/extracted/tls-ca-bundle.pem",
	"/usr/lib/ssl/cert.pem",
	"/usr/share/pki/ca-trust-legacy/ca-bundle.legacy.default.crt",
	NULL
};

static const char *const trust_names[TRUST_KIND_MAX] = {
	[TRUST_CA] = CA,
	[TRUST_BUNDLE] = BUNDLE,
	[TRUST_JAVA] = BOX_TRUST_DIR "/ca.jks",
	[TRUST_NSS_CERTS] = BOX_TRUST_DIR "/cert9.db",
	[TRUST_NSS_KEYS] = BOX_TRUST_DIR "/key4.db",
};

#define CHROMIUM(dir)	{ dir "/policies/managed/zz-egressd.json", NULL }

/* Each of Chromium's kin has a directory of its own; apt cannot become _apt. */
const struct etc_added etc_added[ETC_ADDED] = {
	CHROMIUM("chromium"),
	CHROMIUM("chromium-browser"),
	CHROMIUM("opt/chrome"),
	CHROMIUM("opt/chrome_for_testing"),
	CHROMIUM("opt/edge"),
	CHROMIUM("brave"),
	{ "firefox/policies/policies.json",
	    "{\"policies\":{\"Certificates\":{\"Install\":[\"" CA "\"]}}}\n" },
	{ "apt/apt.conf.d/zz-egressd", "APT::Sandbox::User \"root\";\n" },
};

/* Write the trust files; returns the text of the CA's. */
static char *
trust_write(const struct box *bx)
{
	struct stat	 st;
	char		*data, *ca = NULL;
	size_t		 i;

	mnt_mkdir(BOX_TRUST_DIR, 0755);
	for (i = 0; i < TRUST_KIND_MAX; i++) {
		/* Sealed, so that its size and content stay what they are. */
		if (fstat(bx->bx_trust[i], &st) == -1 ||
		    (data = calloc(1, st.st_size + 1)) == NULL ||
		    pread(bx->bx_trust[i], data, st.st_size, 0) != st.st_size)
			err(BOX_FAILED, "trust file %zu", i);
		mnt_write(trust_names[i], data, st.st_size);
		if (i == TRUST_CA)
			ca = data;
		else
			free(data);
		close(bx->bx_trust[i]);
	}
	return ca;
}

static void
trust_bundles(void)
{
	struct stat	 st, ours;
	char		*real;
	size_t		 i;
	int		 fd;

	mnt_mkdir("/etc/ssl/certs", 0755);
	if (symlink(BUNDLE, "/etc/ssl/cert.pem") == -1 && errno != EEXIST &&
	    errno != EROFS)
		err(BOX_FAILED, "sandbox: /etc/ssl/cert.pem");
	if ((fd = open(BUNDLE, O_PATH | O_CLOEXEC)) == -1 ||
	    fstat(fd, &ours) == -1)
		err(BOX_FAILED, "sandbox: " BUNDLE);
	for (i = 0; root_bundles[i] != NULL; i++) {
		if ((real = realpath(root_bundles[i], NULL)) == NULL)
			continue;
		if (stat(real, &st) == 0 && (st.st_dev != ours.st_dev ||
		    st.st_ino != ours.st_ino))
			mnt_bind_fd(fd, real, MNT_SYSTEM);
		free(real);
	}
	close(fd);
}

/* Certificates as Chromium wants them: DER in base64, the body of PEM. */
static char *
trust_chromium(const char *pem)
{
	const char	*end, *sep = "";
	char		*text;
	size_t		 len;
	FILE		*f;

	if ((f = open_memstream(&text, &len)) == NULL)
		err(BOX_FAILED, NULL);
	fputs("{\"CACertificates\":[", f);
	while ((pem = strstr(pem, BEGIN)) != NULL &&
	    (end = strstr(pem, END)) != NULL) {
		fprintf(f, "%s\"", sep);
		for (pem += strlen(BEGIN); pem < end; pem++)
			if (strchr(BASE64, *pem) != NULL)
				putc(*pem, f);
		putc('"', f);
		sep = ",";
	}
	fputs("]}\n", f);
	if (fclose(f) == EOF)
		err(BOX_FAILED, NULL);
	return text;
}

/*
 * 1 if the directories on the way are ours, or not there yet.  A link of the
 * host's leads to what may not be written, or nowhere: then nothing is added.
 */
static int
trust_may_add(const char *path)
{
	struct stat	 st;
	char		 dir[PATH_MAX], *p;

	strlcpy(dir, path, sizeof(dir));
	while ((p = strrchr(dir, '/')) != dir) {
		*p = '\0';
		if (lstat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
			return 0;
	}
	return 1;
}

static void
trust_add(const struct etc_added *ea, const char *chromium)
{
	const char	*text = ea->ea_text == NULL ? chromium : ea->ea_text;
	char		 path[PATH_MAX], *p;

	snprintf(path, sizeof(path), "/etc/%s", ea->ea_name);
	if (!trust_may_add(path))
		return;
	p = strrchr(path, '/');
	*p = '\0';
	mnt_mkdir(path, 0755);
	*p = '/';
	mnt_write(path, text, strlen(text));
}

void
root_trust(const struct box *bx)
{
	char	*ca, *chromium;
	size_t	 i;

	ca = trust_write(bx);
	trust_bundles();
	chromium = trust_chromium(ca);
	for (i = 0; i < ETC_ADDED; i++)
		trust_add(&etc_added[i], chromium);
	free(chromium);
	free(ca);
}
