/* SPDX-License-Identifier: ISC */

/*
 * Whoever starts sandboxes runs this, the parent or egressd-launch: a control
 * group for each of them.
 *
 *	DELEGATED		a service manager's, and its mark is on it
 *	  egressd-PID		ours, for as long as PID lives
 *	    self		PID and its other children
 *	    box-1, box-2, ...	a sandbox each
 *
 * Only a group that is marked as delegated is touched: a daemon that was
 * started from a shell is in somebody else's.  The processes of a sandbox are
 * in its group from the first instruction on.  They cannot leave: the files are
 * ours, and box sees to it that no control groups can be mounted in there.
 * Nothing in these files is anybody's word but the kernel's.
 */

#ifdef __linux__

#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <linux/sched.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "clock.h"

#define OURS		"egressd-"
#define SELF		"self"
#define OWN_PROCESSES	8	/* of box itself, beside its commands */
#define GONE_WITHIN_MS	1000	/* a killed process, its memory freed */
#define KILL_ROUNDS	100

struct cgroup {
	TAILQ_ENTRY(cgroup)	 cg_entry;
	char			 cg_name[32];
	int			 cg_fd;
	bool			 cg_over;	/* to be removed */
};

static TAILQ_HEAD(, cgroup)	 groups = TAILQ_HEAD_INITIALIZER(groups);
static enum cgroup_use		 use = CGROUP_NONE;
static int			 ours = -1;	/* egressd-PID */
static unsigned int		 count;

/* ---- files ---- */

static int
group_open(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int
group_write(int dir, const char *file, const char *text)
{
	ssize_t	 n;
	int	 fd, error;

	if ((fd = openat(dir, file, O_WRONLY | O_CLOEXEC)) == -1)
		return -1;
	n = write(fd, text, strlen(text));
	error = errno;
	close(fd);
	errno = error;
	return n == -1 ? -1 : 0;
}

static int
group_write_number(int dir, const char *file, uint64_t number)
{
	char	 text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	return group_write(dir, file, text);
}

/* Call f for each process of a group; true if it has said so of one. */
static bool
group_each(int dir, bool (*f)(pid_t, pid_t), pid_t arg)
{
	FILE	*fp;
	int	 fd, pid;
	bool	 found = false;

	if ((fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC)) == -1)
		return false;
	if ((fp = fdopen(fd, "r")) == NULL) {
		close(fd);
		return false;
	}
	while (!found && fscanf(fp, "%d", &pid) == 1)
		found = f(pid, arg);
	fclose(fp);
	return found;
}

/* A process of another namespace has no number, and may be anyone. */
static bool
is_same(pid_t pid, pid_t wanted)
{
	return pid == wanted || pid == 0;
}

static bool
kill_one(pid_t pid, pid_t unused)
{
	(void)unused;
	if (pid > 0)
		kill(pid, SIGKILL);
	return false;
}

static bool
any(pid_t pid, pid_t unused)
{
	(void)pid, (void)unused;
	return true;
}

/* Before Linux 5.14 processes are killed one by one, and may fork meanwhile. */
static void
group_kill(int dir)
{
	int	 i;

	if (group_write(dir, "cgroup.kill", "1") == 0 || errno != ENOENT)
		return;
	for (i = 0; i < KILL_ROUNDS && group_each(dir, any, 0); i++)
		(void)group_each(dir, kill_one, 0);
}

static bool
is_populated(int events)
{
	char	 text[256];
	ssize_t	 n = pread(events, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "populated 1") != NULL;
}

/* Wait until a group that was killed has no process, for so long. */
static void
group_wait(int dir, uint64_t until)
{
	struct pollfd	 pfd = { .events = POLLPRI };
	uint64_t	 now;

	if ((pfd.fd = openat(dir, "cgroup.events",
	    O_RDONLY | O_CLOEXEC)) == -1)
		return;
	/* The kernel tells of changes since the file was read. */
	while (is_populated(pfd.fd) && (now = clock_ms()) < until)
		(void)poll(&pfd, 1, until - now);
	close(pfd.fd);
}

/* ---- where we are ---- */

static bool
is_marked(const char *path)
{
	char	 value[2];

	return (getxattr(path, "user.delegate", value, sizeof(value)) == 1 ||
	    getxattr(path, "trusted.delegate", value, sizeof(value)) == 1) &&
	    value[0] == '1';
}

