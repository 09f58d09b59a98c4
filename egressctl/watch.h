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
 * egressctl: answering questions one after the other.
 */

#ifndef WATCH_H
#define WATCH_H

#include "egressctl.h"

#define QUESTION_ID_MAX	64	/* bytes, with the NUL */
#define INPUT_MAX	256	/* bytes of a line, with its newline */

/* What comes from the standard input. */
struct keys {
	int		 ky_tty;	/* single keys, else lines */
	int		 ky_ended;
	size_t		 ky_len;
	char		 ky_buf[INPUT_MAX];
};

/* A key and, from a line, the question that it is for. */
struct press {
	char		 pr_key;	/* 0: none yet */
	char		 pr_id[QUESTION_ID_MAX];
};

struct watch {
	const struct invocation	*wt_in;
	struct client	 wt_client;
	struct keys	 wt_keys;
	cJSON		*wt_list;	/* the last answer that had one */
	cJSON		*wt_skipped;	/* IDs of those left to others */
	const cJSON	*wt_shown;	/* in wt_list, or NULL */
	char		 wt_id[QUESTION_ID_MAX];	/* of it, or "" */
	int64_t		 wt_deadline;	/* of it, our clock; 0: unknown */
	char		 wt_press;	/* whose answer is under way, or 0 */
	int		 wt_status;	/* of our exit, once wt_done */
	int		 wt_done;
};

/* watch_input.c */
void	 keys_init(struct keys *);
int	 keys_full(const struct keys *);
void	 keys_read(struct keys *);
void	 keys_next(struct keys *, struct press *);

/* watch_show.c */
void	 show_question(const struct watch *);
void	 show_event(const struct watch *, const char *id, const char *event,
	    const char *text);
void	 show_prompt(const struct watch *, int64_t now);
void	 show_no_prompt(void);

#endif /* WATCH_H */
