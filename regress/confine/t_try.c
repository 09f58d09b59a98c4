/* SPDX-License-Identifier: ISC */


/*
 * What confinement forbids, tried.  Each role's list of calls is entered the
 * way child.c does it, by a process that holds open whatever would make the
 * forbidden thing easy: a directory, sockets, a pidfd of the test.  Then it
 * does one thing, and must be stopped by an error that says so, or by a signal
 * and with a line in the log that names the call, and leave no mark.  What the
 * role needs must go on to work.
 *
 * Two more stages keep the test honest: "bare" does the same without
 * confinement and must not be stopped, and "landlock" enters Landlock only,
 * whose faults seccomp would hide.
 */

#include <sys/epoll.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "actions.h"
#include "needs.h"
#include "common/log.h"
#include "common/sandbox.h"

extern const struct sandbox	 controld_sandbox, policyd_sandbox,
				 recorder_sandbox, dialer_sandbox,
				 deciderd_sandbox, k8sd_sandbox,
				 podd_sandbox,
				 tlsengine_sandbox;

static const struct role {
	const char		*ro_name;
	unsigned int		 ro_bit;
	const struct sandbox	*ro_sandbox;
} roles[] = {
	{ "controld", CONTROLD, &controld_sandbox },
	{ "policyd", POLICYD, &policyd_sandbox },
	{ "recorder", RECORDER, &recorder_sandbox },
	{ "dialer", DIALER, &dialer_sandbox },
	{ "deciderd", DECIDERD, &deciderd_sandbox },
	{ "k8sd", K8SD, &k8sd_sandbox },
	{ "podd", PODD, &podd_sandbox },
	{ "tlsengine", ENGINE, &tlsengine_sandbox },
	{ NULL, 0, NULL }
};

#define FIRST_UID	61300	/* above those that daemons of tests use */

struct outcome {
	int	 oc_signal;	/* 0: it came back */
	int	 oc_status;	/* exit status if it did */
	bool	 oc_told;	/* what follows */
	long	 oc_result;
	int	 oc_errno;
	char	 oc_said[256];	/* on standard error */
};

static char		 world[] = "/tmp/egressd-try.XXXXXX";
static char		 world_root[sizeof(world) + 8];
static struct stat	 file_was;
static int		 landlock_version, failed;

/* ---- the world ---- */

static void
put(int fd, int at)
{
	if (fd == -1 || dup2(fd, at) == -1)
		err(1, "descriptor %d", at);
	close(fd);
}

static void
world_listen(int at, struct sockaddr *sa, socklen_t len)
{
	put(socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0), at);
	if (bind(at, sa, len) == -1 || listen(at, 8) == -1 ||
	    getsockname(at, sa, &len) == -1)
		err(1, "listen");
}

static void
world_make(void)
{
	int	 fds[2];

	if (mkdtemp(world) == NULL || chmod(world, 0777) == -1)
		err(1, "%s", world);
	snprintf(world_root, sizeof(world_root), "%s.root", world);
	if (mkdir(world_root, 0555) == -1)
		err(1, "%s", world_root);
	put(open(world, O_RDONLY | O_DIRECTORY), FD_DIR);
	put(open("/proc/self/exe", O_RDONLY), FD_EXE);
	addr_tcp.sin_family = AF_INET;
	addr_tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	world_listen(FD_LISTEN, (struct sockaddr *)&addr_tcp,
	    sizeof(addr_tcp));
	addr_abstract.sun_family = AF_UNIX;
	snprintf(addr_abstract.sun_path + 1, sizeof(addr_abstract.sun_path) -
	    1, "%s", world);
	world_listen(FD_ABSTRACT, (struct sockaddr *)&addr_abstract,
	    sizeof(addr_abstract));
	if (pipe2(fds, O_NONBLOCK) == -1)
		err(1, "pipe");
	put(fds[0], FD_MARKS);
	put(fds[1], FD_MARK);
}