/* The group of this process, as the kernel names it. */
static int
find_own(char *path, size_t size)
{
	FILE	*fp;
	char	 line[PATH_MAX];
	int	 found = -1;

	if ((fp = fopen("/proc/self/cgroup", "re")) == NULL)
		return -1;
	while (found == -1 && fgets(line, sizeof(line), fp) != NULL) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		/* /../ is outside of what we can see. */
		if (strstr(line, "/..") == NULL &&
		    strlcpy(path, line + 3, size) < size)
			found = 0;
	}
	fclose(fp);
	return found;
}

/* Where it is in the file system: *path becomes that. */
static int
find_mounted(char *path, size_t size)
{
	FILE	*fp;
	char	*line = NULL, root[PATH_MAX], at[PATH_MAX], whole[PATH_MAX];
	size_t	 linesize = 0, len;
	int	 found = -1;

	if ((fp = fopen("/proc/self/mountinfo", "re")) == NULL)
		return -1;
	while (found == -1 && getline(&line, &linesize, fp) != -1) {
		if (strstr(line, " - cgroup2 ") == NULL ||
		    sscanf(line, "%*d %*d %*s %4095s %4095s", root, at) != 2)
			continue;
		len = strcmp(root, "/") == 0 ? 0 : strlen(root);
		if (strncmp(path, root, len) != 0 || path[len] != '/' ||
		    (size_t)snprintf(whole, sizeof(whole), "%s%s", at,
		    path + len) >= sizeof(whole) ||
		    strlcpy(path, whole, size) >= size)
			continue;
		found = 0;
	}
	free(line);
	fclose(fp);
	return found;
}

/* The delegated group, in which we are or just below; -1 if there is none. */
static int
find_delegated(void)
{
	char	 path[PATH_MAX], *slash;

	if (find_own(path, sizeof(path)) == -1 ||
	    find_mounted(path, sizeof(path)) == -1)
		return -1;
	if (!is_marked(path)) {
		if ((slash = strrchr(path, '/')) == NULL)
			return -1;
		*slash = '\0';
		if (!is_marked(path))
			return -1;
	}
	return group_open(AT_FDCWD, path);
}

/* ---- those that others have left ---- */

static void
remove_stale(int delegated, const char *name)
{
	DIR		*dp;
	struct dirent	*de;
	int		 fd, copy;

	if ((fd = group_open(delegated, name)) == -1)
		return;
	group_kill(fd);
	group_wait(fd, clock_ms() + GONE_WITHIN_MS);
	if ((copy = fcntl(fd, F_DUPFD_CLOEXEC, 0)) != -1 &&
	    (dp = fdopendir(copy)) != NULL) {
		while ((de = readdir(dp)) != NULL)
			if (de->d_type == DT_DIR && de->d_name[0] != '.')
				(void)unlinkat(fd, de->d_name, AT_REMOVEDIR);
		closedir(dp);
	}
	close(fd);
	(void)unlinkat(delegated, name, AT_REMOVEDIR);
}

/* Whether the process that the name is made of still is in there. */
static bool
is_alive(int delegated, const char *name)
{
	char	 path[NAME_MAX + sizeof("/" SELF)];
	bool	 alive;
	int	 fd;

	snprintf(path, sizeof(path), "%s/" SELF, name);
	if ((fd = group_open(delegated, path)) == -1)
		return false;
	alive = group_each(fd, is_same,
	    strtonum(name + strlen(OURS), 1, INT_MAX, NULL));
	close(fd);
	return alive;
}

static void
remove_all_stale(int delegated)
{
	DIR		*dp;
	struct dirent	*de;
	int		 copy;

	if ((copy = group_open(delegated, ".")) == -1)
		return;
	if ((dp = fdopendir(copy)) == NULL) {
		close(copy);
		return;
	}
	while ((de = readdir(dp)) != NULL)
		if (strncmp(de->d_name, OURS, strlen(OURS)) == 0 &&
		    strlen(de->d_name) < 32 && !is_alive(delegated, de->d_name))
			remove_stale(delegated, de->d_name);
	closedir(dp);
}

/* ---- ours ---- */

/* Controllers can be given on only by a group without processes of its own. */
static int
settle(int delegated)
{
	char	 name[32];

	snprintf(name, sizeof(name), OURS "%d", (int)getpid());
	if (mkdirat(delegated, name, 0755) == -1 ||
	    (ours = group_open(delegated, name)) == -1)
		return -1;
	if (mkdirat(ours, SELF, 0755) == -1 ||
	    group_write(ours, SELF "/cgroup.procs", "0") == -1)
		return -1;
	use = CGROUP_KILL;
	if (group_write(delegated, "cgroup.subtree_control",
	    "+memory +pids") == 0 && group_write(ours,
	    "cgroup.subtree_control", "+memory +pids") == 0)
		use = CGROUP_LIMIT;
	return 0;
}

