/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: what of a language model's answer counts.  A model may
 * have been talked into anything, and one that does not keep to the contract
 * has not answered.
 */

#include <string.h>
#include <strings.h>

#include "deciderd.h"

/* The member of that name; NULL if there is none or more than one. */
static const cJSON *
only_member(const cJSON *object, const char *name)
{
	const cJSON	*v, *found = NULL;

	if (!cJSON_IsObject(object))
		return NULL;
	cJSON_ArrayForEach(v, object)
		if (strcmp(v->string, name) == 0) {
			if (found != NULL)
				return NULL;
			found = v;
		}
	return found;
}

static bool
member_is(const cJSON *object, const char *name, const char *text)
{
	const cJSON	*v = only_member(object, name);

	return cJSON_IsString(v) && strcmp(v->valuestring, text) == 0;
}

static void
skip_spaces(const char **p)
{
	*p += strspn(*p, " \t\r\n");
}

/* The rest of a fence's first line: empty, or "json". */
static bool
fence_is_plain(const char *p, const char *end)
{
	while (end > p && strchr(" \t\r", end[-1]) != NULL)
		end--;
	return end == p || (end - p == 4 && strncasecmp(p, "json", 4) == 0);
}

/*
 * Models think aloud and put a fence around JSON, whatever they are told.
 * What comes after the first thought has to be all of the answer: words of the
 * agent's that end the thought early do not make another answer out of it.
 */
static void
reply_unwrapped(const char *p, struct reply *rp)
{
	static const char	 open[] = "<think>", close[] = "</think>";
	const char		*end;
	size_t			 len;

	skip_spaces(&p);
	if (strncmp(p, open, sizeof(open) - 1) == 0) {
		if ((p = strstr(p, close)) == NULL) {
			reply_bad(rp, "the model's thought has no end");
			return;
		}
		p += sizeof(close) - 1;
		skip_spaces(&p);
	}
	len = strlen(p);
	while (len > 0 && strchr(" \t\r\n", p[len - 1]) != NULL)
		len--;
	if (len >= 6 && strncmp(p, "```", 3) == 0 &&
	    strncmp(p + len - 3, "```", 3) == 0 &&
	    (end = memchr(p, '\n', len - 3)) != NULL &&
	    fence_is_plain(p + 3, end)) {
		len -= 3 + (size_t)(end - p);
		p = end;
	}
	reply_text(p, len, false, rp);
}

static void
reply_string(const cJSON *v, struct reply *rp)
{
	if (cJSON_IsString(v))
		reply_unwrapped(v->valuestring, rp);
	else
		reply_bad(rp, "the model's text is no string");
}

static bool
is_thought(const cJSON *block)
{
	return member_is(block, "type", "thinking") ||
	    member_is(block, "type", "redacted_thinking");
}

/* The content block with the answer; NULL if several could be it. */
static const cJSON *
only_block(const cJSON *content)
{
	const cJSON	*v, *found = NULL;

	if (!cJSON_IsArray(content))
		return NULL;
	cJSON_ArrayForEach(v, content) {
		if (is_thought(v))
			continue;
		if (found != NULL)
			return NULL;
		found = v;
	}
	return found;
}

static void
reply_anthropic(const cJSON *json, struct reply *rp)
{
	const cJSON	*block, *input;

	if (member_is(json, "stop_reason", "refusal"))
		reply_bad(rp, "the model refused");
	else if (member_is(json, "stop_reason", "max_tokens"))
		reply_bad(rp, "the model's answer was cut short");
	else if (!member_is(json, "stop_reason", "tool_use") &&
	    !member_is(json, "stop_reason", "end_turn"))
		reply_bad(rp, "the model did not come to an end");
	else if ((block = only_block(only_member(json, "content"))) == NULL)
		reply_bad(rp, "there is not just one block");
	else if (member_is(block, "type", "text"))
		reply_string(only_member(block, "text"), rp);
	else if (!member_is(block, "type", "tool_use") ||
	    !member_is(block, "name", AGENT_TOOL))
		reply_bad(rp, "the model called something else");
	else if (!cJSON_IsObject(input = only_member(block, "input")))
		reply_bad(rp, "the input of the call is no object");
	else
		reply_object(input, false, rp);
}

/* The arguments of the only tool call, which are JSON in a string. */
static void
reply_call(const cJSON *calls, struct reply *rp)
{
	const cJSON	*function = NULL;

	if (cJSON_IsArray(calls) && cJSON_GetArraySize(calls) == 1)
		function = only_member(calls->child, "function");
	if (function == NULL)
		reply_bad(rp, "there is not just one call");
	else if (!member_is(function, "name", AGENT_TOOL))
		reply_bad(rp, "the model called something else");
	else
		reply_string(only_member(function, "arguments"), rp);
}

static bool
has_calls(const cJSON *message)
{
	const cJSON	*calls = only_member(message, "tool_calls");

	return calls != NULL && !cJSON_IsNull(calls) &&
	    !(cJSON_IsArray(calls) && cJSON_GetArraySize(calls) == 0);
}

static void
reply_openai(const cJSON *json, struct reply *rp)
{
	const cJSON	*choices = only_member(json, "choices");
	const cJSON	*message, *refusal;

	if (!cJSON_IsArray(choices) || cJSON_GetArraySize(choices) != 1) {
		reply_bad(rp, "there is not just one choice");
		return;
	}
	message = only_member(choices->child, "message");
	refusal = only_member(message, "refusal");
	if (refusal != NULL && !cJSON_IsNull(refusal))
		reply_bad(rp, "the model refused");
	else if (member_is(choices->child, "finish_reason", "length"))
		reply_bad(rp, "the model's answer was cut short");
	else if (!member_is(choices->child, "finish_reason", "stop") &&
	    !member_is(choices->child, "finish_reason", "tool_calls"))
		reply_bad(rp, "the model did not come to an end");
	else if (has_calls(message))
		reply_call(only_member(message, "tool_calls"), rp);
	else
		reply_string(only_member(message, "content"), rp);
}

void
agent_reply(const struct decider *de, const char *text, size_t len,
    struct reply *rp)
{
	cJSON	*json;

	if ((json = reply_read(text, len, rp)) == NULL)
		return;
	if (de->de_options.do_api == API_ANTHROPIC)
		reply_anthropic(json, rp);
	else
		reply_openai(json, rp);
	cJSON_Delete(json);
}
