/* SPDX-License-Identifier: ISC */

/*
 * egressd: the parent process.  It reads the configuration, starts the other
 * programs and keeps them going.  It listens to its children, to signals and
 * to nobody else.
 */

#include <sys/resource.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "parent.h"
#include "sandbox.h"

struct daemon	 d = { .d_client = -1 };

static int	 ready_fd = -1;		/* who started us in the foreground */

static void __attribute__((noreturn))
usage(void)
{
	fprintf(stderr, "usage: egressd [-dnpVv] [-C fd] [-f file] "
	    "[-s socket]\n");
	exit(2);
}

int
why_set(struct why *why, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return -1;
}

/* All ends, in order; the exit status tells whether it should have. */
void
parent_stop(int status)
{
	if (d.d_stopping)
		return;
	d.d_stopping = true;
	d.d_status = status;
	notify_send("STOPPING=1");
	runtime_withdraw(d.d_runtime);
	procs_stop();
}

/* A child has come further: is the whole daemon ready for work now? */
void
parent_progress(void)
{
	struct why	 why;

	if (d.d_ready || d.d_stopping || reload_running() ||
	    !procs_all_run(R_CHILDREN))
		return;
	if (d.d_client != -1)
		ipc_send(proc_find(ROLE_CONTROLD)->pr_ipc, d.d_client, CLIENT,
		    client, .uid = getuid(), .gid = getgid());
	else if (pid_publish(&why) == -1) {
		log_errorx("%s", why.text);
		parent_stop(1);
		return;
	}
	d.d_ready = true;
	log_info("ready, generation %llu", (unsigned long long)d.d_generation);
	notify_send("READY=1");
	if (ready_fd != -1) {
		if (write(ready_fd, "", 1) == -1)
			log_warn("whoever started us is gone");
		close(ready_fd);
		ready_fd = -1;
		if (dup2(STDIN_FILENO, STDERR_FILENO) == -1)
			fatal("standard error");
	}
}

static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	(void)what, (void)arg;
	switch (sig) {
	case SIGCHLD:
		procs_reap();
		break;
	case SIGHUP:
		reload_ask(NULL);
		break;
	default:
		log_info("stopping: signal %d", (int)sig);
		parent_stop(0);
	}
}

static void
catch_signals(void)
{
	static const int	 sigs[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM };
	static struct event	 ev[sizeof(sigs) / sizeof(sigs[0])];
	size_t			 i;

	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		event_assign(&ev[i], d.d_base, sigs[i], EV_SIGNAL | EV_PERSIST,
		    on_signal, NULL);
		event_priority_set(&ev[i], 0);
		if (event_add(&ev[i], NULL) == -1)
			fatalx("signal %d", sigs[i]);
	}
	signal(SIGPIPE, SIG_IGN);
}

/*
 * Leave the terminal.  The process that was called stays until we are ready
 * or have failed, so that its exit status is the truth.
 */
static void
daemonize(void)
{
	char	 byte;
	int	 fds[2], null;

	if (pipe2(fds, O_CLOEXEC) == -1)
		fatal("pipe");
	switch (fork()) {
	case -1:
		fatal("fork");
	case 0:
		break;
	default:
		close(fds[1]);
		_exit(read(fds[0], &byte, 1) == 1 ? 0 : 1);
	}
	close(fds[0]);
	ready_fd = fds[1];
	if (setsid() == -1 || chdir("/") == -1)
		fatal("setsid");
	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1)
		fatal("/dev/null");
	if (null > STDERR_FILENO)
		close(null);
	log_to_syslog();
}

/* Descriptors 0 to 2 exist, whoever started us. */
static void
open_standard(void)
{
	int	 fd;

	do {
		if ((fd = open("/dev/null", O_RDWR)) == -1)
			err(1, "/dev/null");
	} while (fd <= STDERR_FILENO);
	close(fd);
}

static void
raise_limits(void)
{
	struct rlimit	 rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("limit of descriptors");
	rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		log_warn("limit of descriptors");
}

/*
 * A daemon for one run may be one of several with the same configuration: it
 * leaves alone what only one can have, ports of fixed sessions and sockets.
 */
struct config *
parent_parse(struct conf_errors *errs)
{
	struct config	*conf;

	if ((conf = conf_parse(d.d_conf_path, errs)) == NULL)
		return NULL;
	if (d.d_private) {
		TAILQ_INIT(&conf->cf_sessions);
		conf->cf_control = conf->cf_control_ro = NULL;
		conf->cf_audit_stdout = false;
	} else if (geteuid() == 0)
		identity_sandboxes(conf, errs);
	if (errs->ce_count == 0)
		return conf;
	conf_free(conf);
	return NULL;
}

static struct config *
load(void)
{
	struct conf_errors	 errs = { .ce_count = 0 };
	struct config		*conf;
	size_t			 i;

	if ((conf = parent_parse(&errs)) != NULL)
		return conf;
	for (i = 0; i < errs.ce_count; i++)
		fprintf(stderr, "%s\n", errs.ce_msg[i]);
	if (errs.ce_dropped > 0)
		fprintf(stderr, "%s: %zu more errors\n", d.d_conf_path,
		    errs.ce_dropped);
	exit(1);
}

