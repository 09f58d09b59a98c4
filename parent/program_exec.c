/* SPDX-License-Identifier: ISC */

/*
 * The parent's new child runs this, on its way to being a program of the
 * configuration.  Nothing here is confined yet, and whatever cannot be done
 * ends the process: a function that returns has succeeded.
 *
 * The program sees what strangers wrote.  It runs as a user of its own, never
 * as root, with an empty environment and nothing open but its three standard
 * descriptors, in a session of its own by which it is found and killed.
 */

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define WORDS_MAX	64	/* of a command */
#define ENVIRONMENT_MAX	258	/* 256 of a block, and two of our own */
#define FILES_SOFT	1024	/* that programs expect */
#define PLUGIN_PATH	"/usr/local/bin:/usr/bin:/bin"

void
exec_say(const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vdprintf(STDERR_FILENO, fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "\n");
	_exit(127);
}

/* The same, to a client that may not have what it asks for. */
void
exec_refuse(const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vdprintf(STDERR_FILENO, fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "\n");
	_exit(EXEC_REFUSED);
}

void
exec_fail(const char *what)
{
	dprintf(STDERR_FILENO, "%s: %s\n", what,
	    errno != 0 ? strerror(errno) : "no such user");
	_exit(127);
}

/* A user, with the groups of the database. */
void
exec_as(const struct passwd *pw)
{
	if (!d.d_privileged && pw->pw_uid == geteuid())
		return;
	if (initgroups(pw->pw_name, pw->pw_gid) == -1)
		exec_fail(pw->pw_name);
	errno = EPERM;
	if (pw->pw_uid == 0)
		exec_fail("a program does not run as root");
	if (setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) == -1)
		exec_fail("user");
}

/* That of the role which asked for it; it has no groups. */
static void
exec_as_role(enum role role)
{
	uid_t	 uid;
	gid_t	 gid;

	if (!d.d_privileged)
		return;
	identity_get(role, &uid, &gid);
	if (setgroups(1, &gid) == -1)
		exec_fail("groups");
	errno = EPERM;
	if (uid == 0)
		exec_fail("a program does not run as root");
	if (setresgid(gid, gid, gid) == -1 || setresuid(uid, uid, uid) == -1)
		exec_fail("user");
}

/*
 * The user's own, then what the configuration has for this program, which goes
 * before it.
 */
static void
exec_environment(const struct program_spec *ps, char **envp)
{
	static const char	*const names[] = { "PATH", "HOME", "USER" };
	const struct passwd	*pw = getpwuid(getuid());
	const char		*values[] = { PLUGIN_PATH,
	    pw != NULL ? pw->pw_dir : "/", pw != NULL ? pw->pw_name : "" };
	const struct conf_word	*wd;
	size_t			 i, n = 0, len;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		len = strlen(names[i]);
		TAILQ_FOREACH(wd, ps->ps_environment, wd_entry)
			if (strncmp(wd->wd_text, names[i], len) == 0 &&
			    wd->wd_text[len] == '=')
				break;
		if (wd == NULL && asprintf(&envp[n++], "%s=%s", names[i],
		    values[i]) == -1)
			exec_fail("environment");
	}
	TAILQ_FOREACH(wd, ps->ps_environment, wd_entry) {
		errno = E2BIG;
		if (n == WORDS_MAX ||
		    (envp[n++] = strdup(wd->wd_text)) == NULL)
			exec_fail("environment");
	}
	envp[n] = NULL;
}

/*
 * PATH, and for a custom sandbox which session it is and what its block says.
 * Nothing that a client says: no sandbox holds the program.
 */
static void
exec_plain_environment(const struct program_spec *ps, char **envp)
{
	const struct conf_pair	*pr;
	size_t			 n = 0;
	bool			 has_path = false;

	if (ps->ps_session != NULL && asprintf(&envp[n++],
	    "EGRESSD_SESSION=%s", ps->ps_session) == -1)
		exec_fail("environment");
	if (ps->ps_variables != NULL)
		TAILQ_FOREACH(pr, ps->ps_variables, pr_entry) {
			has_path |= strcmp(pr->pr_key, "PATH") == 0;
			if (n == ENVIRONMENT_MAX || asprintf(&envp[n++],
			    "%s=%s", pr->pr_key, pr->pr_value) == -1)
				exec_fail("environment");
		}
	if (!has_path && (envp[n++] = strdup("PATH=/usr/bin:/bin")) == NULL)
		exec_fail("environment");
	envp[n] = NULL;
}

