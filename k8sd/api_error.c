/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: an answer of an API server that is a refusal, in words.  The
 * server's own come along, as it is the only one that knows: bounded, and
 * without what a terminal would act by.
 */

#include <stdio.h>
#include <string.h>

#include "api.h"

#define SAID_LEN	400

/* Message of a Status, or the beginning of whatever else was sent. */
static void
said(const struct https_answer *ha, const cJSON *status, char *out,
    size_t size)
{
	const char	*message = kj_string(status, "message");

	if (message[0] != '\0')
		kj_tame(message, strlen(message), out, size);
	else if (status == NULL && ha->ha_body != NULL)
		kj_tame(ha->ha_body, ha->ha_body_len, out, size);
	else
		out[0] = '\0';
}

/* No right is missing: admission judges the pod, since 1.22 or before. */
static int
is_pod_security(const char *words)
{
	return strstr(words, "violates PodSecurity") != NULL ||
	    strstr(words, "any pod security policy") != NULL;
}

void
api_explain(const struct api_request *ar, const struct https_answer *ha,
    const cJSON *status, char *out, size_t size)
{
	char		 words[SAID_LEN], reason[64];
	const char	*text = kj_string(status, "reason");

	said(ha, status, words, sizeof(words));
	kj_tame(text, strlen(text), reason, sizeof(reason));
	if (ha->ha_status == 403 && is_pod_security(words))
		snprintf(out, size, "the namespace's Pod Security level "
		    "forbids it (a gate needs privileged): %s", words);
	else if (ha->ha_status == 403)
		snprintf(out, size, "the account may not %s %s%s%s",
		    ar->ar_verb, ar->ar_resource,
		    words[0] != '\0' ? ": " : "", words);
	else if (ha->ha_status == 401)
		snprintf(out, size, "the credential is not accepted%s%s",
		    words[0] != '\0' ? ": " : "", words);
	else if (reason[0] != '\0')
		snprintf(out, size, "%s%s%s", reason,
		    words[0] != '\0' ? ": " : "", words);
	else
		snprintf(out, size, "status %ld%s%s", ha->ha_status,
		    words[0] != '\0' ? ": " : "", words);
}
