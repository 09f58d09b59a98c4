/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this, and egressctl to show a manifest: a taint that a pod is to
 * tolerate, of a form that conf/ has seen to.
 */

#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "log.h"

static char *
copy(const char *text)
{
	char	*new;

	if ((new = strdup(text)) == NULL)
		fatal("%s", __func__);
	return new;
}

/* A taint, of a form that the parent has seen to: key=value:effect:time. */
void
toleration_add(struct tolerations *list, const char *taint)
{
	struct toleration	*to;
	char			*value, *effect, *time = NULL;

	if ((to = calloc(1, sizeof(*to))) == NULL)
		fatal("%s", __func__);
	to->to_key = copy(taint);
	if ((effect = strchr(to->to_key, ':')) != NULL) {
		*effect++ = '\0';
		if ((time = strchr(effect, ':')) != NULL)
			*time++ = '\0';
	}
	if ((value = strchr(to->to_key, '=')) != NULL) {
		*value++ = '\0';
		to->to_value = copy(value);
	}
	to->to_effect = copy(effect == NULL ? "" : effect);
	to->to_seconds = time == NULL ? -1 : strtoll(time, NULL, 10);
	if (strcmp(to->to_key, "*") == 0)
		to->to_key[0] = '\0';
	TAILQ_INSERT_TAIL(list, to, to_entry);
}