/* Looking up a user may take a while, and the parent must not wait. */
static const struct passwd *
exec_user(const struct program_spec *ps)
{
	const struct passwd	*pw;

	errno = 0;
	pw = ps->ps_user != NULL ? getpwnam(ps->ps_user) :
	    getpwuid(ps->ps_uid);
	if (pw == NULL)
		exec_fail(ps->ps_user != NULL ? ps->ps_user : "the caller");
	return pw;
}

static void
exec_become(const struct program_spec *ps)
{
	if (ps->ps_user == NULL && ps->ps_uid == 0)
		exec_as_role(ps->ps_role);
	else
		exec_as(exec_user(ps));
}

/* A daemon that is not root has no user for it but its own. */
static void __attribute__((__noreturn__))
exec_launch(const struct program_spec *ps, char **argv, char **envp)
{
	const struct passwd	*pw;
	struct launch		 la = {
		.la_cwd = "/", .la_program = argv[0], .la_argv = argv,
		.la_envp = envp
	};

	errno = 0;
	pw = ps->ps_user == NULL && ps->ps_uid == 0 ? getpwuid(geteuid()) :
	    exec_user(ps);
	if (pw == NULL)
		exec_fail("the daemon's user");
	la.la_user = pw->pw_name;
	launch_exec(&la);
}

void
exec_signals(void)
{
	sigset_t	 none;
	int		 sig;

	for (sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void
exec_limits(void)
{
	struct rlimit	 core = { 0, 0 }, files;

	if (setrlimit(RLIMIT_CORE, &core) == -1 ||
	    getrlimit(RLIMIT_NOFILE, &files) == -1)
		exec_fail("limits");
	if (files.rlim_cur > FILES_SOFT)
		files.rlim_cur = FILES_SOFT;
	if (setrlimit(RLIMIT_NOFILE, &files) == -1)
		exec_fail("limits");
}

static void
exec_descriptors(int channel, int errfd)
{
	/* First out of the way of 0 to 2, whichever of these are open. */
	if ((errfd = fcntl(errfd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (channel = fcntl(channel, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    dup2(errfd, STDERR_FILENO) == -1 ||
	    dup2(channel, STDIN_FILENO) == -1 ||
	    dup2(channel, STDOUT_FILENO) == -1)
		_exit(127);
#ifdef __linux__
	if (close_range(STDERR_FILENO + 1, UINT_MAX, 0) == -1)
		exec_fail("close_range");
#else
	closefrom(STDERR_FILENO + 1);
#endif
}

void
program_exec(const struct program_spec *ps, int channel, int errfd)
{
	char			*argv[WORDS_MAX + 1];
	char			*envp[ENVIRONMENT_MAX + 2];
	const struct conf_word	*wd;
	size_t			 n = 0;

	setsid();
	exec_signals();
	exec_descriptors(channel, errfd);
	TAILQ_FOREACH(wd, ps->ps_command, wd_entry) {
		errno = E2BIG;
		if (n == WORDS_MAX || (argv[n++] = strdup(wd->wd_text)) == NULL)
			exec_fail("command");
	}
	argv[n] = NULL;
	exec_limits();
	umask(077);
	exec_plain_environment(ps, envp);
	if (ps->ps_launcher != NULL)
		exec_launch(ps, argv, envp);
	exec_become(ps);
	if (ps->ps_environment != NULL) {
		exec_environment(ps, envp);
		/* By which a name without a slash is looked up. */
		setenv("PATH", PLUGIN_PATH, 1);
	}
	if (chdir("/") == -1)
		exec_fail("/");
#ifdef __linux__
	/* After the change of user, which clears the first. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		exec_fail("no_new_privs");
#endif
	if (ps->ps_environment == NULL)
		execve(argv[0], argv, envp);
	else
		execvpe(argv[0], argv, envp);
	exec_fail(argv[0]);
}
