/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * Logging.  A child writes to its standard error and nowhere else; what is
 * behind that descriptor (a terminal, the journal, the parent with syslog)
 * is the parent's business.
 */

#ifndef LOG_H
#define LOG_H

#include <stdarg.h>
#include <stddef.h>

/* In order of severity; the numbers in brackets are those of syslog. */
enum log_level {
	LOG_LVL_ERROR,		/* 3 */
	LOG_LVL_WARN,		/* 4 */
	LOG_LVL_INFO,		/* 6 */
	LOG_LVL_DEBUG,		/* 7 */
	LOG_LVL_MAX
};

#define LOG_LINE_MAX	1024

#define LOG_FORMAT(f, a) __attribute__((__format__(__printf__, f, a)))

void		 log_init(const char *, enum log_level, int);
void		 log_set_level(enum log_level);
enum log_level	 log_get_level(void);
const char	*log_level_name(unsigned int);
int		 log_level_priority(unsigned int);
int		 log_level_parse(const char *);
size_t		 log_begin(enum log_level, char *, size_t);
void		 log_set_sink(void (*)(enum log_level, const char *));

void	 log_errorx(const char *, ...) LOG_FORMAT(1, 2);
void	 log_warn(const char *, ...) LOG_FORMAT(1, 2);
void	 log_warnx(const char *, ...) LOG_FORMAT(1, 2);
void	 log_info(const char *, ...) LOG_FORMAT(1, 2);
void	 log_debug(const char *, ...) LOG_FORMAT(1, 2);
void	 fatal(const char *, ...) LOG_FORMAT(1, 2) __attribute__((noreturn));
void	 fatalx(const char *, ...) LOG_FORMAT(1, 2) __attribute__((noreturn));

#endif /* LOG_H */
