/* SPDX-License-Identifier: ISC */

/*
 * Secrets that must not be seen (promise P7), by the names under which they
 * travel: header fields, parameters of a query, members of JSON and fields of
 * forms.  The recorder asks before it writes a record and policyd before it
 * puts a question, so that one list serves both.  Some names are hidden for
 * everybody (redact_names.c), a policy names more, and may have some of the
 * first shown.
 *
 * All text is hostile.  What is returned points into the text that was given
 * or, where something is hidden, into memory that the next call uses again.
 */

#ifndef REDACT_H
#define REDACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "words.h"

#define REDACTED	"[redacted]"

/* What a policy says of it; NULL says nothing. */
struct redact;

/* Memory that cannot be had is fatal. */
struct redact	*redact_new(void);
void		 redact_add(struct redact *, enum redact_kind, const char *,
		    bool show);
void		 redact_free(struct redact *);

/* Is it hidden?  The name is as it was meant: nothing in it is encoded. */
bool		 redact_hides(const struct redact *, enum redact_kind,
		    const char *, size_t);

/* Quickly: may a member that ends with these three bytes be hidden? */
bool		 redact_may_hide(const struct redact *, const char *);

/* redact_names.c: for everybody; and of these, what no policy may show. */
bool		 redact_known(enum redact_kind, const char *, size_t);
bool		 redact_known_end(const char *);
bool		 redact_always(const char *);

struct redacted {
	const char	*re_text;	/* NULL: nothing of it may be shown */
	size_t		 re_len;
	size_t		 re_hidden;	/* bytes of values that are not in it */
};

/* A path with its query; the value of a header field, for URLs in it. */
struct redacted	 redact_path(const struct redact *, const char *, size_t);
struct redacted	 redact_value(const struct redact *, const char *, size_t);

/* A line of a head. */
struct redact_line {
	const char	*rl_name;
	size_t		 rl_nlen;
	const char	*rl_value;
	size_t		 rl_vlen;
};

/* The next one; false when there is none. */
bool		 redact_next(const char **, size_t *, struct redact_line *);

/* redact_body.c: what a body is, as the lines of its head say. */
enum redact_media {
	MEDIA_UNKNOWN,		/* perhaps a form */
	MEDIA_OTHER,
	MEDIA_JSON,
	MEDIA_FORM,
	MEDIA_MULTIPART,
	MEDIA_ENCODED		/* compressed: nobody can look into it */
};

/* What it is by one line more. */
enum redact_media redact_media(enum redact_media, const struct redact_line *);
struct redacted	 redact_body(const struct redact *, enum redact_media,
		    const char *, size_t);

/* Of use to redact_body.c: a text that grows in memory of a fixed size. */
struct redact_out {
	char	*ro_buf;
	size_t	 ro_size;
	size_t	 ro_len;
	size_t	 ro_hidden;
};

void		 redact_put(struct redact_out *, const char *, size_t);
void		 redact_parameters(const struct redact *, bool, const char *,
		    size_t, struct redact_out *);

#endif /* REDACT_H */
