/* SPDX-License-Identifier: ISC */

/*
 * deciderd and k8sd run this: the files of an object of their slice, which
 * the parent has opened and which are read in confinement.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "log.h"
#include "secret.h"

#define FILE_LEN_MAX	(256 * 1024)

static const char *const file_names[FILE_KIND_MAX] = {
	[FILE_KEY] = "key",
	[FILE_PROMPT] = "prompt",
	[FILE_TRUST] = "trust",
	[FILE_KUBECONFIG] = "kubeconfig",
	[FILE_TOKEN] = "token",
	[FILE_CERTIFICATE] = "certificate",
	[FILE_PASSWORD] = "password",
	[FILE_MERGE] = "manifest merge",
};

/* The bytes of a file as they are, with a NUL behind; NULL and errno. */
char *
child_read_fd(int fd, size_t max, size_t *len)
{
	char	*text;
	ssize_t	 n;

	*len = 0;
	/* A byte more than permitted tells of a file that is longer. */
	if ((text = malloc(max + 2)) == NULL)
		return NULL;
	while (*len <= max && (n = read(fd, text + *len,
	    max + 1 - *len)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			goto fail;
		*len += (size_t)n;
	}
	text[*len] = '\0';
	if (*len > 0 && *len <= max)
		return text;
	errno = *len == 0 ? ENODATA : EFBIG;
fail:
	free(text);
	return NULL;
}

static void
refuse_file(char *refusal, size_t len, uint8_t what, const char *owner)
{
	snprintf(refusal, len, "%s file of \"%s\": %s", file_names[what],
	    owner, errno == ENODATA ? "it is empty" : strerror(errno));
}

int
child_read_file(struct ipc *ip, const union msg *m, struct secret **files,
    const char *owner, char *refusal, size_t len)
{
	uint8_t	 what = m->conf_file.what;
	int	 fd;

	if (what >= FILE_KIND_MAX || files[what] != NULL)
		return ipc_bad(ip, "file %u of \"%s\"", what, owner);
	if ((fd = ipc_take_fd(ip)) == -1)
		errno = EMFILE;
	else
		files[what] = secret_read_fd(fd, FILE_LEN_MAX);
	if (files[what] == NULL)
		refuse_file(refusal, len, what, owner);
	if (fd != -1)
		close(fd);
	return 0;
}

int
child_read_text(struct ipc *ip, const union msg *m, struct text *tx,
    size_t max, const char *owner, char *refusal, size_t len)
{
	uint8_t	 what = m->conf_file.what;
	int	 fd;

	if (what >= FILE_KIND_MAX || tx->tx_data != NULL)
		return ipc_bad(ip, "file %u of \"%s\"", what, owner);
	if ((fd = ipc_take_fd(ip)) == -1)
		errno = EMFILE;
	else
		tx->tx_data = child_read_fd(fd, max, &tx->tx_len);
	if (tx->tx_data == NULL)
		refuse_file(refusal, len, what, owner);
	if (fd != -1)
		close(fd);
	return 0;
}
