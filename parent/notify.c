/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: systemd's readiness protocol, which is one datagram
 * to the socket that the environment names.
 */

#include <sys/socket.h>
#include <sys/un.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

static struct sockaddr_un	 notify_addr;
static socklen_t		 notify_len;

/* Keep the address and take it out of the environment. */
void
notify_init(void)
{
	const char	*path = getenv("NOTIFY_SOCKET");
	size_t		 len;

	if (path == NULL)
		return;
	len = strlen(path);
	if ((path[0] == '/' || path[0] == '@') && len > 1 &&
	    len < sizeof(notify_addr.sun_path)) {
		notify_addr.sun_family = AF_UNIX;
		memcpy(notify_addr.sun_path, path, len);
		if (path[0] == '@')
			notify_addr.sun_path[0] = '\0';
		notify_len = offsetof(struct sockaddr_un, sun_path) + len;
	} else
		log_warnx("NOTIFY_SOCKET: \"%s\" is not a socket's name", path);
	unsetenv("NOTIFY_SOCKET");
}

void
notify_send(const char *text)
{
	int	 fd;

	if (notify_len == 0)
		return;
	if ((fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1 ||
	    sendto(fd, text, strlen(text), MSG_NOSIGNAL,
	    (struct sockaddr *)&notify_addr, notify_len) == -1)
		log_warn("systemd notification");
	if (fd != -1)
		close(fd);
}
