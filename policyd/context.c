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
 * policyd: what an orchestrator says about a session, for deciders to know
 * what the agent is doing.  It is trusted to say it, but much of it are the
 * agent's own words: all of it is data, bounded, and marked where it is cut.
 */

#include <stdlib.h>
#include <string.h>

#include "policyd.h"

static struct jsonw	 scratch;	/* to see how long something is */

static struct jsonw *
scratch_begin(void)
{
	if (scratch.jw_max == 0)
		jsonw_init(&scratch, ANSWER_LEN);
	jsonw_reset(&scratch);
	return &scratch;
}

void
context_init(struct context *cx)
{
	memset(cx, 0, sizeof(*cx));
	TAILQ_INIT(&cx->cx_messages);
}

static void
context_forget(struct context *cx, struct message *ms)
{
	TAILQ_REMOVE(&cx->cx_messages, ms, ms_entry);
	cx->cx_count--;
	cx->cx_bytes -= ms->ms_len;
	free(ms->ms_content);
	free(ms);
}

void
context_free(struct context *cx)
{
	struct message	*ms;

	while ((ms = TAILQ_FIRST(&cx->cx_messages)) != NULL)
		context_forget(cx, ms);
	cJSON_Delete(cx->cx_metadata);
	cx->cx_metadata = NULL;
}

static void
put_message(struct jsonw *w, const struct message *ms)
{
	jsonw_object(w);
	put_str(w, "role", ms->ms_role);
	jsonw_key(w, "content");
	jsonw_string(w, ms->ms_content, ms->ms_len);
	if (ms->ms_truncated)
		put_bool(w, "content_truncated", 1);
	put_time(w, "at", ms->ms_at);
	jsonw_end(w);
}

/* The oldest make room. */
void
context_message(struct context *cx, const char *role, const char *content,
    uint64_t at)
{
	struct message	*ms;
	struct jsonw	*w = scratch_begin();
	size_t		 len = strlen(content);

	if ((ms = calloc(1, sizeof(*ms))) == NULL ||
	    (ms->ms_content = strndup(content, SHOWN_CONTENT)) == NULL)
		fatal("%s", __func__);
	strlcpy(ms->ms_role, role, sizeof(ms->ms_role));
	ms->ms_at = at;
	ms->ms_len = text_cut(content, len, SHOWN_CONTENT);
	ms->ms_truncated = ms->ms_len < len;
	put_message(w, ms);
	jsonw_finish(w, &ms->ms_size);
	TAILQ_INSERT_TAIL(&cx->cx_messages, ms, ms_entry);
	cx->cx_count++;
	cx->cx_bytes += ms->ms_len;
	while (cx->cx_count > MESSAGES_MAX || cx->cx_bytes > MESSAGES_BYTES)
		context_forget(cx, TAILQ_FIRST(&cx->cx_messages));
}

/* The last so many, oldest first, as far as there is room. */
void
context_put_messages(struct jsonw *w, const struct context *cx, uint32_t n,
    size_t room)
{
	const struct message	*ms;
	uint32_t		 want, take = 0;

	want = n < cx->cx_count ? n : cx->cx_count;
	ms = TAILQ_LAST(&cx->cx_messages, messages);
	for (; take < want && ms->ms_size + 1 <= room; take++) {
		room -= ms->ms_size + 1;
		ms = TAILQ_PREV(ms, messages, ms_entry);
	}
	ms = ms == NULL ? TAILQ_FIRST(&cx->cx_messages) :
	    TAILQ_NEXT(ms, ms_entry);
	jsonw_key(w, "recent_messages");
	jsonw_array(w);
	for (; take > 0 && ms != NULL; ms = TAILQ_NEXT(ms, ms_entry))
		put_message(w, ms);
	jsonw_end(w);
	if (take < want)
		put_uint(w, "messages_dropped", want - take);
}

static const struct condition *
rule_metadata(const struct rule *ru, const char *name)
{
	const struct condition	*co;

	TAILQ_FOREACH(co, &ru->ru_conditions[COND_METADATA], co_entry)
		if (strcmp(co->co_text, name) == 0)
			return co;
	return NULL;
}

/* The session's and the rule's; where both speak, the configuration does. */
void
context_put_metadata(struct jsonw *w, const cJSON *metadata,
    const struct rule *ru)
{
	const struct condition	*co;
	const cJSON		*v;

	jsonw_object(w);
	cJSON_ArrayForEach(v, metadata)
		if (ru == NULL || rule_metadata(ru, v->string) == NULL)
			put_str(w, v->string, v->valuestring);
	if (ru != NULL)
		TAILQ_FOREACH(co, &ru->ru_conditions[COND_METADATA], co_entry)
			put_str(w, co->co_text, co->co_value);
	jsonw_end(w);
}

static int
metadata_fits(const cJSON *metadata, const struct rule *ru)
{
	struct jsonw	*w = scratch_begin();
	size_t		 len;

	context_put_metadata(w, metadata, ru);
	return jsonw_finish(w, &len) != NULL && len <= METADATA_LEN;
}

int
context_rule_fits(const struct rule *ru)
{
	return metadata_fits(NULL, ru);
}

/* -1: too much of it, and what there was stays. */
int
context_metadata(struct context *cx, const cJSON *metadata)
{
	cJSON	*copy;

	if (cJSON_GetArraySize(metadata) > METADATA_MAX ||
	    !metadata_fits(metadata, NULL))
		return -1;
	if ((copy = cJSON_Duplicate(metadata, 1)) == NULL)
		fatalx("%s", __func__);
	cJSON_Delete(cx->cx_metadata);
	cx->cx_metadata = copy;
	return 0;
}
