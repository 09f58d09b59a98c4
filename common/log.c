/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this.  The text may hold bytes that an agent or an
 * origin chose, so a finished line passes vis(3) as a whole: no caller can
 * forget it, and no line can be made to look like two.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>
#include <vis.h>

#include "log.h"

static const int	 priorities[LOG_LVL_MAX] = {
	[LOG_LVL_ERROR] = LOG_ERR,
	[LOG_LVL_WARN] = LOG_WARNING,
	[LOG_LVL_INFO] = LOG_INFO,
	[LOG_LVL_DEBUG] = LOG_DEBUG,
	[LOG_LVL_TRACE] = LOG_DEBUG,
};

static const char	*log_name = "egressd";
static enum log_level	 log_level = LOG_LVL_INFO;
static int		 log_marks;	/* begin lines with <priority> */
static void		(*log_sink)(enum log_level, const char *);

void
log_init(const char *name, enum log_level level, int marks)
{
	log_name = name;
	log_level = level;
	log_marks = marks;
}

void
log_set_level(enum log_level level)
{
	log_level = level;
}

enum log_level
log_get_level(void)
{
	return log_level;
}

/* The parent, once it has no terminal, hands its lines to syslog. */
void
log_set_sink(void (*sink)(enum log_level, const char *))
{
	log_sink = sink;
}

int
log_level_priority(unsigned int level)
{
	return level < LOG_LVL_MAX ? priorities[level] : LOG_ERR;
}

/* The mark and name that stand before the text of each line. */
size_t
log_begin(enum log_level level, char *buf, size_t size)
{
	int	 len;

	if (log_marks)
		len = snprintf(buf, size, "<%d>%s: ", priorities[level],
		    log_name);
	else
		len = snprintf(buf, size, "%s: ", log_name);
	return len < 0 || (size_t)len >= size ? 0 : len;
}

static void
log_write(enum log_level level, const char *text)
{
	char	 safe[LOG_LINE_MAX * 4 + 1], line[sizeof(safe) + 128];
	size_t	 len;

	strvisx(safe, text, strlen(text), VIS_NL | VIS_TAB | VIS_CSTYLE |
	    VIS_NOSLASH);
	if (log_sink != NULL) {
		log_sink(level, safe);
		return;
	}
	len = log_begin(level, line, sizeof(line));
	len += snprintf(line + len, sizeof(line) - len, "%s\n", safe);
	/* If standard error cannot take it there is nobody left to tell. */
	if (write(STDERR_FILENO, line, len) == -1)
		return;
}

static void
log_text(enum log_level level, int code, const char *fmt, va_list ap)
{
	char	 text[LOG_LINE_MAX];
	int	 n, saved = errno;

	if (level > log_level)
		return;
	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (code != 0 && n >= 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, ": %s", strerror(code));
	log_write(level, text);
	errno = saved;
}

#define LOG_VA(level, code) do {					\
	va_list	 ap;							\
									\
	va_start(ap, fmt);						\
	log_text(level, code, fmt, ap);					\
	va_end(ap);							\
} while (0)

/* What ends the daemon is told at every level. */
void
log_errorx(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_ERROR, 0);
}

void
log_warn(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_WARN, errno);
}

void
log_warnx(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_WARN, 0);
}

void
log_info(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_INFO, 0);
}

void
log_debug(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_DEBUG, 0);
}

void
log_trace(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_TRACE, 0);
}

void
fatal(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_ERROR, errno);
	exit(1);
}

void
fatalx(const char *fmt, ...)
{
	LOG_VA(LOG_LVL_ERROR, 0);
	exit(1);
}
