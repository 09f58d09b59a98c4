/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: the audit file, and beside it the file that names its
 * end.  One daemon writes an audit file.  Of several for single runs with the
 * same configuration, each has its own: whoever runs two agents at once should
 * not have to think about that.
 */

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define RUNS_MAX	99	/* beside each other */

/* 1: ours; 0: another process writes it. */
static int
open_one(struct auditfile *af, const struct auditfile *old, struct why *why)
{
	struct stat	 st;
	struct why	 where;

	if ((af->af_fd = place_file(af->af_path, O_RDWR | O_APPEND, 0640,
	    &where)) == -1)
		return why_set(why, "audit file %s", where.text);
	if (fstat(af->af_fd, &st) == -1)
		return why_set(why, "audit file %s: %s", af->af_path,
		    strerror(errno));
	af->af_dev = st.st_dev;
	af->af_ino = st.st_ino;
	af->af_same = old != NULL && old->af_ino == st.st_ino &&
	    old->af_dev == st.st_dev;
	/* The lock goes with the descriptor and lasts as long as it. */
	if (!af->af_same && flock(af->af_fd, LOCK_EX | LOCK_NB) == 0)
		return 1;
	close(af->af_fd);
	af->af_fd = -1;
	return af->af_same;
}

static int
set_path(struct auditfile *af, const char *path, unsigned int run,
    struct why *why)
{
	int	 n;

	if (run == 1)
		n = snprintf(af->af_path, sizeof(af->af_path), "%s", path);
	else
		n = snprintf(af->af_path, sizeof(af->af_path), "%s.run%u",
		    path, run);
	if (n < 0 || (size_t)n >= sizeof(af->af_path))
		return why_set(why, "audit file %s: the name is too long",
		    path);
	return 0;
}

/* A file of ours beside the audit file; -1 and why there is none. */
static int
open_beside(const struct auditfile *af, const char *suffix, struct why *why)
{
	struct why	 where;
	char		 path[PATH_LEN];
	int		 n, fd;

	n = snprintf(path, sizeof(path), "%s.%s", af->af_path, suffix);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return why_set(why, "audit file %s: the name is too long",
		    af->af_path);
	}
	if ((fd = place_file(path, O_RDWR, 0640, &where)) == -1) {
		n = errno;
		why_set(why, "audit file %s", where.text);
		errno = n;
	}
	return fd;
}

/*
 * The tip outlives the audit file when that is rotated.  Where we can write
 * the one but cannot make the other we do without; the records say so.  A
 * spool, which is emptied again and again, cannot be without.
 */
static int
open_tip(struct auditfile *af, bool spool, struct why *why)
{
	if ((af->af_tip = open_beside(af, "tip", why)) != -1)
		return 0;
	if (spool || (errno != EACCES && errno != EROFS && errno != ENOSPC &&
	    errno != EDQUOT))
		return -1;
	log_warnx("%s: a file that is rotated while we are stopped "
	    "begins another chain", why->text);
	return 0;
}

int
auditfile_open(struct auditfile *af, const struct config *conf,
    const struct auditfile *old, struct why *why)
{
	const char	*path = conf->cf_audit_file;
	unsigned int	 run = 0;
	int		 rv;

	if (path == NULL)
		return 0;
	do {
		if (set_path(af, path, ++run, why) == -1 ||
		    (rv = open_one(af, old, why)) == -1)
			return -1;
	} while (rv == 0 && d.d_private && run < RUNS_MAX);
	if (rv == 0)
		return why_set(why, "audit file %s: another process writes it",
		    af->af_path);
	if (run > 1 && !af->af_same)
		log_warnx("audit file %s: another process writes it, records "
		    "go to %s", path, af->af_path);
	if (open_tip(af, conf->cf_spool > 0, why) == -1)
		return -1;
	if (conf->cf_spool > 0)
		af->af_ack = open_beside(af, "ack", why);
	return conf->cf_spool > 0 && af->af_ack == -1 ? -1 : 0;
}

/*
 * Standard output, for the recorder, which must not wait for its reader.
 * Opened anew: who started us may write to the same pipe and wants to wait.
 */
int
auditfile_stdout(bool *plain)
{
	struct stat	 st;
	int		 fd;

	*plain = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	fd = open("/proc/self/fd/1", O_WRONLY | O_APPEND | O_NONBLOCK |
	    O_NOCTTY | O_CLOEXEC);
	if (fd != -1)
		return fd;
	/* A socket, or a pipe that another user has made. */
	if ((fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)) == -1 ||
	    fcntl(fd, F_SETFL, O_WRONLY | O_NONBLOCK) == -1)
		log_warn("audit stdout");
	return fd;
}
