/* SPDX-License-Identifier: ISC */

/*
 * What the block of a decider may say, a row for each.  As policy_rows.h:
 *
 *	DECIDER_OPTION(type, member, word, where, needed, told, ...)
 *	DECIDER_HAND(word, where, needed)
 *
 * where are the kinds that permit the option, needed those that demand it.
 * What only the parent uses, files among it, is told to nobody.
 */

#ifndef DECIDER_OPTION
#define DECIDER_OPTION(type, member, word, where, needed, told, ...)
#endif
#ifndef DECIDER_HAND
#define DECIDER_HAND(word, where, needed)
#endif

DECIDER_OPTION(ENUM, api, "api", D(AGENT), D(AGENT), R_DECIDERD,
    WORDS(decider_api_words))
DECIDER_OPTION(URL_CLEAR, url, "url", D_HTTP, D_HTTP, R_DECIDERD)
DECIDER_OPTION(FLAG, insecure, "insecure", D_HTTP, 0, 0)
DECIDER_HAND("header", D_HTTP, 0)
DECIDER_OPTION(TEXT, model, "model", D(AGENT), D(AGENT), R_DECIDERD)
DECIDER_OPTION(ENUM, form, "answer", D(AGENT), 0, R_DECIDERD,
    WORDS(decider_form_words))
DECIDER_OPTION(COUNT, max_tokens, "max tokens", D(AGENT), 0, R_DECIDERD,
    RANGE(16, 1000000))
DECIDER_OPTION(MILLI, temperature, "temperature", D(AGENT), 0, R_DECIDERD)
DECIDER_OPTION(LOWER, effort, "effort", D(AGENT), 0, R_DECIDERD)
DECIDER_OPTION(PATH, key_file, "key file", D_HTTP, 0, 0)
DECIDER_OPTION(HEADER, key_header, "key header", D_HTTP, 0, R_DECIDERD)
DECIDER_OPTION(PATH, prompt_file, "prompt file", D(AGENT), 0, 0)
DECIDER_OPTION(PATH, trust_file, "trust file", D_HTTP, 0, 0)
DECIDER_HAND("command", D(EXEC), D(EXEC))
DECIDER_OPTION(FLAG, persistent, "persistent", D(EXEC), 0, R_DECIDERD)
DECIDER_OPTION(TEXT, user, "user", D(EXEC), 0, 0)
DECIDER_OPTION(PATH, path, "path", D(SOCKET), D(SOCKET), 0)
DECIDER_OPTION(MS, timeout_ms, "timeout", D_ANY, 0, 0, RANGE(100, DAY),
    PRESET(5 * SEC))
DECIDER_OPTION(COUNT, concurrency, "concurrency", D_ANY & ~D(OPERATOR), 0, 0,
    RANGE(1, 1024), PRESET(8))

#undef DECIDER_OPTION
#undef DECIDER_HAND
