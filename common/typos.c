/* SPDX-License-Identifier: ISC */

/*
 * egressctl runs this, and whoever reads the configuration.
 */

#include <string.h>

#include "typos.h"

static int
least(int a, int b, int c)
{
	if (a > b)
		a = b;
	return a < c ? a : c;
}

int
typos_between(const char *a, const char *b)
{
	int	 d[TYPOS_WORD_MAX + 1][TYPOS_WORD_MAX + 1];
	size_t	 i, j, alen = strlen(a), blen = strlen(b);

	if (alen > TYPOS_WORD_MAX || blen > TYPOS_WORD_MAX)
		return -1;
	for (i = 0; i <= alen; i++)
		d[i][0] = (int)i;
	for (j = 0; j <= blen; j++)
		d[0][j] = (int)j;
	for (i = 1; i <= alen; i++)
		for (j = 1; j <= blen; j++) {
			d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1,
			    d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i][j],
				    d[i - 2][j - 2] + 1);
		}
	return d[alen][blen];
}
