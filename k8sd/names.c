/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: names of pods, from the ids of sessions, which a client
 * chose.  The part of an id that a DNS label can hold is for people; what
 * tells ids apart is the hash.
 */

#include <sha2.h>
#include <stdio.h>
#include <string.h>

#include "names.h"

#define READABLE_LEN	40

static char	 installation[LABEL_LEN + 1] = "egressd";

void
names_digest(const char *text, char out[DIGEST_LEN + 1])
{
	SHA256Data((const uint8_t *)text, strlen(text), out);
}

void
names_hash(const char *id, char out[HASH_LEN + 1])
{
	char	 digest[DIGEST_LEN + 1];

	names_digest(id, digest);
	strlcpy(out, digest, HASH_LEN + 1);
}

/* In ASCII whatever the locale. */
static char
readable(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
}

void
names_pod(const char *id, char out[POD_NAME_LEN + 1])
{
	char	 hash[HASH_LEN + 1], part[READABLE_LEN + 1];
	size_t	 i, skip = 0;

	while (id[skip] != '\0' && readable(id[skip]) == '-')
		skip++;
	for (i = 0; i < READABLE_LEN && id[skip + i] != '\0'; i++)
		part[i] = readable(id[skip + i]);
	while (i > 0 && part[i - 1] == '-')
		i--;
	part[i] = '\0';
	names_hash(id, hash);
	snprintf(out, POD_NAME_LEN + 1, "egressd-%s%s%s", part,
	    part[0] != '\0' ? "-" : "", hash);
}

/* ---- whose ---- */

/* What is no value of a label becomes one, or stays what it was. */
void
pods_installation(const char *name)
{
	char	 text[LABEL_LEN + 1];
	size_t	 i, n = 0;

	for (i = 0; name[i] != '\0' && n < LABEL_LEN; i++)
		if (readable(name[i]) != '-' || n > 0)
			text[n++] = readable(name[i]);
	while (n > 0 && text[n - 1] == '-')
		n--;
	text[n] = '\0';
	if (n > 0)
		strlcpy(installation, text, sizeof(installation));
}

const char *
names_installation(void)
{
	return installation;
}

const char *
names_selector(void)
{
	static char	 text[sizeof(MARK_MANAGED) + sizeof(MARK_MANAGER) +
	    sizeof(MARK_OWNER) + sizeof(installation) + 16];

	snprintf(text, sizeof(text), "app.kubernetes.io%%2Fmanaged-by%%3D"
	    "egressd%%2Cegressd.io%%2Fowner%%3D%s", installation);
	return text;
}

int
names_escape(const char *text, char *out, size_t size)
{
	static const char	 plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	size_t			 n = 0;

	for (; *text != '\0'; text++) {
		if (size - n < 4)
			return 0;
		if (strchr(plain, *text) != NULL)
			out[n++] = *text;
		else
			n += (size_t)snprintf(out + n, size - n, "%%%02X",
			    (unsigned char)*text);
	}
	out[n] = '\0';
	return 1;
}
