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
	{ NULL, 0, 0, { { 0, 0 } } }
};

const struct sandbox recorder_sandbox = {
	.sb_groups = groups,
	.sb_narrow = narrow,
	.sb_pledge = "stdio recvfd",
	/* Engines, followers; audit file and tip, of each two in a reload. */
	.sb_files = 4096,
};
