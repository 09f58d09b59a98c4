/* SPDX-License-Identifier: ISC */

/*
 * egressctl: rows of an answer as a table.  A value that came from a sandbox
 * belongs in the last column, where its width moves nothing.
 */

#include <string.h>

#include "show.h"

static size_t
put_value(FILE *fp, const struct column *cn, const cJSON *row)
{
	const cJSON	*item = row;

	if (cn->cn_member != NULL)
		item = json_get(row, cn->cn_member);
	return cn->cn_put != NULL ? cn->cn_put(fp, item) : json_put(fp, item);
}

static void
put_gap(size_t columns, size_t width, int last)
{
	if (last)
		putchar('\n');
	else
		printf("%*s", (int)(width - columns) + 2, "");
}

static void
measure(const cJSON *rows, const struct column *columns, size_t n,
    size_t *widths)
{
	const cJSON	*row;
	size_t		 i, width;

	for (i = 0; i < n; i++) {
		widths[i] = strlen(columns[i].cn_title);
		cJSON_ArrayForEach(row, rows) {
			width = put_value(NULL, &columns[i], row);
			if (width > widths[i])
				widths[i] = width;
		}
	}
}

/* At most COLUMNS_MAX columns; `rows' has at least one. */
void
table_put(const cJSON *rows, const struct column *columns, size_t n)
{
	const cJSON	*row;
	size_t		 widths[COLUMNS_MAX], i;

	measure(rows, columns, n, widths);
	for (i = 0; i < n; i++)
		put_gap((size_t)printf("%s", columns[i].cn_title), widths[i],
		    i == n - 1);
	cJSON_ArrayForEach(row, rows)
		for (i = 0; i < n; i++)
			put_gap(put_value(stdout, &columns[i], row), widths[i],
			    i == n - 1);
}

int
table_is_empty(const cJSON *rows)
{
	return !cJSON_IsArray(rows) || rows->child == NULL;
}
