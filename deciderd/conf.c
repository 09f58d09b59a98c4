/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: its slice of the configuration.  Keys, prompts and
 * certificates come as descriptors and are read here, in confinement; a file
 * that cannot be read refuses the generation.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deciderd.h"

static struct deciders	 running = TAILQ_HEAD_INITIALIZER(running);
static struct deciders	 candidate = TAILQ_HEAD_INITIALIZER(candidate);
static struct resolvers	 servers = TAILQ_HEAD_INITIALIZER(servers);
static char		 refusal[PATH_LEN];

static void
deciders_clear(struct deciders *list)
{
	struct decider	*de;

	while ((de = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, de, de_entry);
		decider_unref(de);
	}
}

struct decider *
decider_find(const char *name)
{
	struct decider	*de;

	TAILQ_FOREACH(de, &running, de_entry)
		if (strcmp(de->de_name, name) == 0)
			return de;
	return NULL;
}

void
slice_begin(uint64_t generation)
{
	(void)generation;
	slice_abort();
	refusal[0] = '\0';
}

int
slice_weigh(char *why, size_t len)
{
	struct decider	*de;

	TAILQ_FOREACH(de, &candidate, de_entry)
		if (refusal[0] == '\0')
			decider_ready(de, refusal, sizeof(refusal));
	strlcpy(why, refusal, len);
	return refusal[0] == '\0' ? 0 : -1;
}

/*
 * Questions that are out keep their deciders until they are answered; those
 * that wait for a name fail if there are other name servers now.
 */
void
slice_commit(void)
{
	deciders_clear(&running);
	TAILQ_CONCAT(&running, &candidate, de_entry);
	resolver_use(&servers);
	resolvers_clear(&servers);
}

void
slice_abort(void)
{
	deciders_clear(&candidate);
	resolvers_clear(&servers);
}

int
deciderd_parent_conf_decider(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_decider	*md = &m->conf_decider;
	struct decider			*de;

	if (md->kind >= DECIDER_KIND_MAX)
		return ipc_bad(ip, "decider of kind %u", md->kind);
	de = decider_new(md);
	TAILQ_INSERT_TAIL(&candidate, de, de_entry);
	return 0;
}

int
deciderd_parent_conf_option(struct ipc *ip, const union msg *m)
{
	struct decider	*de = TAILQ_LAST(&candidate, deciders);

	if (de == NULL || m->conf_option.of != OPTION_OF_DECIDER)
		return ipc_bad(ip, "option of object %u out of order",
		    m->conf_option.of);
	return option_recv(ip, &m->conf_option, &de->de_options);
}

int
deciderd_parent_conf_resolver(struct ipc *ip, const union msg *m)
{
	return resolvers_add(&servers, ip, m);
}

int
deciderd_parent_conf_header(struct ipc *ip, const union msg *m)
{
	struct decider	*de = TAILQ_LAST(&candidate, deciders);

	if (de == NULL || decider_header(de, &m->conf_header) == -1)
		return ipc_bad(ip, "header \"%s\" out of place",
		    m->conf_header.name);
	return 0;
}

int
deciderd_parent_conf_file(struct ipc *ip, const union msg *m)
{
	struct decider	*de = TAILQ_LAST(&candidate, deciders);

	if (de == NULL)
		return ipc_bad(ip, "a file before any decider");
	switch (m->conf_file.what) {
	case FILE_PROMPT:
		return child_read_text(ip, m, &de->de_prompt, PROMPT_LEN,
		    de->de_name, refusal, sizeof(refusal));
	case FILE_TRUST:
		return child_read_text(ip, m, &de->de_bundle, TRUST_LEN,
		    de->de_name, refusal, sizeof(refusal));
	case FILE_KEY:
		return child_read_file(ip, m, de->de_files, de->de_name,
		    refusal, sizeof(refusal));
	default:
		return ipc_bad(ip, "file %u of \"%s\"", m->conf_file.what,
		    de->de_name);
	}
}