/* Calls for each name in the world, and says how many there are. */
static int
world_walk(void (*visit)(const char *))
{
	struct dirent	*de;
	DIR		*dir;
	int		 n = 0;

	if ((dir = opendir(world)) == NULL)
		err(1, "%s", world);
	while ((de = readdir(dir)) != NULL)
		if (strcmp(de->d_name, ".") != 0 &&
		    strcmp(de->d_name, "..") != 0) {
			n++;
			visit(de->d_name);
		}
	closedir(dir);
	return n;
}

static void
world_ignore(const char *name)
{
	(void)name;
}

static void
world_remove(const char *name)
{
	if (unlinkat(FD_DIR, name, 0) == -1)
		unlinkat(FD_DIR, name, AT_REMOVEDIR);
}

static bool
world_drain(int fd)
{
	int	 conn = accept(fd, NULL, NULL);

	if (conn != -1)
		close(conn);
	return conn != -1;
}

static void
world_restore(void)
{
	struct timespec	 past[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char		 c;

	world_walk(world_remove);
	put(openat(FD_DIR, "file", O_RDWR | O_CREAT | O_EXCL, 0666), FD_FILE);
	if (fchmod(FD_FILE, 0666) == -1 || write(FD_FILE, "data", 4) != 4 ||
	    lseek(FD_FILE, 0, SEEK_SET) != 0 ||
	    futimens(FD_FILE, past) == -1 || fstat(FD_FILE, &file_was) == -1)
		err(1, "%s/file", world);
	while (world_drain(FD_LISTEN) || world_drain(FD_ABSTRACT) ||
	    read(FD_MARKS, &c, 1) == 1)
		continue;
}

static void
world_end(void)
{
	world_walk(world_remove);
	rmdir(world);
	rmdir(world_root);
}

/* What is different from what world_restore() left, or NULL. */
static const char *
world_change(void)
{
	struct stat	 st;
	char		 c;

	if (fstatat(FD_DIR, "file", &st, AT_SYMLINK_NOFOLLOW) == -1)
		return "the file is gone";
	if (st.st_ino != file_was.st_ino || st.st_mode != file_was.st_mode ||
	    st.st_uid != file_was.st_uid || st.st_size != file_was.st_size ||
	    st.st_mtime != file_was.st_mtime || st.st_nlink != 1)
		return "the file has changed";
	if (world_walk(world_ignore) != 1)
		return "there is a new file";
	if (world_drain(FD_LISTEN) || world_drain(FD_ABSTRACT))
		return "a connection was made";
	if (read(FD_MARKS, &c, 1) == 1)
		return "there is a mark";
	if (sleeper > 0 && waitpid(sleeper, NULL, WNOHANG) == sleeper) {
		sleeper = 0;
		return "a process was killed";
	}
	return NULL;
}

/* ---- one attempt ---- */

enum stage { STAGE_BARE, STAGE_LANDLOCK, STAGE_ROLE };

static uid_t
role_uid(const struct role *ro)
{
	return geteuid() == 0 ? FIRST_UID + (ro - roles) : 0;
}

static void
start_sleeper(const struct role *ro)
{
	uid_t	 uid = ro != NULL ? role_uid(ro) : 0;

	if ((sleeper = fork()) == -1)
		err(1, "fork");
	if (sleeper > 0)
		return;
	if (uid != 0 && setresuid(uid, uid, uid) == -1)
		err(1, "setresuid");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != test_pid)
		_exit(0);
	for (;;)
		pause();
}

static void
end_sleeper(void)
{
	if (sleeper > 0) {
		kill(sleeper, SIGKILL);
		waitpid(sleeper, NULL, 0);
	}
	sleeper = 0;
}

/* Everything that would make it easy. */
static void
equip(void)
{
	int	 sv[2];

	put(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), FD_TCP);
	put(socket(AF_INET, SOCK_DGRAM, 0), FD_UDP);
	put(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), FD_UNIX);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == -1)
		err(1, "socketpair");
	put(sv[0], FD_PAIR);
	put(sv[1], FD_PAIR2);
	put(epoll_create1(0), FD_EPOLL);
	put(syscall(SYS_pidfd_open, test_pid, 0), FD_PIDFD);
	if ((need_base = event_base_new()) == NULL)
		errx(1, "event_base_new");
}

