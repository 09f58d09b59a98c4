/* SPDX-License-Identifier: ISC */

/*
 * egressd-box is the hand inside a local sandbox.  The caller runs it with
 * its own rights, terminal and working directory; nobody trusts it.
 *
 *	egressd-box -e fd ... -- command
 *	egressd-box -e fd -c fd ...		(hands in place of a command)
 *	egressd-box hands ...			(hands/hands.c; no sandbox)
 *
 *	   caller's namespaces | outer user ns, network     | inner user ns
 *	  ---------------------+----------------------------+---------------
 *	   egressctl --> box   |  box, fence, pid 1         | command, ...
 *	                 |     |                            |
 *	                 +-----+-- pair -- engine
 *
 *  1. Descriptors that are not the command's are closed: what the caller left
 *     open would lead out of the sandbox.  So would a directory or a socket as
 *     standard input (stdio.c).
 *  2. Paths and the working directory are resolved while names still mean
 *     what the caller means (paths.c).
 *  3. box enters the outer user namespace and a network namespace that has
 *     no way out, gives it addresses and the route that makes all the world
 *     local, listens there, and has egressd-fence set the packet filter
 *     (ns.c, net.c).
 *  4. The listeners go to the engine, and box keeps no copy: when the engine
 *     dies, the kernel refuses.  Trust files and the word to go come back;
 *     nothing of the command exists before that (gate.c).
 *     The broker is forked, which will make the command's connections, or
 *     not (broker.c).
 *  5. The first process of a new set of process numbers is forked.  It makes
 *     the file system (root.c) and forks the command's process, which enters
 *     the inner user namespace, confines itself and becomes the command, or
 *     hands (init.c, confine.c, limit.c, hands/hands.c).  box and the first
 *     process give up every right they have in the outer namespace.
 *  6. box passes signals and stops on, copies between sockets of the caller's
 *     and pipes of the command's (relay.c), and ends as the command ended.  If
 *     box dies, the first process dies, and the kernel ends all others
 *     (job.c).
 *
 * Exit status: the command's; 125 if the sandbox could not be made or the
 * gate was lost before the command ended, 126 and 127 if the command could
 * not be run or found; a command that died of a signal makes box die of it.
 */

#include <sys/socket.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "hands/hands.h"

static void __attribute__((__noreturn__))
usage(void)
{
	fprintf(stderr, "usage: egressd-box -e fd [-FqrU] [-f fence] "
	    "[-h home] [-k directory]\n\t[-l limit=value] "
	    "[-m source:target] [-M source:target] [-n fd] [-V size]\n\t"
	    "[-w directory] [-W directory] [-x path] [-X path]\n\t"
	    "-c fd | -- command [argument ...]\n"
	    "       egressd-box hands [-F] [-d directory]\n");
	exit(BOX_FAILED);
}

void
box_notice(const struct box *bx, const char *fmt, ...)
{
	va_list	 ap;

	if (bx->bx_quiet)
		return;
	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
}

static void
box_check_channel(int fd)
{
	struct stat	 st;

	if (fstat(fd, &st) == -1 || !S_ISSOCK(st.st_mode) ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) == -1)
		errx(BOX_FAILED, "descriptor %d is no channel", fd);
}

/* Close what lies between two descriptors that stay. */
static void
box_close_between(unsigned int low, unsigned int high)
{
	if (high - low > 1 && close_range(low + 1, high - 1, 0) == -1)
		err(BOX_FAILED, "close_range");
}

static int
box_by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Only the standard three and the channels stay. */
static void
box_close_inherited(const struct box *bx)
{
	int	 keep[] = { bx->bx_engine, bx->bx_hands, bx->bx_mounts };
	int	 last = STDERR_FILENO;
	size_t	 i;

	qsort(keep, NITEMS(keep), sizeof(keep[0]), box_by_number);
	for (i = 0; i < NITEMS(keep); i++) {
		if (keep[i] == -1)
			continue;
		box_check_channel(keep[i]);
		box_close_between(last, keep[i]);
		last = keep[i];
	}
	if (close_range(last + 1, UINT_MAX, 0) == -1)
		err(BOX_FAILED, "close_range");
}

/* The device behind one of the standard three, if it is a terminal. */
static char *
box_tty(void)
{
	char	 link[32], path[PATH_MAX];
	ssize_t	 n;
	int	 fd;

	for (fd = 0; fd <= STDERR_FILENO; fd++) {
		if (!isatty(fd))
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if ((n = readlink(link, path, sizeof(path) - 1)) == -1)
			continue;
		path[n] = '\0';
		return strdup(path);
	}
	return NULL;
}

/* The fence lives beside us, unless we are told otherwise. */
static char *
box_fence(void)
{
	char	 path[PATH_MAX], *fence, *p;
	ssize_t	 n;

	if ((n = readlink("/proc/self/exe", path, sizeof(path) - 1)) == -1)
		err(BOX_FAILED, "/proc/self/exe");
	path[n] = '\0';
	if ((p = strrchr(path, '/')) != NULL)
		*p = '\0';
	if (asprintf(&fence, "%s/egressd-fence", path) == -1)
		err(BOX_FAILED, NULL);
	return fence;
}

int
box_descriptor(const char *s)
{
	const char	*why;
	int		 fd;

	fd = strtonum(s, STDERR_FILENO + 1, INT_MAX - 1, &why);
	if (why != NULL)
		errx(BOX_FAILED, "descriptor %s: %s", s, why);
	return fd;
}

static uint64_t
box_size(const char *s)
{
	const char	*why;
	uint64_t	 size;

	size = strtonum(s, 1, INT64_MAX, &why);
	if (why != NULL)
		errx(BOX_FAILED, "size %s: %s", s, why);
	return size;
}

