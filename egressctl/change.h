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
 * egressctl: distinct requests of a replay and what becomes of them.
 */

#ifndef CHANGE_H
#define CHANGE_H

#include <sys/types.h>
#include <sys/queue.h>
#include <sys/tree.h>

#include <stdint.h>

#include "egressctl.h"

#define NO_RULE		UINT32_MAX	/* the default */

enum ruled {
	RULED_ALLOW,
	RULED_DENY,
	RULED_ASK
};

struct ruling {
	enum ruled	 rl_word;
	uint32_t	 rl_rule;
	int		 rl_asked;	/* a decider had, or has, the word */
};

struct change {
	RB_ENTRY(change)	 ch_node;
	TAILQ_ENTRY(change)	 ch_entry;	/* in order of appearance */
	struct ruling		 ch_was;
	struct ruling		 ch_now;
	int			 ch_differs;
	uint64_t		 ch_count;
	enum url_scheme		 ch_scheme;
	uint16_t		 ch_port;
	const char		*ch_method;	/* in ch_text, as are */
	const char		*ch_host;
	const char		*ch_path;
	char			 ch_text[];
};
RB_HEAD(change_tree, change);
TAILQ_HEAD(change_list, change);

struct changes {
	struct change_tree	 cs_tree;
	struct change_list	 cs_list;
	size_t			 cs_bytes;
	uint64_t		 cs_dropped;	/* requests, for lack of room */
};

void	 changes_init(struct changes *);
void	 changes_add(struct changes *, const struct change *,
	    const char *method, const struct url *);
void	 changes_free(struct changes *);
cJSON	*change_json(const struct change *);

#endif /* CHANGE_H */
