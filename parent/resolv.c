/* SPDX-License-Identifier: ISC */


/*
 * The parent runs this: the system's name servers, for a configuration that
 * names none.  resolv.conf(5) is the administrator's, or comes from a DHCP
 * server by way of one: what does not parse is left out and said.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define RESOLV_CONF	"/etc/resolv.conf"
#define RESOLV_SIZE	65536

#define BLANKS		" \t\r"

/* A line without its newline; 1 with an address, 0 with none, -1: bad. */
static int
parse_line(char *line, struct addr *ad)
{
	static const char	 keyword[] = "nameserver";
	size_t			 len = sizeof(keyword) - 1;

	line += strspn(line, BLANKS);
	if (strncmp(line, keyword, len) != 0 || line[len] == '\0' ||
	    strchr(BLANKS, line[len]) == NULL)
		return 0;
	line += len;
	line += strspn(line, BLANKS);
	line[strcspn(line, BLANKS "#;")] = '\0';
	return addr_parse(line, ad) == 0 ? 1 : -1;
}

/* Changes buf, which ends in a NUL; returns how many there are. */
size_t
resolv_parse(char *buf, struct addr *servers, size_t max)
{
	char	*line;
	size_t	 n = 0;

	while (n < max && (line = strsep(&buf, "\n")) != NULL) {
		switch (parse_line(line, &servers[n])) {
		case 1:
			n++;
			break;
		case -1:
			log_warnx("%s: a name server that is no address is "
			    "left out", RESOLV_CONF);
			break;
		}
	}
	return n;
}

size_t
resolv_system(struct addr *servers, size_t max)
{
	static char	 buf[RESOLV_SIZE];
	ssize_t		 n;
	size_t		 len = 0, count;
	int		 fd;

	fd = open(RESOLV_CONF, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		log_warn("%s", RESOLV_CONF);
	else {
		while (len < sizeof(buf) - 1 && (n = read(fd, buf + len,
		    sizeof(buf) - 1 - len)) > 0)
			len += (size_t)n;
		close(fd);
	}
	buf[len] = '\0';
	if ((count = resolv_parse(buf, servers, max)) == 0)
		log_warnx("there is no name server: only names under `hosts' "
		    "can be dialled");
	return count;
}