/* Only what the caller mounts by name can be written to outside. */
static void
box_check_virtual(const struct box *bx, const char *kept)
{
	size_t	 i;

	if (bx->bx_virtual == 0)
		return;
	if (kept != NULL)
		errx(BOX_FAILED, "home %s: a virtual sandbox keeps nothing",
		    kept);
	for (i = 0; i < bx->bx_npaths; i++)
		if (bx->bx_paths[i].bp_write &&
		    bx->bx_paths[i].bp_on == bx->bx_paths[i].bp_path)
			errx(BOX_FAILED, "cannot expose %s for writing: the "
			    "sandbox is virtual", bx->bx_paths[i].bp_path);
}

/* Options that need others, or the caller's environment. */
static void
box_resolve(struct box *bx, const char *cwd, const char *kept)
{
	if (bx->bx_fence == NULL)
		bx->bx_fence = box_fence();
	box_check_virtual(bx, kept);
	paths_home(bx);
	paths_cwd(bx, cwd);
	if (kept != NULL)
		paths_kept_home(bx, kept);
	paths_check_links(bx);
	home_prepare(bx);
}

static void
box_options(struct box *bx, int argc, char **argv)
{
	const char	*cwd = NULL, *kept = NULL;
	int		 ch;

	while ((ch = getopt(argc, argv,
	    "+c:e:Ff:h:k:l:m:M:n:qrUV:w:W:x:X:")) != -1) {
		switch (ch) {
		case 'c':
			bx->bx_hands = box_descriptor(optarg);
			break;
		case 'e':
			bx->bx_engine = box_descriptor(optarg);
			break;
		case 'F':
			bx->bx_forward = 1;
			break;
		case 'f':
			bx->bx_fence = optarg;
			break;
		case 'h':
			bx->bx_user_home = optarg;
			break;
		case 'k':
			kept = optarg;
			break;
		case 'l':
			limit_option(bx, optarg);
			break;
		case 'm':
		case 'M':
			paths_mount(bx, optarg, ch == 'M');
			break;
		case 'n':
			bx->bx_mounts = box_descriptor(optarg);
			break;
		case 'q':
			bx->bx_quiet = 1;
			break;
		case 'r':
			bx->bx_root = 1;
			break;
		case 'U':
			bx->bx_host_sockets = 1;
			break;
		case 'V':
			bx->bx_virtual = box_size(optarg);
			break;
		case 'w':
			cwd = optarg;
			break;
		case 'W':
			paths_top(bx, optarg);
			break;
		case 'x':
		case 'X':
			paths_expose(bx, optarg, ch == 'X');
			break;
		default:
			usage();
		}
	}
	if (bx->bx_engine == -1 || bx->bx_engine == bx->bx_hands ||
	    bx->bx_engine == bx->bx_mounts ||
	    (bx->bx_mounts != -1 && bx->bx_mounts == bx->bx_hands) ||
	    (argc == optind) != (bx->bx_hands != -1))
		usage();
	bx->bx_argv = argv + optind;
	if (bx->bx_hands != -1)
		bx->bx_quiet = 1;
	box_resolve(bx, cwd, kept);
}

/* Hands have no terminal, whoever has started us. */
static void
box_find_terminal(struct box *bx)
{
	bx->bx_terminal = -1;
	if (bx->bx_hands != -1)
		return;
	bx->bx_tty = box_tty();
	bx->bx_terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
}

/* Start the first process of the sandbox and wait for its end. */
static int
box_start(struct box *bx)
{
	sigset_t	 all;
	pid_t		 init;
	int		 i, pair[2];

	if (!bx->bx_host_sockets)
		broker_start(bx);
	if (unshare(CLONE_NEWPID) == -1)
		err(BOX_FAILED, "process namespace");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		err(BOX_FAILED, "socketpair");
	/* A signal that comes now waits for job.c, not for the command. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &bx->bx_mask);
	if ((init = fork()) == -1)
		err(BOX_FAILED, "fork");
	if (init == 0) {
		close(pair[0]);
		init_run(bx, pair[1]);
	}
	close(pair[1]);
	if (bx->bx_hands != -1)
		close(bx->bx_hands);
	if (bx->bx_mounts != -1)
		close(bx->bx_mounts);
	stdio_leave(bx);
	if (bx->bx_broker != 0)
		close(bx->bx_brokerfd);
	for (i = 0; i < TRUST_KIND_MAX; i++)
		close(bx->bx_trust[i]);
	ns_drop();
	return job_run(bx, pair[0], init);
}

/* Modes of box in which no sandbox is made. */
static const struct mode {
	const char	*mo_name;
	int		(*mo_main)(int, char **);
} modes[] = {
	{ "hands", hands_main },
	{ "install", install_main },
	{ "keep", keep_main },
};

int
main(int argc, char **argv)
{
	struct box	 bx = {
		.bx_engine = -1, .bx_hands = -1, .bx_mounts = -1,
		.bx_uid = geteuid(), .bx_gid = getegid(),
		.bx_trust = { [0 ... TRUST_KIND_MAX - 1] = -1 }
	};
	size_t		 i;

	signal(SIGCHLD, SIG_DFL);
	for (i = 0; argc > 1 && i < NITEMS(modes); i++)
		if (strcmp(argv[1], modes[i].mo_name) == 0)
			return modes[i].mo_main(argc - 1, argv + 1);
	box_options(&bx, argc, argv);
	stdio_vet(&bx);
	box_close_inherited(&bx);
	stdio_detach(&bx);
	box_find_terminal(&bx);

	ns_enter_outer(&bx);
	net_up();
	gate_offer(&bx, net_gate(&bx));
	gate_await(&bx);
	return box_start(&bx);
}
