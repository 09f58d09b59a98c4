/* SPDX-License-Identifier: ISC */

/*
 * egressctl: JSON of the daemon, read, and shown to people.
 */

#ifndef SHOW_H
#define SHOW_H

#include <stddef.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#define ANSWER_DEPTH_MAX	32
#define COLUMNS_MAX		8

/* Where a string will stand, hence what must not appear in it. */
enum visible {
	VISIBLE_TEXT,		/* by itself, or in a column of a table */
	VISIBLE_QUOTED,		/* between double quotes */
	VISIBLE_WORD,		/* among other words: no space of any sort */
	VISIBLE_WHOLE,		/* a word of which nothing is cut off */
	VISIBLE_LINE		/* text, last in its line, likewise */
};

/* A member of a row, or the whole row, put by json_put or cn_put. */
struct column {
	const char	 *cn_title;
	const char	 *cn_member;
	size_t		(*cn_put)(FILE *, const cJSON *);
};

/* json.c */
cJSON		*json_parse(const char *, size_t);
const cJSON	*json_get(const cJSON *, const char *);
const char	*json_string(const cJSON *, const char *);
size_t		 json_put(FILE *, const cJSON *);

/* cells.c */
size_t	 request_put(FILE *, const cJSON *);
void	 request_put_whole(FILE *, const cJSON *);
size_t	 duration_put(FILE *, const cJSON *);

/* table.c */
void	 table_put(const cJSON *, const struct column *, size_t);
int	 table_is_empty(const cJSON *);

/* visible.c */
size_t	 visible_put(FILE *, const char *, enum visible);
size_t	 visible_put_content(FILE *, const char *, size_t);
void	 visible_put_json(FILE *, const char *);

#endif /* SHOW_H */
