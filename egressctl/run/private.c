/* SPDX-License-Identifier: ISC */

/*
 * egressctl: an egressd of our own, for one run.  It has the rights of whoever
 * called us and one client, us, over a pair of sockets; there is nothing of it
 * in the file system that a sandbox could find.  It ends with us, however we
 * end.
 */

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

#define CONTROL_FD	3	/* number of the control socket in egressd */
#define START_MS	10000
#define STOP_MS		5000
#define RETRY_MS	10	/* between attempts to connect */

static const char	example[] =
	"policy \"default\" {\n"
	"\tallow host \"api.github.com\"\n"
	"\tallow host \"pypi.org\" method { GET, HEAD }\n"
	"}\n";

/*
 * The configuration, or NULL after saying what could be done about it.  A
 * profile knows better than we what its program needs.
 */
const char *
private_conf(const struct invocation *in, const struct profile *pf)
{
	const char	*conf, *own;

	if ((conf = conf_choose(in, &own)) != NULL)
		return conf;
	warnx("nobody listens on %s, and there is no configuration for an "
	    "egressd of your own: %s: %s", in->in_socket, path_conf,
	    strerror(errno));
	fprintf(stderr, "Name one with -f, or write %s, for example:\n\n",
	    own != NULL ? own : "one");
	if (pf->pf_hosts.ws_count > 0)
		profile_policy(pf, stderr);
	else
		fputs(example, stderr);
	return NULL;
}

/* Runs in the new process and must not return. */
static void __attribute__((__noreturn__))
daemon_exec(char *argv[], int control, int log, pid_t parent)
{
	char	 marks[] = "JOURNAL_STREAM=0:0", *envp[] = { NULL, NULL };
	int	 null;

	/* Terminal signals do not reach egressd, but it ends with us. */
	if (setsid() == -1 || prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == -1)
		err(1, "private egressd");
	if (getppid() != parent)
		_exit(1);
	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 || dup2(null, STDOUT_FILENO) == -1)
		err(1, "/dev/null");
	if (control == CONTROL_FD)
		fcntl(control, F_SETFD, 0);
	else if (control != -1 && dup2(control, CONTROL_FD) == -1)
		err(1, "dup2");
	if (log != -1) {
		/* Lines then begin with a priority, which log_put reads. */
		envp[0] = marks;
		if (dup2(log, STDERR_FILENO) == -1)
			err(1, "dup2");
	}
	execve(path_egressd, argv, envp);
	err(1, "%s", path_egressd);
}

/*
 * With verbose it speaks to our standard error, else into a pipe that is read
 * when it has ended, so that it does not write between the command's lines.
 * What the pipe cannot hold is lost: a daemon that waits for a reader of its
 * log would be worse.
 */
static int
daemon_fork(struct private *pv, const char *conf, int control, int verbose)
{
	char	 dp[] = "-dp", f[] = "-f", c[] = "-C", three[] = "3";
	char	 arg0[] = "egressd", s[] = "-s", *file = strdup(conf);
	char	*argv[] = { arg0, dp, f, file, c, three, NULL };
	int	 log[2] = { -1, -1 };
	pid_t	 self = getpid();

	if (control == -1) {
		argv[4] = s;
		argv[5] = pv->pv_socket;
	}
	if (file == NULL ||
	    (!verbose && pipe2(log, O_CLOEXEC | O_NONBLOCK) == -1) ||
	    (pv->pv_pid = fork()) == -1) {
		warn("private egressd");
		pv->pv_pid = 0;
		return -1;
	}
	if (pv->pv_pid == 0)
		daemon_exec(argv, control, log[1], self);
	free(file);
	if (log[1] != -1)
		close(log[1]);
	pv->pv_log = log[0];
	return 0;
}

/* Collects a private egressd that ended of itself. */
void
private_reap(struct private *pv)
{
	int	status;

	if (pv->pv_pid != 0 && waitpid(pv->pv_pid, &status, WNOHANG) > 0)
		pv->pv_pid = 0;
}

