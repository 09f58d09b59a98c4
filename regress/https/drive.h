/* SPDX-License-Identifier: ISC */

/*
 * The parts of drive.c.
 */

#ifndef DRIVE_H
#define DRIVE_H

#include <stddef.h>

struct https_server;

extern const char	*headers[];
extern const char	*argument[];
extern size_t		 arguments;

void	 say_begin(void);
void	 say_int(const char *, long long);
void	 say_text(const char *, const char *, size_t);
void	 say_end(void);

void	 drive_exec(struct https_server *);

#endif /* DRIVE_H */
