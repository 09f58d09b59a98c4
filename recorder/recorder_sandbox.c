/* SPDX-License-Identifier: ISC */

/*
 * The recorder's confinement.  It gets every descriptor from the parent; it
 * opens, creates and connects nothing.
 */

#include <fcntl.h>

#include "recorder.h"
#include "sandbox.h"

static const struct sandbox_group groups[] = {
	{ "find the last line of the audit file, and where it ends",
	    SANDBOX_CALLS(SCMP_SYS(pread64), SCMP_SYS(lseek)) },
	{ "cut off a line that was written only in part, give room back",
	    SANDBOX_CALLS(SCMP_SYS(ftruncate)) },
	{ "say beside the file with which line it ends",
	    SANDBOX_CALLS(SCMP_SYS(pwrite64)) },
	{ "see how much room there is", SANDBOX_CALLS(SCMP_SYS(fstatfs)) },
	{ "have records on the disk within a second",
	    SANDBOX_CALLS(SCMP_SYS(fdatasync)) },
	{ NULL, NULL }
};

static const struct sandbox_narrow narrow[] = {
	{ "set room aside for records to come, and change no byte",
	    SCMP_SYS(fallocate), 1, { { 1, FALLOC_FL_KEEP_SIZE } } },
	{ "give back what a spool need not keep",
	    SCMP_SYS(fallocate), 1,
	    { { 1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE } } },
	{ NULL, 0, 0, { { 0, 0 } } }
};

const struct sandbox recorder_sandbox = {
	.sb_groups = groups,
	.sb_narrow = narrow,
	.sb_pledge = "stdio recvfd",
	/* Engines, followers; audit file and tip, of each two in a reload. */
	.sb_files = 4096,
};