static void
check_only(struct config *conf)
{
	keys_warn(conf, true);
	conf_deciders_warn(conf);
	if (d.d_verbose == 0)
		fprintf(stderr, "configuration OK\n");
	else if (conf_print(conf, stdout) == -1 || fflush(stdout) == EOF)
		err(1, "standard output");
	conf_free(conf);
	exit(0);
}

/* The level of the configuration, made more talkative by each -v. */
enum log_level
parent_log_level(const struct config *conf)
{
	int	 level = conf->cf_log + d.d_verbose;

	return level < LOG_LVL_MAX ? level : LOG_LVL_MAX - 1;
}

static void
run(struct config *conf)
{
	struct runtime	*rt;
	struct why	 why;
	const char	*missing;

	d.d_privileged = geteuid() == 0;
	arc4random_buf(&d.d_life, sizeof(d.d_life));
	d.d_started = clock_wall_ns();
	/* The journal tells priorities apart by a mark before each line. */
	d.d_journal = d.d_debug && getenv("JOURNAL_STREAM") != NULL;
	log_init("egressd", parent_log_level(conf), d.d_journal);
	notify_init();
	peer_init();
	raise_limits();
	umask(022);
	/* Said once, and not by each child. */
	if ((missing = sandbox_missing()) != NULL)
		fatalx("%s", missing);
	if (needs_check(&why) == -1 || identity_check(conf, &why) == -1 ||
	    (rt = runtime_open(conf, NULL, &why)) == NULL) {
		pid_withdraw();
		fatalx("%s", why.text);
	}
	if (!d.d_debug)
		daemonize();
	if ((d.d_base = event_base_new()) == NULL ||
	    event_base_priority_init(d.d_base, 2) == -1)
		fatalx("event_base_new");
	catch_signals();
	box_groups_begin();
	if (procs_start() == 0)
		reload_start(conf, rt);
	else {
		runtime_abort(rt);
		parent_stop(1);
	}
	event_base_dispatch(d.d_base);

	cgroup_end();
	reload_drop();
	runtime_remove(d.d_runtime);
	pid_withdraw();
	log_info("stopped");
	exit(d.d_status);
}

/* A connected socket that whoever started us has left open. */
static int
inherited(const char *number)
{
	struct stat	 st;
	const char	*why;
	int		 fd;

	fd = strtonum(number, STDERR_FILENO + 1, 1023, &why);
	if (why != NULL)
		errx(2, "-C %s: %s", number, why);
	if (fstat(fd, &st) == -1 || !S_ISSOCK(st.st_mode))
		errx(2, "-C %s: no socket", number);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) == -1)
		err(1, "-C %s", number);
	return fd;
}

/* Close what the caller left open, such as a file that it locks. */
static void
close_inherited(void)
{
	int	 first = STDERR_FILENO + 1;

	if (d.d_client > first) {
		if (dup3(d.d_client, first, O_CLOEXEC) == -1)
			err(1, "-C %d", d.d_client);
		d.d_client = first;
	}
	closefrom(d.d_client == -1 ? first : first + 1);
}

/*
 * A reload may happen in another directory.  Links are kept: where one leads
 * is what changes, as in a volume whose content is swapped by its link.
 */
static void
keep_path(const char **name, char *path, size_t size)
{
	size_t	 len;

	if (**name == '/')
		return;
	if (getcwd(path, size) == NULL)
		err(1, "%s", *name);
	len = strlen(path);
	if ((size_t)snprintf(path + len, size - len, "/%s", *name) >=
	    size - len)
		errx(1, "%s: the name is too long", *name);
	*name = path;
}

int
main(int argc, char *argv[])
{
	struct config	*conf;
	char		 path[PATH_MAX];
	bool		 check = false;
	int		 ch;

	open_standard();
	paths_init();
	d.d_conf_path = path_conf;
	while ((ch = getopt(argc, argv, "C:df:nps:Vv")) != -1)
		switch (ch) {
		case 'C':
			d.d_client = inherited(optarg);
			break;
		case 'd':
			d.d_debug = true;
			break;
		case 'f':
			d.d_conf_path = optarg;
			break;
		case 'n':
			check = true;
			break;
		case 'p':
			d.d_private = true;
			break;
		case 's':
			d.d_socket = optarg;
			break;
		case 'V':
			puts("egressd " EGRESSD_VERSION);
			return fflush(stdout) == EOF;
		case 'v':
			d.d_verbose++;
			break;
		default:
			usage();
		}
	if (argc != optind)
		usage();
	close_inherited();
	conf = load();
	if (check)
		check_only(conf);
	keep_path(&d.d_conf_path, path, sizeof(path));
	if (d.d_socket != NULL && d.d_socket[0] != '/')
		errx(2, "-s %s: not an absolute path", d.d_socket);
	run(conf);
}
