/* SPDX-License-Identifier: ISC */

/*
 * controld: the environment of sandboxes.  The client makes the sandbox, and so
 * its environment, with its own rights.  It asks what the policy says of it
 * and tells us what it has passed on: by name, as values are no business of
 * ours.  That is its word, and is recorded as such.
 */

#include <string.h>

#include "name.h"
#include "controld.h"

static int
op_session_environment(struct client *cl, struct request *rq)
{
	const struct variable	*va;
	const char		*policy;
	struct jsonw		*w;

	if (run_policy(rq, &policy) == -1)
		return -1;
	w = answer_ok();
	put_str(w, "policy", policy);
	jsonw_key(w, "environment");
	jsonw_array(w);
	TAILQ_FOREACH(va, &conf_policy(conf_running, policy)->np_variables,
	    va_entry) {
		jsonw_object(w);
		put_str(w, va->va_pass ? "pass" : "drop", va->va_pattern);
		jsonw_end(w);
	}
	jsonw_end(w);
	client_answer(cl, rq);
	return 0;
}

static const struct field environment_fields[] = {
	{ "policy", FIELD_STRING, MAY },
	{ NULL, 0, 0 }
};

const struct op environment_ops[] = {
	{ "session.environment", OP_READ_ONLY, op_session_environment,
	    environment_fields },
	{ NULL, 0, NULL, NULL }
};

/* The names with a space between them; "" also if none were told. */
int
request_environment(struct request *rq, char *names, size_t size)
{
	const cJSON	*list = request_field(rq, "environment"), *item;
	const char	*why;
	size_t		 len = 0, n;

	names[0] = '\0';
	cJSON_ArrayForEach(item, list) {
		if ((why = name_variable_error(item->valuestring)) != NULL)
			return request_fail(rq, CODE_BAD_REQUEST,
			    "environment: \"%.64s\": %s", item->valuestring,
			    why);
		n = strlen(item->valuestring);
		if (len + (len > 0) + n >= size)
			return request_fail(rq, CODE_BAD_REQUEST,
			    "environment: the names have more than %zu bytes "
			    "in all", size - 1);
		if (len > 0)
			names[len++] = ' ';
		memcpy(names + len, item->valuestring, n + 1);
		len += n;
	}
	return 0;
}
