/* SPDX-License-Identifier: ISC */

/*
 * Every child runs this when it makes a call that its filter does not permit:
 * the call was not made, and the kernel delivers SIGSYS instead.  All that is
 * left to do is to say which call it was, and to die of it.
 *
 * The end is as certain as if the kernel had killed at once.  The filter lets
 * nobody change what SIGSYS does, and while the handler runs the signal is
 * blocked: the next call that is trapped kills, and so does one that somebody
 * makes who has blocked it himself.  Nothing here allocates or takes a lock.
 */

#ifdef __linux__

#include <sys/syscall.h>

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "sandbox.h"

#ifndef SYS_SECCOMP
#define SYS_SECCOMP	1	/* the C library does not say it */
#endif
#define DIGITS		12

static const char *const call_names[] = {
#include "syscalls.h"
};

static char	 line[256];	/* its beginning is written beforehand */
static size_t	 line_len;

static void
append(const char *text)
{
	size_t	 len = strlen(text);

	if (len > sizeof(line) - line_len)
		len = sizeof(line) - line_len;
	memcpy(line + line_len, text, len);
	line_len += len;
}

static void
append_number(unsigned int n)
{
	char	 digits[DIGITS], *p = digits + sizeof(digits) - 1;

	*p = '\0';
	do
		*--p = '0' + n % 10;
	while ((n /= 10) > 0);
	append(p);
}

static void
on_trap(int sig, siginfo_t *si, void *context)
{
	unsigned int	 call = si->si_syscall;

	(void)context;
	if (si->si_code == SYS_SECCOMP) {
		if (call < sizeof(call_names) / sizeof(call_names[0]) &&
		    call_names[call] != NULL)
			append(call_names[call]);
		else
			append("unknown");
		append(" (");
		append_number(call);
		append(")\n");
		if (write(STDERR_FILENO, line, line_len) == -1)
			line_len = 0;	/* nobody is left to tell */
	}
	/* Trapped, too, and so killed: the signal is blocked here. */
	signal(sig, SIG_DFL);
	_exit(1);
}

void
sandbox_trap(void)
{
	struct sigaction	 sa = { .sa_sigaction = on_trap,
	    .sa_flags = SA_SIGINFO };

	line_len = log_begin(LOG_LVL_ERROR, line, sizeof(line));
	append("killed by its filter: call ");
	sigfillset(&sa.sa_mask);
	if (sigaction(SIGSYS, &sa, NULL) == -1)
		fatal("SIGSYS");
}

#endif /* __linux__ */
