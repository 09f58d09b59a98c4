/* SPDX-License-Identifier: ISC */

/*
 * The parent, its children and egressd-box run this; see fdpass.h.
 */

#include <sys/socket.h>
#include <sys/uio.h>

#include <string.h>

#include "fdpass.h"

union control {
	struct cmsghdr	 hdr;
	char		 buf[CMSG_SPACE(sizeof(int))];
};

int
fdpass_send(int channel, char byte, int fd, int flags)
{
	struct iovec	 iov = { &byte, 1 };
	union control	 control = { .buf = { 0 } };
	struct msghdr	 msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)
	};

	control.hdr.cmsg_level = SOL_SOCKET;
	control.hdr.cmsg_type = SCM_RIGHTS;
	control.hdr.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.hdr), &fd, sizeof(fd));
	return (int)sendmsg(channel, &msg, flags | MSG_NOSIGNAL);
}

int
fdpass_take(int channel, int flags)
{
	char			 byte;
	struct iovec		 iov = { &byte, 1 };
	union control		 control;
	struct msghdr		 msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)
	};
	const struct cmsghdr	*cm;
	int			 fd;

	if (recvmsg(channel, &msg, flags | MSG_CMSG_CLOEXEC) != 1 ||
	    (cm = CMSG_FIRSTHDR(&msg)) == NULL ||
	    cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS ||
	    cm->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	return fd;
}
