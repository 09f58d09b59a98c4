/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the terminal while single keys are read from it, or all of it is
 * another's.  However we end, it is left as it was found.
 */

#include <sys/ioctl.h>

#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "tty.h"

#define WIDTH_DEFAULT	80
#define WIDTH_LEAST	20

static struct termios	 saved;
static volatile sig_atomic_t	 is_raw;

static void
set_mode(struct termios *tio, enum tty_mode mode)
{
	if (mode == TTY_ALL)
		cfmakeraw(tio);
	else
		tio->c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tio->c_cc[VMIN] = 1;
	tio->c_cc[VTIME] = 0;
}

/*
 * Sets it also if it should be set already: whoever had the terminal while we
 * were stopped may have changed it.
 *
 * 0, or -1 if the keys are not ours to read.  In the background the terminal
 * belongs to another program; reading from it will stop us, and when we are
 * continued in the foreground this is called again.
 */
int
tty_raw(enum tty_mode mode)
{
	static int	registered;
	struct termios	raw;

	if (!isatty(STDIN_FILENO))
		return -1;
	if (tcgetpgrp(STDIN_FILENO) != getpgrp())
		return 0;
	if (!is_raw && tcgetattr(STDIN_FILENO, &saved) == -1)
		return -1;
	if (!registered) {
		atexit(tty_restore);
		registered = 1;
	}
	raw = saved;
	set_mode(&raw, mode);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) == -1)
		return -1;
	is_raw = 1;
	return 0;
}

/* Also called from a signal's handler. */
void
tty_restore(void)
{
	if (is_raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &saved);
	is_raw = 0;
}

void
tty_forget_input(void)
{
	tcflush(STDIN_FILENO, TCIFLUSH);
}

size_t
tty_width(void)
{
	struct winsize	ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == -1 || ws.ws_col == 0)
		return WIDTH_DEFAULT;
	return ws.ws_col < WIDTH_LEAST ? WIDTH_LEAST : ws.ws_col;
}
