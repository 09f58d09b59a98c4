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
 * dialer: resolves names, vets addresses, connects.  It trusts the parent;
 * policyd's grants are checked, engines are hostile.
 */

#ifndef DIALER_H
#define DIALER_H

#include <sys/queue.h>

#include <stdint.h>

#include "addr.h"
#include "child.h"

/* hosts { name address }: the operator's own word on a name. */
struct host {
	TAILQ_ENTRY(host)	 ho_entry;
	char			 ho_name[HOST_LEN + 1];
	struct addr		 ho_addr;
};

struct resolver {
	TAILQ_ENTRY(resolver)	 rs_entry;
	struct addr		 rs_addr;
	uint16_t		 rs_port;
};

/* A range that the operator closes beyond those that are always closed. */
struct closed {
	TAILQ_ENTRY(closed)	 cl_entry;
	struct prefix		 cl_prefix;
};

struct slice {
	uint64_t		 sl_timeout_ms;
	TAILQ_HEAD(, host)	 sl_hosts;
	TAILQ_HEAD(, resolver)	 sl_resolvers;
	TAILQ_HEAD(, closed)	 sl_closed;
};

extern const struct sandbox	 dialer_sandbox;

/* conf.c */
void	 slice_begin(uint64_t);
int	 slice_weigh(char *, size_t);
void	 slice_commit(void);
void	 slice_abort(void);
int	 dialer_parent_conf_dial(struct ipc *, const union msg *);
int	 dialer_parent_conf_host(struct ipc *, const union msg *);
int	 dialer_parent_conf_resolver(struct ipc *, const union msg *);
int	 dialer_parent_conf_deny_net(struct ipc *, const union msg *);

#endif /* DIALER_H */
