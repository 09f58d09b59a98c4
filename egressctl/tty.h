/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the terminal on standard input.
 */

#ifndef TTY_H
#define TTY_H

#include <stddef.h>

enum tty_mode {
	TTY_KEYS,	/* single keys, unseen; signals as ever */
	TTY_ALL		/* nothing is ours: all goes to another terminal */
};

int	 tty_raw(enum tty_mode);
void	 tty_restore(void);
void	 tty_forget_input(void);
size_t	 tty_width(void);

#endif /* TTY_H */
