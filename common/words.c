/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this, and egressctl: the words of words.h.
 */

#include <string.h>

#include "words.h"

static int
find(const char *const *words, const char *word)
{
	int	 i;

	for (i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -1;
}

void
words_join(const char *const *words, char *buf, size_t size)
{
	size_t	 i;

	buf[0] = '\0';
	for (i = 0; words[i] != NULL; i++) {
		if (i > 0)
			strlcat(buf, words[i + 1] == NULL ? " or " : ", ",
			    size);
		strlcat(buf, words[i], size);
	}
}

#define WORD_TEXT(constant, word)	[constant] = word,
#define WORDS(x, LIST)							\
const char *const x##_words[] = { LIST(WORD_TEXT) NULL };		\
									\
const char *								\
x##_name(uint32_t n)							\
{									\
	return n < sizeof(x##_words) / sizeof(x##_words[0]) ?		\
	    x##_words[n] : NULL;					\
}									\
									\
int									\
x##_find(const char *word)						\
{									\
	return find(x##_words, word);					\
}

WORDS(log_level, LOG_LEVELS)
WORDS(url_scheme, URL_SCHEMES)
WORDS(protocol, PROTOCOLS)
WORDS(rule_kind, RULE_KINDS)
WORDS(rule_scheme, RULE_SCHEMES)
WORDS(rule_cache, RULE_CACHES)
WORDS(policy_refuse, POLICY_REFUSES)
WORDS(policy_full, POLICY_FULLS)
WORDS(redact_kind, REDACT_KINDS)
WORDS(verdict, VERDICTS)
WORDS(verdict_scope, VERDICT_SCOPES)
WORDS(decider_kind, DECIDER_KINDS)
WORDS(decider_api, DECIDER_APIS)
WORDS(decider_form, DECIDER_FORMS)
WORDS(decision, DECISIONS)
WORDS(record_kind, RECORD_KINDS)
WORDS(sandbox_kind, SANDBOX_KINDS)
WORDS(session_cause, SESSION_CAUSES)
WORDS(pod_error, POD_ERRORS)
WORDS(pod_state, POD_STATES)
WORDS(podd_state, PODD_STATES)
WORDS(pod_container, POD_CONTAINERS)
WORDS(session_state, SESSION_STATES)
WORDS(breaker_state, BREAKER_STATES)