/* Before there are children: they are to move along. */
enum cgroup_use
cgroup_begin(void)
{
	int	 delegated;

	if ((delegated = find_delegated()) == -1)
		return CGROUP_NONE;
	remove_all_stale(delegated);
	if (settle(delegated) == -1 && ours != -1) {
		close(ours);
		ours = -1;
	}
	close(delegated);
	return use;
}

/* Swapped memory is memory: without a limit it would have none. */
static int
limit(const struct cgroup *cg, uint64_t memory, uint64_t processes)
{
	if (memory != 0 && (group_write_number(cg->cg_fd, "memory.max",
	    memory) == -1 || (group_write(cg->cg_fd, "memory.swap.max",
	    "0") == -1 && errno != ENOENT)))
		return -1;
	if (processes != 0 && group_write_number(cg->cg_fd, "pids.max",
	    processes + OWN_PROCESSES) == -1)
		return -1;
	return 0;
}

/*
 * A new group, with limits unless they are 0: bytes of memory, and processes
 * and threads of commands.  NULL and errno if there cannot be one.
 */
struct cgroup *
cgroup_new(uint64_t memory, uint64_t processes)
{
	struct cgroup	*cg;
	int		 error;

	if ((cg = calloc(1, sizeof(*cg))) == NULL)
		return NULL;
	snprintf(cg->cg_name, sizeof(cg->cg_name), "box-%u", ++count);
	if (mkdirat(ours, cg->cg_name, 0755) == -1 ||
	    (cg->cg_fd = group_open(ours, cg->cg_name)) == -1) {
		free(cg);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&groups, cg, cg_entry);
	if (limit(cg, memory, processes) == -1) {
		error = errno;
		cgroup_drop(cg);
		(void)cgroup_sweep();
		errno = error;
		return NULL;
	}
	return cg;
}

/* As fork(2), into the group; or, with NULL, as ever. */
pid_t
cgroup_fork(const struct cgroup *cg)
{
	struct clone_args	 args = {
		.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD,
	};
	pid_t			 pid;

	if (cg == NULL)
		return fork();
	args.cgroup = cg->cg_fd;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	/* Filters of containers let clone3(2) fail as if it were not there. */
	if (pid != -1 || (errno != ENOSYS && errno != EPERM))
		return pid;
	if ((pid = fork()) == 0 &&
	    group_write(cg->cg_fd, "cgroup.procs", "0") == -1) {
		dprintf(STDERR_FILENO, "control group: %s\n", strerror(errno));
		_exit(127);
	}
	return pid;
}

void
cgroup_kill(const struct cgroup *cg)
{
	group_kill(cg->cg_fd);
}

/* All in it ends; cgroup_sweep() removes it. */
void
cgroup_drop(struct cgroup *cg)
{
	group_kill(cg->cg_fd);
	cg->cg_over = true;
}

/* Remove those that are over.  Whether processes in some have yet to die. */
bool
cgroup_sweep(void)
{
	struct cgroup	*cg, *next;
	bool		 busy = false;

	TAILQ_FOREACH_SAFE(cg, &groups, cg_entry, next) {
		if (!cg->cg_over)
			continue;
		if (unlinkat(ours, cg->cg_name, AT_REMOVEDIR) == -1 &&
		    errno == EBUSY) {
			busy = true;
			continue;
		}
		TAILQ_REMOVE(&groups, cg, cg_entry);
		close(cg->cg_fd);
		free(cg);
	}
	return busy;
}

/* Whoever started them ends, and they with it. */
void
cgroup_end(void)
{
	struct cgroup	*cg;
	uint64_t	 until = clock_ms() + GONE_WITHIN_MS;

	TAILQ_FOREACH(cg, &groups, cg_entry)
		cgroup_drop(cg);
	TAILQ_FOREACH(cg, &groups, cg_entry)
		group_wait(cg->cg_fd, until);
	(void)cgroup_sweep();
}

#else

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "cgroup.h"

enum cgroup_use
cgroup_begin(void)
{
	return CGROUP_NONE;
}

struct cgroup *
cgroup_new(uint64_t memory, uint64_t processes)
{
	(void)memory, (void)processes;
	errno = EOPNOTSUPP;
	return NULL;
}

pid_t
cgroup_fork(const struct cgroup *cg)
{
	(void)cg;
	return fork();
}

void
cgroup_kill(const struct cgroup *cg)
{
	(void)cg;
}

void
cgroup_drop(struct cgroup *cg)
{
	(void)cg;
}

bool
cgroup_sweep(void)
{
	return false;
}

void
cgroup_end(void)
{
}

#endif /* __linux__ */
