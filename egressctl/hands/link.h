/* SPDX-License-Identifier: ISC */

/*
 * What link.c and call.c know of each other's structs; nobody else includes
 * this.
 */

#ifndef LINK_H
#define LINK_H

#include "hands.h"

#define LINK_IN_LEN	(2 * (FRAME_HEAD_LEN + FRAME_BODY_MAX))
/* DATA stops at the first; nothing honest ever comes to the second. */
#define LINK_OUT_DATA	FRAME_CREDIT
#define LINK_OUT_MAX	(16 * 1024 * 1024)

struct link {
	int		 lk_fd;
	char		 lk_error[512];	/* "": none so far */
	int		 lk_deaf;	/* nobody reads what is sent */
	cJSON		*lk_hello;
	uint32_t	 lk_last_id;
	struct call	*lk_calls[CALLS_MAX];
	size_t		 lk_ncalls;
	size_t		 lk_limit;	/* of lk_ncalls, by the hello */
	size_t		 lk_credit;	/* of a new call, by the hello */
	char		*lk_in;
	size_t		 lk_in_len;
	size_t		 lk_in_size;
	char		*lk_out;
	size_t		 lk_out_at;	/* sent of it */
	size_t		 lk_out_len;
	size_t		 lk_out_size;
};

struct call {
	struct link	*ca_link;
	uint32_t	 ca_id;
	const struct call_ops	*ca_ops;
	void		*ca_arg;
	uint64_t	 ca_credit;	/* bytes that box will take */
	size_t		 ca_window;	/* bytes that box may send */
	size_t		 ca_consumed;	/* of those, to be granted anew */
	int		 ca_ended;	/* END was sent */
	int		 ca_quiet;	/* END has come */
	int		 ca_cancelled;
	int		 ca_dropped;
	int		 ca_over;
};

struct frame {
	uint32_t	 fm_id;
	uint8_t		 fm_kind;
	const char	*fm_body;
	size_t		 fm_len;
};

/* link.c */
void	 link_broken(struct link *, const char *, ...)
	    __attribute__((__format__(printf, 2, 3)));
void	 link_put(struct link *, uint32_t, uint8_t, const char *, size_t);

/* call.c */
void	 call_take(struct link *, const struct frame *);
void	 calls_gone(struct link *);

#endif /* LINK_H */
