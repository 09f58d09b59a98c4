/* SPDX-License-Identifier: ISC */

/*
 * Private header of egressctl/questions: what deciders are asked and told, and
 * a person's answers, one after the other.
 */

#ifndef QUESTIONS_H
#define QUESTIONS_H

#include <stdint.h>

#include "client.h"
#include "egressctl.h"
#include "show.h"
#include "tty.h"

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
	cJSON		*wt_list;	/* the last list of questions */
	cJSON		*wt_skipped;	/* IDs of questions left to others */
	const cJSON	*wt_shown;	/* in wt_list, or NULL */
	char		 wt_id[QUESTION_ID_MAX];	/* of wt_shown, or "" */
	int64_t		 wt_deadline;	/* of wt_shown, clock_ms; 0: unknown */
	char		 wt_press;	/* key that is being answered, or 0 */
	int		 wt_status;	/* of our exit, once wt_done */
	int		 wt_done;
};

/* context.c */
void	 check_text(const char *, const char *);

/* pending.c */
void	 more_put(const cJSON *);

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

#endif /* QUESTIONS_H */
