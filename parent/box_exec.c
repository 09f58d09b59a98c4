/* SPDX-License-Identifier: ISC */

/*
 * The parent's new child runs this, on its way to being egressd-box.  Whatever
 * cannot be done ends the process, and its last words are what the client is
 * told: a function that returns has succeeded.  For a custom sandbox and for a
 * pod the process ends before that, and well if the client may have it.
 *
 * From the change of user on, every path is looked up with the rights of
 * whoever the sandbox runs as.  A client may name a directory only where that
 * is itself, or below the one that the configuration names; box sees to that,
 * when it has resolved the name.
 */

#include <sys/prctl.h>
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

#include "boxenv.h"
#include "parent.h"

#define FD_ENGINE	3
#define FD_CHANNEL	4
#define FD_MOUNTS	5
#define GROUPS_MAX	1024

/* A list that execve(2) takes. */
struct words {
	char	**wo_words;
	size_t	  wo_count;
};

static void __attribute__((__format__(__printf__, 2, 3)))
add(struct words *wo, const char *fmt, ...)
{
	va_list	 ap;

	wo->wo_words = reallocarray(wo->wo_words, wo->wo_count + 2,
	    sizeof(*wo->wo_words));
	if (wo->wo_words == NULL)
		exec_fail("arguments");
	va_start(ap, fmt);
	if (vasprintf(&wo->wo_words[wo->wo_count++], fmt, ap) == -1)
		exec_fail("arguments");
	va_end(ap);
	wo->wo_words[wo->wo_count] = NULL;
}

/* ---- who ---- */

static bool
is_id(const char *name, unsigned int id)
{
	char	 text[16];

	snprintf(text, sizeof(text), "%u", id);
	return strcmp(name, text) == 0;
}

static bool
is_user(const char *name, uid_t uid)
{
	const struct passwd	*pw = getpwnam(name);

	return pw != NULL ? pw->pw_uid == uid : is_id(name, uid);
}

/* Whether the client is in a group, by its credentials or the database. */
static bool
is_in_group(const char *name, const struct box_spec *bs)
{
	const struct passwd	*pw = getpwuid(bs->bs_uid);
	const struct group	*gr = getgrnam(name);
	gid_t			 groups[GROUPS_MAX];
	int			 i, n = GROUPS_MAX;

	if (gr == NULL)
		return is_id(name, bs->bs_gid);
	if (gr->gr_gid == bs->bs_gid)
		return true;
	if (pw == NULL || getgrouplist(pw->pw_name, pw->pw_gid, groups,
	    &n) == -1)
		return false;
	for (i = 0; i < n; i++)
		if (groups[i] == gr->gr_gid)
			return true;
	return false;
}

/* root may start all of them. */
static void
check_starter(const struct box_spec *bs, const struct conf_sandbox *sb)
{
	const struct conf_starter	*st;

	if (sb == NULL || TAILQ_EMPTY(&sb->sb_for) || bs->bs_uid == 0)
		return;
	TAILQ_FOREACH(st, &sb->sb_for, st_entry)
		if (st->st_group ? is_in_group(st->st_name, bs) :
		    is_user(st->st_name, bs->bs_uid))
			return;
	exec_refuse("sandbox %s is not for user %u", sb->sb_name, bs->bs_uid);
}

/* As whom a sandbox runs; ends the process if that cannot be. */
const struct passwd *
box_user(const struct box_spec *bs, const struct conf_sandbox *sb)
{
	const struct passwd	*pw;

	errno = 0;
	if (sb != NULL && sb->sb_user != NULL)
		pw = getpwnam(sb->sb_user);
	else
		pw = getpwuid(d.d_privileged ? bs->bs_uid : geteuid());
	if (pw == NULL)
		exec_say("sandbox: no such user: %s", sb != NULL &&
		    sb->sb_user != NULL ? sb->sb_user : "the caller's");
	if (d.d_privileged && pw->pw_uid == 0)
		exec_say("sandbox: user %s is root", pw->pw_name);
	if (!d.d_privileged && pw->pw_uid != geteuid())
		exec_say("sandbox: user %s: the daemon is not root",
		    pw->pw_name);
	return pw;
}

/* ---- what ---- */

static void
add_limit(struct words *wo, const char *name, uint64_t value)
{
	if (value == 0)
		return;
	add(wo, "-l");
	add(wo, "%s=%llu", name, (unsigned long long)value);
}

static void
add_mounts(struct words *wo, const struct conf_sandbox *sb)
{
	const struct conf_mount	*mn;

	TAILQ_FOREACH(mn, &sb->sb_expose, mn_entry) {
		add(wo, mn->mn_write ? "-X" : "-x");
		add(wo, "%s", mn->mn_source);
	}
	TAILQ_FOREACH(mn, &sb->sb_mounts, mn_entry) {
		add(wo, mn->mn_write ? "-M" : "-m");
		add(wo, "%s:%s", mn->mn_source, mn->mn_target);
	}
}

