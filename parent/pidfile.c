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
 * The parent runs this: the pid file stands beside the control socket,
 * /run/egressd.pid for /run/egressd.sock, locked while we live.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <libutil.h>

#include "parent.h"

static struct pidfh	*pid_file;

int
pid_publish(const char *socket, struct why *why)
{
	char	 path[PATH_LEN];
	size_t	 len = strlen(socket);
	int	 n;

	if (len > 5 && strcmp(socket + len - 5, ".sock") == 0)
		len -= 5;
	n = snprintf(path, sizeof(path), "%.*s.pid", (int)len, socket);
	if (n < 0 || (size_t)n >= sizeof(path))
		return why_set(why, "%s: the pid file's name is too long",
		    socket);
	if ((pid_file = pidfile_open(path, 0644, NULL)) == NULL ||
	    pidfile_write(pid_file) == -1)
		return why_set(why, "%s: %s", path, strerror(errno));
	return 0;
}

void
pid_withdraw(void)
{
	if (pid_file != NULL)
		pidfile_remove(pid_file);
}
