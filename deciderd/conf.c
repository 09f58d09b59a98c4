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
 * deciderd runs this: its slice of the configuration.  Keys and prompts come
 * as descriptors and are read here, in confinement; a file that cannot be
 * read refuses the generation.
 */

#include <stdlib.h>
#include <string.h>

#include "deciderd.h"
#include "log.h"

static struct deciders	 running = TAILQ_HEAD_INITIALIZER(running);
static struct deciders	 candidate = TAILQ_HEAD_INITIALIZER(candidate);
static char		 refusal[PATH_LEN];

static void
deciders_clear(struct deciders *list)
{
	struct decider	*de;
	size_t		 i;

	while ((de = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, de, de_entry);
		for (i = 0; i < FILE_KIND_MAX; i++)
			secret_free(de->de_files[i]);
		free(de);
	}
}

void
slice_begin(uint64_t generation)
{
	(void)generation;
	deciders_clear(&candidate);
	refusal[0] = '\0';
}

int
slice_weigh(char *why, size_t len)
{
	strlcpy(why, refusal, len);
	return refusal[0] == '\0' ? 0 : -1;
}

void
slice_commit(void)
{
	deciders_clear(&running);
	TAILQ_CONCAT(&running, &candidate, de_entry);
}

void
slice_abort(void)
{
	deciders_clear(&candidate);
}

int
deciderd_parent_conf_decider(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_decider	*md = &m->conf_decider;
	struct decider			*de;

	(void)ip;
	if ((de = calloc(1, sizeof(*de))) == NULL)
		fatal("%s", __func__);
	strlcpy(de->de_name, md->name, sizeof(de->de_name));
	strlcpy(de->de_url, md->url, sizeof(de->de_url));
	strlcpy(de->de_model, md->model, sizeof(de->de_model));
	de->de_kind = md->kind;
	de->de_api = md->api;
	de->de_persistent = md->persistent;
	de->de_timeout_ms = md->timeout_ms;
	de->de_concurrency = md->concurrency;
	TAILQ_INSERT_TAIL(&candidate, de, de_entry);
	return 0;
}

int
deciderd_parent_conf_file(struct ipc *ip, const union msg *m)
{
	struct decider	*de = TAILQ_LAST(&candidate, deciders);

	if (de == NULL)
		return ipc_bad(ip, "a file before any decider");
	return child_read_file(ip, m, de->de_files, de->de_name, refusal,
	    sizeof(refusal));
}
