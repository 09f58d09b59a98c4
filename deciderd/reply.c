/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: from bytes to a decision.  The bytes are a stranger's,
 * who may have been talked into anything, so that only one form counts: the
 * object of the contract, the whole of it and nothing else.  Text in which
 * "allow" merely occurs is no answer.
 *
 * What cJSON lets pass and we do not: control characters, escaped NULs (they
 * would cut a word short), more than one value, members given twice.
 */

#include <string.h>

#include "deciderd.h"

#define SPACES	" \t\r\n"
#define ID_MAX	((double)(1LL << 53) - 1)	/* exact as a JSON number */

static bool
is_space(char c)
{
	return c != '\0' && strchr(SPACES, c) != NULL;
}

static const char *
json_fault(const char *text, size_t len)
{
	bool	 quoted = false;
	size_t	 i;

	for (i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' &&
		    (quoted || !is_space(text[i])))
			return "it holds a control character";
		if (text[i] == '"')
			quoted = !quoted;
		if (text[i] != '\\')
			continue;
		if (len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
			return "it holds a NUL";
		/* An escaped quote neither ends a string nor begins one. */
		if (i + 1 < len && (unsigned char)text[i + 1] >= ' ')
			i++;
	}
	return NULL;
}

/* One object with nothing around it but space; else NULL and why. */
static cJSON *
json_read(const char *text, size_t len, const char **why)
{
	const char	*end;
	cJSON		*json;

	if ((*why = json_fault(text, len)) != NULL)
		return NULL;
	/* cJSON would skip a byte order mark. */
	while (len > 0 && is_space(*text)) {
		text++;
		len--;
	}
	*why = "it is no JSON object";
	if (len == 0 || *text != '{' ||
	    (json = cJSON_ParseWithLengthOpts(text, len, &end, 0)) == NULL)
		return NULL;
	for (; end < text + len; end++)
		if (!is_space(*end)) {
			cJSON_Delete(json);
			*why = "there is more than one object";
			return NULL;
		}
	return json;
}

void
reply_bad(struct reply *rp, const char *why)
{
	rp->rp_result = ANSWER_BAD_RETURN;
	rp->rp_keep = false;
	strlcpy(rp->rp_reason, why, sizeof(rp->rp_reason));
}

/* Parse an answer; NULL, and *rp says so, if it is no JSON object. */
cJSON *
reply_read(const char *text, size_t len, struct reply *rp)
{
	const char	*why;
	cJSON		*json;

	memset(rp, 0, sizeof(*rp));
	if ((json = json_read(text, len, &why)) == NULL)
		reply_bad(rp, why);
	return json;
}

/*
 * The reason is for people and records: no control characters, and cut where
 * a character begins.
 */
static void
take_reason(struct reply *rp, const char *text)
{
	size_t	 i, len = strlcpy(rp->rp_reason, text,
	    sizeof(rp->rp_reason));

	if (len > REASON_LEN) {
		len = REASON_LEN;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
		rp->rp_reason[len] = '\0';
	}
	for (i = 0; i < len; i++)
		if ((unsigned char)rp->rp_reason[i] < ' ' ||
		    rp->rp_reason[i] == 0x7f)
			rp->rp_reason[i] = ' ';
}

static const char *
take_decision(struct reply *rp, const cJSON *v)
{
	int	 n;

	if (!cJSON_IsString(v))
		return "the decision is no string";
	if ((n = decision_find(v->valuestring)) != -1) {
		rp->rp_result = n;
		return NULL;
	}
	return "the decision is none of allow, deny and unsure";
}

static const char *
take_id(struct reply *rp, const cJSON *v)
{
	double	 id = v->valuedouble;

	if (!cJSON_IsNumber(v) || !(id >= 0 && id <= ID_MAX) ||
	    (double)(uint64_t)id != id)
		return "the id is no number of a question";
	rp->rp_id = (uint64_t)id;
	return NULL;
}

enum { HAS_DECISION = 1, HAS_REASON = 2, HAS_ID = 4 };

static const char *
take_member(struct reply *rp, const cJSON *v, bool numbered, unsigned *has)
{
	const char	*why = NULL;
	unsigned	 bit;

	if (strcmp(v->string, "decision") == 0) {
		bit = HAS_DECISION;
		why = take_decision(rp, v);
	} else if (strcmp(v->string, "reason") == 0) {
		bit = HAS_REASON;
		if (cJSON_IsString(v))
			take_reason(rp, v->valuestring);
		else
			why = "the reason is no string";
	} else if (numbered && strcmp(v->string, "id") == 0) {
		bit = HAS_ID;
		why = take_id(rp, v);
	} else
		return "it has a member that is not of the contract";
	if (*has & bit)
		return "it has a member twice";
	*has |= bit;
	return why;
}

/*
 * The answer in an object.  With numbered there is an id too; whether there
 * was one tells rp_id, which no question has as 0.
 */
void
reply_object(const cJSON *json, bool numbered, struct reply *rp)
{
	const char	*why = NULL, *fault;
	const cJSON	*v;
	unsigned	 has = 0;

	memset(rp, 0, sizeof(*rp));
	rp->rp_keep = true;
	/* To the last member, as the id of a bad answer may stand there. */
	cJSON_ArrayForEach(v, json)
		if ((fault = take_member(rp, v, numbered, &has)) != NULL &&
		    why == NULL)
			why = fault;
	if (why == NULL && !(has & HAS_DECISION))
		why = "it has no decision";
	if (why != NULL)
		reply_bad(rp, why);
}

void
reply_text(const char *text, size_t len, bool numbered, struct reply *rp)
{
	cJSON	*json;

	if ((json = reply_read(text, len, rp)) == NULL)
		return;
	reply_object(json, numbered, rp);
	cJSON_Delete(json);
}
