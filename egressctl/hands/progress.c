/* SPDX-License-Identifier: ISC */

/*
 * egressctl: how much of a file has been copied, on a terminal, in a line that
 * disappears.  Names are hostile.
 */

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "cp.h"
#include "show.h"
#include "tty.h"

#define FIRST_MS	500	/* small files are over by then */
#define EVERY_MS	200
#define NUMBERS_LEN	32	/* columns */

static void
put_size(uint64_t n)
{
	static const char	units[] = "BkMGT";
	double			value = (double)n;
	size_t			i = 0;

	for (; value >= 9999.5 && i < sizeof(units) - 2; i++)
		value /= 1024;
	fprintf(stderr, "%.0f%c", value, units[i]);
}

static void
clear_line(void)
{
	fputs("\r\033[K", stderr);
}

/* A name that does not fit into the line is left out. */
static void
put_line(const struct progress *pr)
{
	clear_line();
	put_size(pr->pr_done);
	if (pr->pr_size > 0 && pr->pr_done <= pr->pr_size) {
		fputs(" of ", stderr);
		put_size(pr->pr_size);
		fprintf(stderr, " %3.0f%%",
		    100.0 * (double)pr->pr_done / (double)pr->pr_size);
	}
	if (visible_put(NULL, pr->pr_name, VISIBLE_TEXT) + NUMBERS_LEN <
	    tty_width()) {
		fputs("  ", stderr);
		visible_put(stderr, pr->pr_name, VISIBLE_TEXT);
	}
	fflush(stderr);
}

void
progress_begin(struct progress *pr, const char *name, uint64_t size)
{
	pr->pr_name = name;
	pr->pr_size = size;
	pr->pr_done = 0;
	pr->pr_last = clock_ms() + FIRST_MS - EVERY_MS;
}

void
progress_add(struct progress *pr, size_t len)
{
	pr->pr_done += len;
	if (!pr->pr_shown || clock_ms() < pr->pr_last + EVERY_MS)
		return;
	pr->pr_last = clock_ms();
	put_line(pr);
}

void
progress_end(struct progress *pr)
{
	if (pr->pr_shown)
		clear_line();
	pr->pr_name = NULL;
}