/* Where commands run, in memory any name will do; else see find_cwd(). */
static void
add_cwd(struct words *wo, const struct box_spec *bs,
    const struct conf_sandbox *sb)
{
	const char	*cwd = bs->bs_cwd;
	const char	*own = sb != NULL ? sb->sb_cwd : NULL;
	bool		 virtual = sb != NULL && sb->sb_kind == SANDBOX_VIRTUAL;

	if (own == NULL && (!virtual || *cwd == '\0'))
		return;
	add(wo, "-w");
	add(wo, "%s", *cwd != '\0' ? cwd : own);
	/* A client's wish counts below the directory of the configuration. */
	if (*cwd != '\0' && !virtual) {
		add(wo, "-W");
		add(wo, "%s", own);
	}
}

/*
 * Where the configuration names no directory, the client does, if the sandbox
 * has no rights but the client's own.  box takes where it stands for what an
 * ordinary user's command could stand in, and refuses a home or the system.
 */
static const char *
find_cwd(const struct box_spec *bs, const struct conf_sandbox *sb,
    const struct passwd *pw)
{
	const char	*cwd = "/";

	if (sb == NULL ||
	    (sb->sb_kind == SANDBOX_LOCAL && sb->sb_cwd == NULL)) {
		cwd = bs->bs_cwd;
		if (*cwd == '\0')
			exec_say("sandbox: cwd is wanted: neither the request "
			    "nor the configuration names one");
		if (bs->bs_uid != pw->pw_uid ||
		    (d.d_privileged && !sb->sb_user_caller))
			exec_say("sandbox %s: its block has no cwd, nor "
			    "\"user caller\": it cannot run in %s",
			    sb != NULL ? sb->sb_name : "", cwd);
	}
	return cwd;
}

static void
add_block(struct words *wo, const struct conf_sandbox *sb)
{
	if (sb->sb_kind == SANDBOX_VIRTUAL) {
		add(wo, "-V");
		add(wo, "%llu", (unsigned long long)sb->sb_size);
	}
	if (sb->sb_forward)
		add(wo, "-F");
	/* A control group counts better; the launcher knows if it has one. */
	if (d.d_cgroup != CGROUP_LIMIT && d.d_launcher == NULL)
		add_limit(wo, "memory", sb->sb_limits.sl_memory);
	add_limit(wo, "processes", sb->sb_limits.sl_processes);
	add_limit(wo, "file", sb->sb_limits.sl_file);
	add_limit(wo, "cpu", (sb->sb_limits.sl_cpu + 999) / 1000);
	add_mounts(wo, sb);
}

/*
 * Variables of commands come from strangers, and box runs before anything is
 * confined: GLIBC_TUNABLES, for one, is read before main().  So box gets them
 * under names that mean nothing, which it undoes for commands (box/env.c).
 */
static void
add_given(struct words *wo, const struct box_spec *bs,
    const struct conf_sandbox *sb, const struct passwd *pw)
{
	const struct conf_pair	*pr;
	const char		*p, *end;

	add(wo, BOX_GIVEN "PATH=/usr/local/bin:/usr/bin:/bin");
	add(wo, BOX_GIVEN "HOME=%s", pw->pw_dir);
	add(wo, BOX_GIVEN "USER=%s", pw->pw_name);
	add(wo, BOX_GIVEN "LOGNAME=%s", pw->pw_name);
	add(wo, BOX_GIVEN "LANG=C.UTF-8");
	if (sb != NULL)
		TAILQ_FOREACH(pr, &sb->sb_environment, pr_entry)
			add(wo, BOX_GIVEN "%s=%s", pr->pr_key, pr->pr_value);
	end = bs->bs_variables + bs->bs_variableslen;
	for (p = bs->bs_variables; p < end; p += strlen(p) + 1)
		add(wo, BOX_GIVEN "%s", p);
}

/* Of two of one name the first counts for getenv(3): keep the last. */
static void
drop_doubles(struct words *wo)
{
	size_t	 i, j, len;

	for (i = 0; i < wo->wo_count; i++) {
		len = strcspn(wo->wo_words[i], "=") + 1;
		for (j = i + 1; j < wo->wo_count; j++)
			if (strncmp(wo->wo_words[i], wo->wo_words[j],
			    len) == 0)
				break;
		if (j == wo->wo_count)
			continue;
		memmove(&wo->wo_words[i], &wo->wo_words[i + 1],
		    (wo->wo_count - i) * sizeof(*wo->wo_words));
		wo->wo_count--;
		i--;
	}
}

