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
 * egressctl: policies without the daemon.
 */

#ifndef OFFLINE_H
#define OFFLINE_H

#include "conf.h"
#include "policy.h"

/* NULL, or no policy, after saying why on standard error. */
struct config	*offline_conf(const char *);
const struct conf_policy *
		 offline_policy(const struct config *, const char *);

/* 1 if the connection would be forwarded unread. */
int		 offline_evaluate(const struct policy *, const struct url *,
		    const char *method, struct policy_verdict *);

/* The rule that a request which is not allowed missed by one reading. */
const struct rule *
		 offline_missed(const struct policy *, const struct url *,
		    const char *method, const struct policy_verdict *);

#endif /* OFFLINE_H */