static void
confine(enum stage stage, const struct role *ro)
{
	struct identity	 id = { 0, 0, world_root };

	if (stage == STAGE_LANDLOCK) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
			err(1, "no_new_privs");
		landlock_enter(&policyd_sandbox);
	} else if (stage == STAGE_ROLE) {
		id.id_uid = id.id_gid = role_uid(ro);
		sandbox_limit(ro->ro_sandbox);
		sandbox_drop(&id);
		sandbox_enter(ro->ro_sandbox);
	}
}

static long
argument(const struct action *ac, int i)
{
	switch (ac->ac_args[i]) {
	case ARG_TEST:
		return test_pid;
	case ARG_SLEEPER:
		return sleeper;
	default:
		return ac->ac_args[i];
	}
}

static void __attribute__((__noreturn__))
act(const struct action *ac)
{
	struct outcome	 oc = { .oc_told = true };

	errno = 0;
	if (ac->ac_do != NULL)
		oc.oc_result = ac->ac_do();
	else
		oc.oc_result = syscall(ac->ac_call, argument(ac, 0),
		    argument(ac, 1), argument(ac, 2), argument(ac, 3),
		    argument(ac, 4), argument(ac, 5));
	oc.oc_errno = errno;
	_exit(write(FD_REPORT, &oc, sizeof(oc)) == sizeof(oc) ? 0 : 1);
}

static struct outcome
attempt(enum stage stage, const struct role *ro, const struct action *ac)
{
	struct outcome	 oc = { .oc_told = false };
	ssize_t		 n;
	pid_t		 pid;
	int		 fds[2], said[2], status;

	if (ac->ac_flags & WITH_SLEEPER)
		start_sleeper(ro);
	if (pipe2(fds, O_CLOEXEC) == -1 ||
	    pipe2(said, O_CLOEXEC | O_NONBLOCK) == -1 || (pid = fork()) == -1)
		err(1, "fork");
	if (pid == 0) {
		put(said[1], STDERR_FILENO);
		put(fds[1], FD_REPORT);
		equip();
		confine(stage, ro);
		act(ac);
	}
	close(fds[1]);
	if (read(fds[0], &oc, sizeof(oc)) != sizeof(oc))
		oc.oc_told = false;
	close(fds[0]);
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			err(1, "waitpid");
	oc.oc_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	oc.oc_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	close(said[1]);
	n = read(said[0], oc.oc_said, sizeof(oc.oc_said) - 1);
	oc.oc_said[n > 0 ? n : 0] = '\0';
	close(said[0]);
	return oc;
}

/* ---- the verdict ---- */

static bool
was_stopped(const struct action *ac, const struct outcome *oc)
{
	if (oc->oc_signal != 0)
		return oc->oc_signal == SIGSYS || ((ac->ac_flags & MAY_FAULT) &&
		    oc->oc_signal == SIGSEGV);
	return oc->oc_told && oc->oc_result == -1 &&
	    (oc->oc_errno == EACCES || oc->oc_errno == EPERM);
}

/* Killed by a filter, and its log says for which call. */
static bool
was_named(const struct action *ac, const struct outcome *oc)
{
	static const char	 words[] = "t_try: killed by its filter: call ";
	long			 call = -1;

	if (strncmp(oc->oc_said, words, strlen(words)) != 0)
		return false;
	sscanf(oc->oc_said + strlen(words), "%*[a-z0-9_] (%ld)\n", &call);
	return ac->ac_do != NULL ? call >= 0 : call == ac->ac_call;
}

static const char *
describe(const struct outcome *oc)
{
	static char	 text[512];

	if (oc->oc_signal != 0)
		snprintf(text, sizeof(text), "it died of signal %d and said "
		    "\"%s\"", oc->oc_signal, oc->oc_said);
	else if (!oc->oc_told)
		snprintf(text, sizeof(text), "it exited with status %d",
		    oc->oc_status);
	else if (oc->oc_result == -1)
		snprintf(text, sizeof(text), "its error was %s",
		    strerror(oc->oc_errno));
	else
		snprintf(text, sizeof(text), "it returned %ld", oc->oc_result);
	return text;
}

