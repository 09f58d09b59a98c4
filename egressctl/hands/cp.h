/* SPDX-License-Identifier: ISC */

/*
 * Between the files of egressctl cp.
 */

#ifndef CP_H
#define CP_H

#include <sys/types.h>

#include "hands.h"

#define CP_DEPTH_MAX	64		/* directories in directories */
#define CP_NAMES_MAX	(64 << 20)	/* bytes of names to be copied yet */

/* How far it is, on a terminal. */
struct progress {
	int		 pr_shown;	/* there is a terminal */
	const char	*pr_name;
	uint64_t	 pr_done;
	uint64_t	 pr_size;	/* of the file; may be wrong */
	uint64_t	 pr_last;	/* clock_ms() of the last line, or 0 */
};

struct copy {
	struct task	 cp_task;
	struct progress	 cp_progress;
	int		 cp_recursive;
	uint64_t	 cp_files;
	uint64_t	 cp_bytes;
	uint64_t	 cp_skipped;	/* links, devices and the like */
};

/* cp.c */
void	 copy_fail(struct copy *, const char *, const char *);
void	 copy_skip(struct copy *, const char *);
int	 copy_goes_on(const struct copy *);
const char *path_last(const char *, size_t *);
int	 path_join(char *, size_t, const char *, const char *, size_t);

/* cp_get.c */
void	 copy_get(struct copy *, const char *, const char *);

/* cp_put.c */
void	 copy_put(struct copy *, const char *, const char *);

/* progress.c */
void	 progress_begin(struct progress *, const char *, uint64_t);
void	 progress_add(struct progress *, size_t);
void	 progress_end(struct progress *);

#endif /* CP_H */
