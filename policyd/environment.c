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
 * policyd: the environment of sandboxes.  The client makes the sandbox, and so
 * its environment, with its own rights.  It asks what the policy says of it
 * and tells us what it has passed on: by name, as values are no business of
 * ours.  That is its word, and is recorded as such.
 */

#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "policyd.h"

int
policyd_parent_conf_environment(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_environment	*me = &m->conf_environment;
	const struct policy			*pl;
	struct variable				*va;

	pl = TAILQ_LAST(&slice_candidate->sl_policies, policies);
	if (pl == NULL || me->pass > 1)
		return ipc_bad(ip, "environment %u: %s", me->pass,
		    me->pattern);
	if ((va = calloc(1, sizeof(*va))) == NULL)
		fatal("configuration");
	va->va_policy = pl;
	va->va_pass = me->pass;
	strlcpy(va->va_pattern, me->pattern, sizeof(va->va_pattern));
	TAILQ_INSERT_TAIL(&slice_candidate->sl_variables, va, va_entry);
	return 0;
}

void
variables_free(struct slice *sl)
{
	struct variable	*va;

	while ((va = TAILQ_FIRST(&sl->sl_variables)) != NULL) {
		TAILQ_REMOVE(&sl->sl_variables, va, va_entry);
		free(va);
	}
}

int
op_session_environment(struct client *cl, struct request *rq)
{
	const struct variable	*va;
	const char		*policy, *body;
	struct jsonw		*w;
	size_t			 len;

	if (run_policy(rq, &policy) == -1)
		return -1;
	w = answer_ok();
	put_str(w, "policy", policy);
	jsonw_key(w, "environment");
	jsonw_array(w);
	TAILQ_FOREACH(va, &slice_running->sl_variables, va_entry) {
		if (strcmp(va->va_policy->pl_name, policy) != 0)
			continue;
		jsonw_object(w);
		put_str(w, va->va_pass ? "pass" : "drop", va->va_pattern);
		jsonw_end(w);
	}
	jsonw_end(w);
	body = answer_end(&len);
	client_send(cl, &rq->rq_id, body, len);
	return 0;
}

/* The names with a space between them; "" also if none were told. */
int
request_environment(struct request *rq, char *names, size_t size)
{
	const cJSON	*list = rq->rq_fields[FIELD_ENVIRONMENT], *item;
	const char	*why;
	size_t		 len = 0, n;

	names[0] = '\0';
	cJSON_ArrayForEach(item, list) {
		if ((why = name_variable_error(item->valuestring)) != NULL)
			return request_fail(rq, "bad_request",
			    "environment: \"%.64s\": %s", item->valuestring,
			    why);
		n = strlen(item->valuestring);
		if (len + (len > 0) + n >= size)
			return request_fail(rq, "bad_request", "environment: "
			    "the names have more than %zu bytes in all",
			    size - 1);
		if (len > 0)
			names[len++] = ' ';
		memcpy(names + len, item->valuestring, n + 1);
		len += n;
	}
	return 0;
}
