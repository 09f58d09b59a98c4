/* SPDX-License-Identifier: ISC */

/*
 * policyd: what an orchestrator says about a session, for deciders to know
 * what the agent is doing.  It is trusted to say it, but much of it are the
 * agent's own words: all of it is data, bounded, and marked where it is cut.
 */

#include <stdlib.h>
#include <string.h>

#include "policyd.h"

#define SCRATCH_LEN	65536	/* of a message or metadata as JSON */

static struct jsonw	 scratch;	/* to see how long something is */

static struct jsonw *
scratch_begin(void)
{
	if (scratch.jw_max == 0)
		jsonw_init(&scratch, SCRATCH_LEN);
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
	free(cx->cx_metadata);
	cx->cx_metadata = NULL;
	cx->cx_metadata_len = 0;
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

/* The oldest make room.  truncated: the sender has cut it already. */
void
context_message(struct context *cx, const char *role, const char *content,
    int truncated, uint64_t at)
{
	struct message	*ms;
	struct jsonw	*w = scratch_begin();

	if ((ms = calloc(1, sizeof(*ms))) == NULL ||
	    (ms->ms_content = strdup(content)) == NULL)
		fatal("%s", __func__);
	strlcpy(ms->ms_role, role, sizeof(ms->ms_role));
	ms->ms_at = at;
	ms->ms_len = strlen(content);
	ms->ms_truncated = truncated;
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

/* The next name or value of packed metadata; NULL at the end. */
static const char *
unpack(const char **p, const char *end)
{
	const char	*text = *p;

	if (text == end)
		return NULL;
	*p += strlen(text) + 1;
	return text;
}

/* The session's and the rule's; where both speak, the configuration does. */
void
context_put_metadata(struct jsonw *w, const char *pairs, size_t len,
    const struct rule *ru)
{
	const struct condition	*co;
	const char		*p = pairs, *name, *value;

	jsonw_object(w);
	while ((name = unpack(&p, pairs + len)) != NULL &&
	    (value = unpack(&p, pairs + len)) != NULL)
		if (ru == NULL || rule_metadata(ru, name) == NULL)
			put_str(w, name, value);
	if (ru != NULL)
		TAILQ_FOREACH(co, &ru->ru_conditions[COND_METADATA], co_entry)
			put_str(w, co->co_text, co->co_value);
	jsonw_end(w);
}

static int
metadata_fits(const char *pairs, size_t len, const struct rule *ru)
{
	struct jsonw	*w = scratch_begin();
	size_t		 n;

	context_put_metadata(w, pairs, len, ru);
	return jsonw_finish(w, &n) != NULL && n <= METADATA_LEN;
}

int
context_rule_fits(const struct rule *ru)
{
	return metadata_fits("", 0, ru);
}

/* Whether it is names and values in turn, each with its NUL, no name twice. */
int
metadata_is_sound(const char *pairs, size_t len)
{
	const char	*p = pairs, *q, *end = pairs + len, *name, *other;
	unsigned int	 n = 0;

	if (len > 0 && end[-1] != '\0')
		return 0;
	while ((name = unpack(&p, end)) != NULL) {
		if (++n > METADATA_MAX || unpack(&p, end) == NULL)
			return 0;
		for (q = pairs; (other = unpack(&q, end)) != name;
		    unpack(&q, end))
			if (strcmp(other, name) == 0)
				return 0;
	}
	return 1;
}

/* -1: too much of it, and what there was stays. */
int
context_metadata(struct context *cx, const char *pairs, size_t len)
{
	char	*copy;

	if (!metadata_fits(pairs, len, NULL))
		return -1;
	if ((copy = malloc(len + 1)) == NULL)
		fatal("%s", __func__);
	memcpy(copy, pairs, len);
	free(cx->cx_metadata);
	cx->cx_metadata = copy;
	cx->cx_metadata_len = len;
	return 0;
}
