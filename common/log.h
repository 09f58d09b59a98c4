/* SPDX-License-Identifier: ISC */

/*
 * Logging.  A child writes to its standard error and nowhere else; what is
 * behind that descriptor (a terminal, the journal, the parent with syslog)
 * is the parent's business.
 */

#ifndef LOG_H
#define LOG_H

#include <stdarg.h>
#include <stddef.h>

#include "words.h"

#define LOG_LINE_MAX	1024

#define LOG_FORMAT(f, a) __attribute__((__format__(__printf__, f, a)))

void		 log_init(const char *, enum log_level, int);
void		 log_set_level(enum log_level);
enum log_level	 log_get_level(void);
int		 log_level_priority(unsigned int);
size_t		 log_begin(enum log_level, char *, size_t);
void		 log_set_sink(void (*)(enum log_level, const char *));

void	 log_errorx(const char *, ...) LOG_FORMAT(1, 2);
void	 log_warn(const char *, ...) LOG_FORMAT(1, 2);
void	 log_warnx(const char *, ...) LOG_FORMAT(1, 2);
void	 log_info(const char *, ...) LOG_FORMAT(1, 2);
void	 log_debug(const char *, ...) LOG_FORMAT(1, 2);
void	 log_trace(const char *, ...) LOG_FORMAT(1, 2);
void	 fatal(const char *, ...) LOG_FORMAT(1, 2) __attribute__((noreturn));
void	 fatalx(const char *, ...) LOG_FORMAT(1, 2) __attribute__((noreturn));

#endif /* LOG_H */