/* Connects to the socket as soon as egressd has made it. */
static int
connect_soon(struct private *pv, struct client *cl)
{
	struct timespec	ts = { 0, RETRY_MS * 1000000L };
	int		error, i;

	for (i = 0; i < START_MS / RETRY_MS; i++) {
		if ((error = client_try(cl, pv->pv_socket)) == 0) {
			cl->cl_own = 1;
			return 0;
		}
		client_close(cl);
		if (error != ENOENT && error != ECONNREFUSED)
			break;
		private_reap(pv);
		if (pv->pv_pid == 0)
			return -1;
		nanosleep(&ts, NULL);
	}
	if (error > 0)
		explain_connect(pv->pv_socket, error);
	return -1;
}

static int
start_listening(struct private *pv, struct client *cl, const char *conf,
    const char *dir, int verbose)
{
	char	*real;
	int	 len;

	if ((real = realpath(dir, NULL)) == NULL) {
		warn("%s", dir);
		return -1;
	}
	len = snprintf(pv->pv_socket, sizeof(pv->pv_socket), "%s/egressd.sock",
	    real);
	free(real);
	if ((size_t)len >= sizeof(pv->pv_socket)) {
		warnx("%s: the name is too long", dir);
		return -1;
	}
	if (daemon_fork(pv, conf, -1, verbose) == -1)
		return -1;
	return connect_soon(pv, cl);
}

/*
 * Connected when it returns 0.  Without a directory for its socket it has
 * none, and serves us as soon as it is ready.
 */
int
private_start(struct private *pv, struct client *cl, const char *conf,
    const char *dir, int verbose)
{
	int	sv[2], rv;

	pv->pv_log = -1;
	if (dir != NULL)
		return start_listening(pv, cl, conf, dir, verbose);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1) {
		warn("socketpair");
		return -1;
	}
	rv = daemon_fork(pv, conf, sv[1], verbose);
	close(sv[1]);
	client_adopt(cl, sv[0], "private egressd");
	cl->cl_own = 1;
	return rv;
}

/* SIGTERM, and after STOP_MS SIGKILL. */
static void
daemon_end(pid_t pid)
{
	struct pollfd	pfd = { .events = POLLIN };

	kill(pid, SIGTERM);
	pfd.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (poll(&pfd, 1, STOP_MS) == -1 && errno == EINTR)
		;
	if (pfd.revents == 0) {
		warnx("the private egressd does not end, killed");
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
	if (pfd.fd != -1)
		close(pfd.fd);
}

/* Whether a line is below a warning; unmarked ones precede the log. */
static int
is_idle_talk(const char **line)
{
	const char	*s = *line;

	if (s[0] != '<' || s[1] < '0' || s[1] > '7' || s[2] != '>')
		return 0;
	*line += 3;
	return s[1] - '0' > LOG_WARNING;
}

static void
log_put(int fd)
{
	const char	*text;
	char		*line = NULL;
	size_t		 size = 0;
	FILE		*fp;

	if ((fp = fdopen(fd, "r")) == NULL) {
		warn("log of the private egressd");
		close(fd);
		return;
	}
	while (getline(&line, &size, fp) != -1) {
		text = line;
		if (!is_idle_talk(&text))
			fputs(text, stderr);
	}
	free(line);
	fclose(fp);
}

/*
 * Its warnings are shown also if the command has succeeded: records that were
 * lost, for one, are not to be missed much later.
 */
void
private_stop(struct private *pv, int failed)
{
	if (pv->pv_pid != 0)
		daemon_end(pv->pv_pid);
	pv->pv_pid = 0;
	if (pv->pv_log == -1)
		return;
	if (failed || !pv->pv_quiet)
		log_put(pv->pv_log);
	else
		close(pv->pv_log);
	pv->pv_log = -1;
}
