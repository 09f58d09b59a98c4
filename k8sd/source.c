/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: `workspace git', by the git of the image.  A checkout that
 * is there is kept with its edits, and the ref is checked out again.
 *
 *	is there a .git? -- yes --> (fetch the ref) --> check it out
 *	      `----------- no ---> clone ------------------^
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hand.h"
#include "log.h"
#include "source.h"

#define WORDS_LEN	4096

enum step { STEP_LOOK, STEP_CLONE, STEP_CHECKOUT, STEP_FETCH, STEP_FETCHED };

struct source {
	struct hand	*so_hand;
	enum step	 so_step;
	char		*so_cwd;
	char		*so_url;
	char		*so_ref;
	char		 so_safe[WORDS_LEN];
	uint64_t	 so_until_ms;
	source_done	*so_done;
	void		*so_arg;
};

void
source_cancel(struct source *so)
{
	if (so == NULL)
		return;
	hand_end(so->so_hand);
	free(so->so_cwd);
	free(so->so_url);
	free(so->so_ref);
	free(so);
}

static void
source_over(struct source *so, const char *code, const char *why)
{
	so->so_done(so->so_arg, code, why);
	source_cancel(so);
}

/*
 * The volume may belong to another user than the one who works in it, which
 * git would take for a trap.
 */
static void
source_step(struct source *so, enum step step)
{
	const char	*argv[12] = { "git", "-c", so->so_safe, "-C",
	    so->so_cwd };
	size_t		 n = 5;
	uint64_t	 now = clock_ms();

	so->so_step = step;
	switch (step) {
	case STEP_LOOK:
		argv[n++] = "--git-dir=.git";
		argv[n++] = "rev-parse";
		break;
	case STEP_CLONE:
		argv[n++] = "clone";
		argv[n++] = "--";
		argv[n++] = so->so_url;
		argv[n++] = ".";
		break;
	case STEP_FETCH:
		argv[n++] = "fetch";
		argv[n++] = "--";
		argv[n++] = "origin";
		argv[n++] = so->so_ref;
		break;
	case STEP_CHECKOUT:
	case STEP_FETCHED:
		argv[n++] = "checkout";
		argv[n++] = step == STEP_CHECKOUT ? so->so_ref : "FETCH_HEAD";
		argv[n++] = "--";
		break;
	}
	argv[n] = NULL;
	hand_run(so->so_hand, argv, now < so->so_until_ms ?
	    so->so_until_ms - now : 1);
}

static const char *
step_name(enum step step)
{
	switch (step) {
	case STEP_LOOK:
		return "git";
	case STEP_CLONE:
		return "git clone";
	case STEP_FETCH:
		return "git fetch";
	default:
		return "git checkout";
	}
}

/* git may show the URL; what stands before the @ in it is a credential. */
static void
hide_credential(const struct source *so, char *text)
{
	const char	*begin = strstr(so->so_url, "://"), *end;
	char		 user[256], *p;
	size_t		 len;

	if (begin == NULL || (end = strchr(begin += 3, '@')) == NULL ||
	    (len = (size_t)(end - begin)) == 0 || len >= sizeof(user) ||
	    strcspn(begin, "/") < len)
		return;
	memcpy(user, begin, len);
	user[len] = '\0';
	while ((p = strstr(text, user)) != NULL)
		memset(p, '*', len);
}

static void
source_fail(struct source *so, int code, const char *text)
{
	char	 why[600];

	if (code < 0)
		snprintf(why, sizeof(why), "%s: %s", step_name(so->so_step),
		    text);
	else
		snprintf(why, sizeof(why), "%s: exit code %d: %s",
		    step_name(so->so_step), code, text);
	hide_credential(so, why);
	source_over(so, code == HAND_LOST ? CODE_REMOTE_ERROR :
	    CODE_WORKSPACE_SOURCE, why);
}

static void
source_ran(void *arg, int code, const char *text)
{
	struct source	*so = arg;

	if (code < 0 || code == 126 || code == 127)
		source_fail(so, code, text);
	else if (so->so_step == STEP_LOOK && code != 0)
		source_step(so, STEP_CLONE);
	else if (so->so_step == STEP_CHECKOUT && code != 0)
		source_step(so, STEP_FETCH);
	else if (code != 0)
		source_fail(so, code, text);
	else if (so->so_step == STEP_FETCH)
		source_step(so, STEP_FETCHED);
	else if (so->so_step <= STEP_CLONE && so->so_ref[0] != '\0')
		source_step(so, STEP_CHECKOUT);
	else
		source_over(so, NULL, "");
}

struct source *
source_begin(struct cluster *cl, const struct source_wish *sw,
    source_done *done, void *arg)
{
	struct source	*so;

	if ((so = calloc(1, sizeof(*so))) == NULL ||
	    (so->so_cwd = strdup(sw->sw_cwd)) == NULL ||
	    (so->so_url = strdup(sw->sw_url)) == NULL ||
	    (so->so_ref = strdup(sw->sw_ref)) == NULL)
		fatal("%s", __func__);
	snprintf(so->so_safe, sizeof(so->so_safe), "safe.directory=%s",
	    sw->sw_cwd);
	so->so_until_ms = clock_ms() + sw->sw_timeout_ms;
	so->so_done = done;
	so->so_arg = arg;
	so->so_hand = hand_begin(cl, sw->sw_namespace, sw->sw_pod, sw->sw_cwd,
	    sw->sw_gated, source_ran, so);
	source_step(so, STEP_LOOK);
	return so;
}
