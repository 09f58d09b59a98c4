/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what the parent sends for the gates of pods, until controld
 * asks for the pod.  The two come on channels of their own, so that either may
 * be first.  The parent is trusted; a session that is over before its pod was
 * asked for leaves a number behind, and the oldest of too many of those goes.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "gate.h"
#include "k8sd.h"
#include "log.h"

#define TEXT_MAX	(1024 * 1024)
#define TOLD_MAX	8192

/* The files of a session, of which the first to come is the trust. */
struct told {
	TAILQ_ENTRY(told)	 to_entry;
	uint32_t		 to_number;
	char			*to_trust;
	size_t			 to_trust_len;
	struct gate		*to_gate;
};

static LIST_HEAD(, gate)	 gates = LIST_HEAD_INITIALIZER(gates);
static TAILQ_HEAD(, told)	 all = TAILQ_HEAD_INITIALIZER(all);
static unsigned int		 count;

/* ---- gates ---- */

static int
gate_same(const struct gate *a, const struct gate *b)
{
	return a->ga_private == b->ga_private &&
	    strcmp(a->ga_sha256, b->ga_sha256) == 0 &&
	    strcmp(a->ga_resolvers, b->ga_resolvers) == 0 &&
	    a->ga_conf_len == b->ga_conf_len &&
	    memcmp(a->ga_conf, b->ga_conf, a->ga_conf_len) == 0 &&
	    a->ga_trust_len == b->ga_trust_len &&
	    memcmp(a->ga_trust, b->ga_trust, a->ga_trust_len) == 0;
}

static void
gate_free(struct gate *ga)
{
	free(ga->ga_conf);
	free(ga->ga_trust);
	free(ga->ga_resolvers);
	free(ga);
}

struct gate *
gate_new(const char *sha256, char *conf, size_t conf_len, char *trust,
    size_t trust_len, int private, const char *resolvers)
{
	struct gate	*ga, *other;

	if ((ga = calloc(1, sizeof(*ga))) == NULL ||
	    (ga->ga_resolvers = strdup(resolvers)) == NULL)
		fatal("%s", __func__);
	strlcpy(ga->ga_sha256, sha256, sizeof(ga->ga_sha256));
	ga->ga_conf = conf;
	ga->ga_conf_len = conf_len;
	ga->ga_trust = trust;
	ga->ga_trust_len = trust_len;
	ga->ga_private = private;
	ga->ga_refs = 1;
	LIST_FOREACH(other, &gates, ga_entry)
		if (gate_same(ga, other)) {
			gate_free(ga);
			return gate_ref(other);
		}
	LIST_INSERT_HEAD(&gates, ga, ga_entry);
	return ga;
}

struct gate *
gate_ref(struct gate *ga)
{
	ga->ga_refs++;
	return ga;
}

void
gate_unref(struct gate *ga)
{
	if (ga == NULL || --ga->ga_refs > 0)
		return;
	LIST_REMOVE(ga, ga_entry);
	gate_free(ga);
}

/* ---- of sessions ---- */

static struct told *
told_find(uint32_t number)
{
	struct told	*to;

	TAILQ_FOREACH(to, &all, to_entry)
		if (to->to_number == number)
			return to;
	return NULL;
}

static void
told_free(struct told *to)
{
	TAILQ_REMOVE(&all, to, to_entry);
	count--;
	gate_unref(to->to_gate);
	free(to->to_trust);
	free(to);
}

static struct told *
told_new(uint32_t number)
{
	struct told	*to = child_alloc(sizeof(*to));

	to->to_number = number;
	TAILQ_INSERT_TAIL(&all, to, to_entry);
	if (++count > TOLD_MAX)
		told_free(TAILQ_FIRST(&all));
	return to;
}

void
gate_drop(uint32_t number)
{
	struct told	*to = told_find(number);

	if (to != NULL)
		told_free(to);
}

struct gate *
gate_take(uint32_t number)
{
	struct told	*to = told_find(number);
	struct gate	*ga;

	if (to == NULL || to->to_gate == NULL)
		return NULL;
	ga = gate_ref(to->to_gate);
	told_free(to);
	return ga;
}

/* A file that cannot be read is not there: the start of the pod says why. */
static char *
told_read(struct ipc *ip, size_t *len)
{
	int	 fd = ipc_take_fd(ip);
	char	*text = NULL;

	if (fd != -1) {
		text = child_read_fd(fd, TEXT_MAX, len);
		close(fd);
	}
	if (text == NULL)
		log_warnx("a gate's files cannot be read");
	return text;
}

int
k8sd_parent_pod_conf(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_conf	*mp = &m->pod_conf;
	struct told			*to = told_find(mp->number);
	char				*text;
	size_t				 len;

	if (mp->number == 0 || mp->what > POD_CONF_TEXT || mp->private > 1 ||
	    strlen(mp->sha256) != GATE_HASH_LEN)
		return ipc_bad(ip, "gate of %u: %u, private %u", mp->number,
		    mp->what, mp->private);
	text = told_read(ip, &len);
	if (mp->what == POD_CONF_TRUST) {
		if (to != NULL)
			told_free(to);
		to = told_new(mp->number);
		to->to_trust = text;
		to->to_trust_len = len;
		return 0;
	}
	if (to == NULL || to->to_trust == NULL || text == NULL) {
		free(text);
		return 0;
	}
	to->to_gate = gate_new(mp->sha256, text, len, to->to_trust,
	    to->to_trust_len, mp->private, mp->resolvers);
	to->to_trust = NULL;
	control_gate(mp->number);
	return 0;
}