static void
report(const char *stage, const char *name, const char *why)
{
	if (why == NULL)
		printf("ok %s.%s\n", stage, name);
	else
		printf("not ok %s.%s: %s\n", stage, name, why);
	failed |= why != NULL;
}

/* Not stopped, and with the mark that shows that a mark would be seen. */
static void
try_bare(const struct action *ac)
{
	struct outcome	 oc;
	const char	*why = NULL;
	int		 turns = 500;
	bool		 done;

	world_restore();
	oc = attempt(STAGE_BARE, NULL, ac);
	if (was_stopped(ac, &oc)) {
		printf("skip bare.%s: refused here without confinement too\n",
		    ac->ac_name);
		end_sleeper();
		return;
	}
	done = oc.oc_told ? oc.oc_result != -1 || oc.oc_errno == EINPROGRESS :
	    oc.oc_status == 0;
	if (!oc.oc_told && !done)
		why = describe(&oc);
	else if ((ac->ac_flags & LEAVES_MARK) && done) {
		while (world_change() == NULL && --turns > 0)
			poll(NULL, 0, 10);
		if (turns == 0)
			why = "it left no mark";
	}
	end_sleeper();
	report("bare", ac->ac_name, why);
}

static void
try_landlock(const struct action *ac)
{
	struct outcome	 oc;
	const char	*why;

	if (ac->ac_landlock == 0)
		return;
	if (ac->ac_landlock > landlock_version) {
		printf("skip landlock.%s: this kernel has version %d, it takes "
		    "%d\n", ac->ac_name, landlock_version, ac->ac_landlock);
		return;
	}
	world_restore();
	oc = attempt(STAGE_LANDLOCK, NULL, ac);
	why = world_change();
	if (oc.oc_signal != 0 || !was_stopped(ac, &oc))
		why = describe(&oc);
	end_sleeper();
	report("landlock", ac->ac_name, why);
}

static void
try_role(const struct role *ro, const struct action *ac)
{
	struct outcome	 oc;
	const char	*why;
	bool		 may = (ac->ac_may & ro->ro_bit) != 0;

	world_restore();
	oc = attempt(STAGE_ROLE, ro, ac);
	why = may ? NULL : world_change();
	if (was_stopped(ac, &oc) == may || (may && !oc.oc_told) ||
	    (oc.oc_signal == SIGSYS && !(ac->ac_flags & DIES_MUTE) &&
	    !was_named(ac, &oc)))
		why = describe(&oc);
	end_sleeper();
	report(ro->ro_name, ac->ac_name, why);
}

static void
try_need(const struct role *ro, const struct action *ac)
{
	struct outcome	 oc = attempt(STAGE_ROLE, ro, ac);
	bool		 good;

	if (ac->ac_do == need_abort)
		good = oc.oc_signal == SIGABRT;
	else if (ac->ac_do == need_exit)
		good = oc.oc_status == 7;
	else
		good = oc.oc_told && oc.oc_result == 0;
	report(ro->ro_name, ac->ac_name, good ? NULL : describe(&oc));
}

int
main(int argc, char *argv[])
{
	const struct role	*ro;
	const struct action	*ac;

	if (argc == 2 && strcmp(argv[1], "mark") == 0) {
		mark();
		return 0;
	}
#ifdef SANDBOX_TRACE
	printf("skip all: a trace build stops nothing\n");
	return 0;
#endif
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_init("t_try", LOG_LVL_INFO, 0);
	test_pid = getpid();
	landlock_version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	world_make();
	for (ac = actions; ac->ac_name != NULL; ac++) {
		try_bare(ac);
		try_landlock(ac);
	}
	for (ro = roles; ro->ro_name != NULL; ro++) {
		for (ac = actions; ac->ac_name != NULL; ac++)
			try_role(ro, ac);
		for (ac = needs; ac->ac_name != NULL; ac++)
			try_need(ro, ac);
	}
	world_end();
	return failed;
}