/* ---- where ---- */

/* Of these the last two may be missing: -1. */
static void
take_descriptors(int engine, int channel, int errfd, int said, int mounts)
{
	int	 null, last = mounts == -1 ? FD_CHANNEL : FD_MOUNTS;

	/* First out of the way of 0 to 5, whichever of these are open. */
	if ((errfd = fcntl(errfd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (engine = fcntl(engine, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (channel = fcntl(channel, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (said != -1 &&
	    (said = fcntl(said, F_DUPFD_CLOEXEC, 10)) == -1) ||
	    (mounts != -1 &&
	    (mounts = fcntl(mounts, F_DUPFD_CLOEXEC, 10)) == -1) ||
	    (null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    dup2(errfd, STDERR_FILENO) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 ||
	    dup2(said != -1 ? said : null, STDOUT_FILENO) == -1 ||
	    dup2(engine, FD_ENGINE) == -1 || dup2(channel, FD_CHANNEL) == -1 ||
	    (mounts != -1 && dup2(mounts, FD_MOUNTS) == -1))
		_exit(127);
	/* Where one of them was its own number, it is still to be closed. */
	if (fcntl(FD_ENGINE, F_SETFD, 0) == -1 ||
	    fcntl(FD_CHANNEL, F_SETFD, 0) == -1 ||
	    (mounts != -1 && fcntl(FD_MOUNTS, F_SETFD, 0) == -1))
		_exit(127);
#ifdef __linux__
	if (close_range(last + 1, UINT_MAX, 0) == -1)
		exec_fail("close_range");
#else
	closefrom(last + 1);
#endif
}

/* A program that is not there would be told of at each connection only. */
static void __attribute__((__noreturn__))
check_program(const char *program)
{
	struct stat	 st;

	if (stat(program, &st) == -1)
		exec_fail(program);
	if (!S_ISREG(st.st_mode) || access(program, X_OK) == -1)
		exec_say("%s: not a program", program);
	_exit(0);
}

static void __attribute__((__noreturn__))
launch_box(const struct conf_sandbox *sb, const struct passwd *pw,
    const char *cwd, const char *program, const struct words *argv,
    const struct words *envp)
{
	struct launch	 la = {
		.la_user = pw->pw_name, .la_cwd = cwd,
		.la_program = program, .la_argv = argv->wo_words,
		.la_envp = envp->wo_words
	};

	if (sb != NULL) {
		la.la_data = sb->sb_limits.sl_memory;
		la.la_memory = box_memory(sb);
		la.la_processes = sb->sb_limits.sl_processes;
	}
	launch_exec(&la);
}

void
box_exec(const struct box_spec *bs, const struct conf_sandbox *sb, int engine,
    int channel, int errfd)
{
	struct words		 argv = { NULL, 0 }, envp = { NULL, 0 };
	const struct passwd	*pw;
	const char		*cwd;
	char			 path[PATH_LEN];

	setsid();
	exec_signals();
	take_descriptors(engine, channel, errfd, bs->bs_said,
	    bs->bs_namespace);
	exec_limits();
	check_starter(bs, sb);
	if (sb != NULL && sb->sb_kind == SANDBOX_KUBERNETES)
		_exit(0);
	pw = box_user(bs, sb);
	if (sb != NULL && sb->sb_kind == SANDBOX_CUSTOM) {
		exec_as(pw);
		check_program(sb->sb_program);
	}
	add(&argv, "egressd-box");
	add(&argv, "-qe");
	add(&argv, "%d", FD_ENGINE);
	add(&argv, "-c");
	add(&argv, "%d", FD_CHANNEL);
	if (bs->bs_namespace != -1) {
		add(&argv, "-n");
		add(&argv, "%d", FD_MOUNTS);
	}
	add(&argv, "-h");
	add(&argv, "%s", pw->pw_dir);
	if (sb != NULL)
		add_block(&argv, sb);
	add_cwd(&argv, bs, sb);
	add_given(&envp, bs, sb, pw);
	drop_doubles(&envp);
	/* These two are for box itself. */
	add(&envp, "HOME=%s", pw->pw_dir);
	add(&envp, "USER=%s", pw->pw_name);
	cwd = find_cwd(bs, sb, pw);
	snprintf(path, sizeof(path), "%s/egressd-box", path_libexec);
	if (d.d_launcher != NULL)
		launch_box(sb, pw, cwd, path, &argv, &envp);
	exec_as(pw);
	if (chdir(cwd) == -1)
		exec_fail(cwd);
#ifdef __linux__
	/* After the change of user, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		exec_fail("parent-death signal");
#endif
	execve(path, argv.wo_words, envp.wo_words);
	exec_fail(path);
}
