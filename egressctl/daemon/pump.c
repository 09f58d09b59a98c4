/* SPDX-License-Identifier: ISC */

/*
 * egressctl pump: several connections to the daemon over one pair of standard
 * streams, as a control host has them to the gate in a pod.  Lines go through
 * unread but for their first letter, which says of which connection they are.
 * Whoever is at the other end may vanish without a word: without input for a
 * while, or when its output is not taken, the pump ends by itself.
 *
 * Nothing here waits for another: what a connection does not take is bounded
 * and then ends it, and nothing is read from the daemon while the output has
 * enough.
 */

#include <sys/socket.h>
#include <sys/un.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "egressctl.h"

#define LETTERS		26
#define LINE_BYTES	(1024 * 1024)	/* at most, without the newline */
#define OUTPUT_FULL	(1024 * 1024)	/* then nothing more is read */
#define UNTAKEN_MAX	(2 * LINE_BYTES) /* by the daemon */
#define READ_BYTES	65536
#define IDLE_S		60

/* Bytes that come in at the end and go out at the beginning. */
struct bytes {
	char	*by_data;
	size_t	 by_start;
	size_t	 by_end;
	size_t	 by_size;
};

struct wire {
	int		 wi_fd;		/* -1: it is not open */
	int		 wi_ended;	/* the daemon has closed it */
	struct bytes	 wi_in;		/* from the daemon */
	struct bytes	 wi_out;
};

static struct {
	const char	*pu_socket;
	struct wire	 pu_wires[LETTERS];
	struct bytes	 pu_in;
	struct bytes	 pu_out;
	int64_t		 pu_heard;	/* ms: there was input, or no use */
	int64_t		 pu_moved;	/* ms: output went, or there was none */
	int		 pu_ended;	/* there is no more input */
	int		 pu_warned;	/* that nobody listens */
} pump;

static long long	 idle_s = IDLE_S;

/* ---- bytes ---- */

static size_t
bytes_len(const struct bytes *by)
{
	return by->by_end - by->by_start;
}

static const char *
bytes_at(const struct bytes *by)
{
	return by->by_data + by->by_start;
}

