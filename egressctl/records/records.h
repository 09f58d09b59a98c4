/* SPDX-License-Identifier: ISC */

/*
 * Private header of egressctl/records: records as they come and as files keep
 * them.
 */

#ifndef RECORDS_H
#define RECORDS_H

#include <stddef.h>

#include <cjson/cJSON.h>

#include "words.h"

#define SOURCE_LINE_MAX	(256 * 1024)	/* of a record, with its newline */

enum next {
	NEXT_LINE,
	NEXT_END,
	NEXT_TORN,		/* the file ends without a newline */
	NEXT_TOO_LONG,
	NEXT_FAILED		/* errno says why */
};

struct source {
	const char	*so_name;
	int		 so_fd;
	size_t		 so_at;		/* where the next line begins */
	size_t		 so_len;
	char		 so_buf[SOURCE_LINE_MAX];
};

/* A part of a line, not terminated. */
struct piece {
	const char	*pc_text;
	size_t		 pc_len;
};

struct strict {
	const char	*st_line;
	const char	*st_at;
	const char	*st_end;
};

/* record.c */
void	 record_put(const cJSON *);

/* source.c */
struct source	*source_open(const char *);
enum next	 source_line(struct source *, char **, size_t *);
void		 source_close(struct source *);
void		 finding_put(const cJSON *);

/* strict.c */
void	 strict_init(struct strict *, const char *, size_t);
int	 strict_member(struct strict *, struct piece *, struct piece *);

#endif /* RECORDS_H */
