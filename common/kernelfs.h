/* SPDX-License-Identifier: ISC */

/*
 * Which file systems are the kernel's own, for whoever shows files to a
 * sandbox: theirs are not data but handles on processes, namespaces and
 * settings of the host.
 */

#ifndef KERNELFS_H
#define KERNELFS_H

/* The name of the kernel's file system that this lies in, or NULL. */
const char	*kernelfs_name(int fd);

#endif /* KERNELFS_H */
