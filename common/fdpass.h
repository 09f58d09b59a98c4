/* SPDX-License-Identifier: ISC */

/*
 * A descriptor through a Unix socket with a byte beside it, for channels that
 * carry nothing else.
 */

#ifndef FDPASS_H
#define FDPASS_H

/* As sendmsg(2) with these flags: 1, or -1 and errno. */
int	 fdpass_send(int channel, char byte, int fd, int flags);

/* The next one, close-on-exec; -1 if what comes is anything else. */
int	 fdpass_take(int channel, int flags);

#endif /* FDPASS_H */