static char *
bytes_room(struct bytes *by, size_t len)
{
	size_t	 size = by->by_size > 0 ? by->by_size : READ_BYTES;

	if (by->by_start > 0 && by->by_size - by->by_end < len) {
		by->by_end -= by->by_start;
		memmove(by->by_data, by->by_data + by->by_start, by->by_end);
		by->by_start = 0;
	}
	while (size - by->by_end < len)
		size *= 2;
	if (size != by->by_size &&
	    (by->by_data = realloc(by->by_data, size)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	by->by_size = size;
	return by->by_data + by->by_end;
}

static void
bytes_add(struct bytes *by, const char *data, size_t len)
{
	memcpy(bytes_room(by, len), data, len);
	by->by_end += len;
}

static void
bytes_free(struct bytes *by)
{
	free(by->by_data);
	memset(by, 0, sizeof(*by));
}

/*
 * The next line, and behind its newline; NULL if it is not whole, or longer
 * than any may be, in which case *len is.
 */
static const char *
bytes_line(struct bytes *by, size_t *len)
{
	const char	*line = bytes_at(by), *end;

	*len = bytes_len(by);
	if (*len == 0 || (end = memchr(line, '\n', *len)) == NULL)
		return NULL;
	*len = (size_t)(end - line);
	if (*len > LINE_BYTES)
		return NULL;
	by->by_start += *len + 1;
	return line;
}

/* ---- connections ---- */

/* Each that was opened is told to have ended, once. */
static void
wire_close(struct wire *wi)
{
	char	 line[2] = { (char)('a' + (wi - pump.pu_wires)), '\n' };

	if (wi->wi_fd != -1)
		close(wi->wi_fd);
	wi->wi_fd = -1;
	wi->wi_ended = 0;
	bytes_free(&wi->wi_in);
	bytes_free(&wi->wi_out);
	bytes_add(&pump.pu_out, line, sizeof(line));
}

/* A backlog that is full would keep us waiting: that is no connection. */
static int
wire_open(struct wire *wi)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };

	if (strlcpy(sun.sun_path, pump.pu_socket, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path))
		errx(EXIT_NO_DAEMON, "socket path too long: %s",
		    pump.pu_socket);
	if ((wi->wi_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0)) != -1 &&
	    connect(wi->wi_fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return 0;
	if (!pump.pu_warned)
		warn("%s", pump.pu_socket);
	pump.pu_warned = 1;
	return -1;
}

/* Whole lines, each behind its letter, while the output takes them. */
static void
wire_show(struct wire *wi)
{
	char		 letter = (char)('a' + (wi - pump.pu_wires));
	const char	*line;
	size_t		 len = 0;

	while (wi->wi_fd != -1 && bytes_len(&pump.pu_out) < OUTPUT_FULL) {
		if ((line = bytes_line(&wi->wi_in, &len)) != NULL) {
			bytes_add(&pump.pu_out, &letter, 1);
			bytes_add(&pump.pu_out, line, len + 1);
			continue;
		}
		if (len > LINE_BYTES || wi->wi_ended)
			wire_close(wi);
		return;
	}
}

static void
wire_read(struct wire *wi)
{
	char	*to = bytes_room(&wi->wi_in, READ_BYTES);
	ssize_t	 n = recv(wi->wi_fd, to, READ_BYTES, 0);

	if (n > 0)
		wi->wi_in.by_end += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		wi->wi_ended = 1;
	wire_show(wi);
}

/* It may have closed and said why: what it says is read before it ends. */
static void
wire_write(struct wire *wi)
{
	ssize_t	 n = send(wi->wi_fd, bytes_at(&wi->wi_out),
		    bytes_len(&wi->wi_out), MSG_NOSIGNAL);

	if (n > 0)
		wi->wi_out.by_start += (size_t)n;
	else if (n == -1 && errno != EAGAIN && errno != EINTR)
		wi->wi_out.by_start = wi->wi_out.by_end;
}

/* ---- the other end ---- */

static void
take_line(const char *line, size_t len)
{
	struct wire	*wi;

	if (len == 0) {
		bytes_add(&pump.pu_out, "\n", 1);
		return;
	}
	if (line[0] < 'a' || line[0] > 'z')
		errx(EXIT_USAGE, "a line begins with byte 0x%02x, not with a "
		    "letter", (unsigned char)line[0]);
	wi = &pump.pu_wires[line[0] - 'a'];
	if (len == 1) {
		if (wi->wi_fd != -1)
			wire_close(wi);
		return;
	}
	if (wi->wi_fd == -1 && wire_open(wi) == -1) {
		wire_close(wi);
		return;
	}
	bytes_add(&wi->wi_out, line + 1, len);
	if (bytes_len(&wi->wi_out) > UNTAKEN_MAX)
		wire_close(wi);
}

static void
input_read(void)
{
	const char	*line;
	size_t		 len;
	ssize_t		 n;

	n = read(STDIN_FILENO, bytes_room(&pump.pu_in, READ_BYTES),
	    READ_BYTES);
	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		pump.pu_ended = 1;
		return;
	}
	pump.pu_heard = (int64_t)clock_ms();
	pump.pu_in.by_end += (size_t)n;
	while ((line = bytes_line(&pump.pu_in, &len)) != NULL)
		take_line(line, len);
	if (len > LINE_BYTES)
		errx(EXIT_USAGE, "a line is longer than %d bytes", LINE_BYTES);
}

/*
 * O_NONBLOCK stays as it is, as others may have the same file open: poll(2) has
 * said that a pipe has room for PIPE_BUF.
 */
static void
output_write(void)
{
	size_t	 len = bytes_len(&pump.pu_out);
	ssize_t	 n;

	n = send(STDOUT_FILENO, bytes_at(&pump.pu_out), len, MSG_DONTWAIT |
	    MSG_NOSIGNAL);
	if (n == -1 && errno == ENOTSOCK)
		n = write(STDOUT_FILENO, bytes_at(&pump.pu_out),
		    len < PIPE_BUF ? len : PIPE_BUF);
	if (n == -1 && errno != EINTR && errno != EAGAIN)
		err(EXIT_NO_DAEMON, "standard output");
	if (n <= 0)
		return;
	pump.pu_out.by_start += (size_t)n;
	pump.pu_moved = (int64_t)clock_ms();
}

