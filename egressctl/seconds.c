/* SPDX-License-Identifier: ISC */

/*
 * egressctl: times of the command line.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "egressctl.h"

/*
 * The argument of -t, or exit(3) with this status.  A number without a unit is
 * a trap, here as in egressd.conf(5).
 */
unsigned int
seconds_take(const char *arg, int status)
{
	static const struct {
		char		 unit;
		unsigned int	 seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t		 i, len = strspn(arg, "0123456789");
	char		 digits[8];
	const char	*fault;
	long long	 n;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (len > 0 && len < sizeof(digits) &&
		    arg[len] == units[i].unit && arg[len + 1] == '\0') {
			strlcpy(digits, arg, len + 1);
			n = strtonum(digits, 1, 366 * 86400 / units[i].seconds,
			    &fault);
			if (fault == NULL)
				return n * units[i].seconds;
		}
	errx(status, "-t %s: wanted a time up to 366d, such as 90s, 30m, "
	    "8h or 2d", arg);
}
