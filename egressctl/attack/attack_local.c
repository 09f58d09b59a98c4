/* SPDX-License-Identifier: ISC */

/*
 * egressctl: attempts that stay on this machine.  A Unix socket that can be
 * seen can be connected to, read-only or not.
 */

#include <sys/un.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"

#define STATUS		"{\"id\":1,\"op\":\"status\"}\n"
#define DBUS_PREFIX	"unix:path="

/* Connects to a Unix socket; the descriptor, or -1. */
static int
unix_connect(const char *path)
{
	struct sockaddr_un	sun = { .sun_family = AF_UNIX };
	int			fd;

	if (path == NULL || strlcpy(sun.sun_path, path,
	    sizeof(sun.sun_path)) >= sizeof(sun.sun_path) ||
	    (fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) == -1)
		return -1;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A daemon that takes the connection and hangs up has done its duty. */
enum outcome
probe_control(struct attack *at)
{
	const char	*paths[] = { path_socket, "/run/egressd.sock",
	    "/run/egressd/egressd.sock", getenv(SOCKET_VARIABLE) };
	char		 reply[REPLY_MAX];
	ssize_t		 n;
	size_t		 i;
	int		 fd;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if ((fd = unix_connect(paths[i])) == -1)
			continue;
		(void)!send(fd, STATUS, strlen(STATUS), MSG_NOSIGNAL);
		n = net_read(fd, reply, sizeof(reply));
		close(fd);
		if (n > 0)
			return attack_say(at, OUTCOME_LEAKED, "%s answers",
			    paths[i]);
	}
	return attack_say(at, OUTCOME_BLOCKED, "no socket answers");
}

static const char *
session_bus(void)
{
	const char	*bus = getenv("DBUS_SESSION_BUS_ADDRESS");

	return bus != NULL && strncmp(bus, DBUS_PREFIX,
	    strlen(DBUS_PREFIX)) == 0 ? bus + strlen(DBUS_PREFIX) : NULL;
}

enum outcome
probe_neighbours(struct attack *at)
{
	const char	*paths[] = { "/var/run/docker.sock",
	    "/run/docker.sock", "/run/podman/podman.sock",
	    "/run/containerd/containerd.sock", "/run/crio/crio.sock",
	    "/run/dbus/system_bus_socket", "/run/systemd/private",
	    "/run/egressd-launch.sock",
	    "/tmp/.X11-unix/X0", getenv("SSH_AUTH_SOCK"), session_bus() };
	size_t		 i;
	int		 fd;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if ((fd = unix_connect(paths[i])) == -1)
			continue;
		close(fd);
		return attack_say(at, OUTCOME_LEAKED, "%s takes a connection",
		    paths[i]);
	}
	return attack_say(at, OUTCOME_BLOCKED, "none takes a connection");
}

enum outcome
probe_policy(struct attack *at)
{
	int	fd;

	if ((fd = open(path_conf, O_RDONLY | O_CLOEXEC)) == -1)
		return attack_say(at, OUTCOME_BLOCKED, "%s cannot be read",
		    path_conf);
	close(fd);
	return attack_say(at, OUTCOME_LEAKED, "%s can be read", path_conf);
}