/* ---- all of it ---- */

enum { SLOT_IN, SLOT_OUT, SLOTS };

static void
prepare(struct pollfd pfds[SLOTS + LETTERS])
{
	int		 full = bytes_len(&pump.pu_out) >= OUTPUT_FULL;
	struct wire	*wi;
	struct pollfd	*pfd;
	int		 i;

	pfds[SLOT_IN].fd = full ? -1 : STDIN_FILENO;
	pfds[SLOT_IN].events = POLLIN;
	pfds[SLOT_OUT].fd = STDOUT_FILENO;
	pfds[SLOT_OUT].events = bytes_len(&pump.pu_out) > 0 ? POLLOUT : 0;
	for (i = 0; i < LETTERS; i++) {
		wi = &pump.pu_wires[i];
		pfd = &pfds[SLOTS + i];
		pfd->events = 0;
		if (!full && !wi->wi_ended)
			pfd->events |= POLLIN;
		if (bytes_len(&wi->wi_out) > 0 && !wi->wi_ended)
			pfd->events |= POLLOUT;
		/* One that has hung up would wake us without end. */
		pfd->fd = pfd->events != 0 ? wi->wi_fd : -1;
	}
}

/* How long nothing may happen, in ms; ends the program when it was enough. */
static int
patience(void)
{
	int64_t	 now = (int64_t)clock_ms(), end;

	if (bytes_len(&pump.pu_out) >= OUTPUT_FULL)
		pump.pu_heard = now;
	if (bytes_len(&pump.pu_out) == 0)
		pump.pu_moved = now;
	end = pump.pu_heard < pump.pu_moved ? pump.pu_heard : pump.pu_moved;
	end += idle_s * 1000;
	if (now < end)
		return (int)(end - now);
	errx(EXIT_LATE, "%s for %lld seconds", pump.pu_heard < pump.pu_moved ?
	    "no input" : "nobody takes the output", idle_s);
}

static void
serve(const struct pollfd pfds[SLOTS + LETTERS])
{
	struct wire	*wi;
	int		 i, begin = (int)(clock_ms() % LETTERS), n;

	if (pfds[SLOT_OUT].revents & (POLLERR | POLLHUP | POLLNVAL))
		exit(EXIT_NO_DAEMON);
	if (pfds[SLOT_OUT].revents & POLLOUT)
		output_write();
	/* None is always the first to find room in the output. */
	for (i = 0; i < LETTERS; i++) {
		n = (begin + i) % LETTERS;
		wi = &pump.pu_wires[n];
		if (wi->wi_fd != -1 && pfds[SLOTS + n].revents & POLLOUT)
			wire_write(wi);
		if (wi->wi_fd != -1 && pfds[SLOTS + n].events & POLLIN &&
		    pfds[SLOTS + n].revents & (POLLIN | POLLHUP | POLLERR))
			wire_read(wi);
		else
			wire_show(wi);
	}
	if (pfds[SLOT_IN].revents != 0)
		input_read();
}

static int
pump_run(const struct invocation *in)
{
	struct pollfd	 pfds[SLOTS + LETTERS];
	int		 i;

	pump.pu_socket = in->in_socket;
	pump.pu_heard = pump.pu_moved = (int64_t)clock_ms();
	for (i = 0; i < LETTERS; i++)
		pump.pu_wires[i].wi_fd = -1;
	while (!pump.pu_ended) {
		prepare(pfds);
		if (poll(pfds, SLOTS + LETTERS, patience()) == -1) {
			if (errno != EINTR)
				err(EXIT_NO_DAEMON, "poll");
			continue;
		}
		serve(pfds);
	}
	return 0;
}

static void
pump_option(int ch, const char *arg)
{
	const char	*fault;

	(void)ch;
	idle_s = strtonum(arg, 1, 86400, &fault);
	if (fault != NULL)
		errx(EXIT_USAGE, "-i %s: wanted 1 to 86400 seconds", arg);
}

const struct command command_pump = {
	.co_name = "pump",
	.co_synopsis = "pump [-i seconds]",
	.co_help = "carry several connections over the standard streams",
	.co_run = pump_run,
	.co_options = "i:",
	.co_option = pump_option,
};
