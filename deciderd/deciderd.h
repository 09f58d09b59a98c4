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
 * deciderd: asks the deciders.  It holds their credentials, trusts the parent
 * and treats every answer as a stranger's.
 */

#ifndef DECIDERD_H
#define DECIDERD_H

#include <sys/queue.h>

#include <stdint.h>

#include "child.h"
#include "secret.h"

struct decider {
	TAILQ_ENTRY(decider)	 de_entry;
	char			 de_name[NAME_LEN + 1];
	uint8_t			 de_kind;
	uint8_t			 de_api;
	uint8_t			 de_persistent;
	char			 de_url[PATH_LEN + 1];
	char			 de_model[NAME_LEN + 1];
	uint64_t		 de_timeout_ms;
	uint32_t		 de_concurrency;
	struct secret		*de_files[FILE_KIND_MAX];
};
TAILQ_HEAD(deciders, decider);

extern const struct sandbox	 deciderd_sandbox;

/* conf.c */
void	 slice_begin(uint64_t);
int	 slice_weigh(char *, size_t);
void	 slice_commit(void);
void	 slice_abort(void);
int	 deciderd_parent_conf_decider(struct ipc *, const union msg *);
int	 deciderd_parent_conf_file(struct ipc *, const union msg *);

#endif /* DECIDERD_H */
