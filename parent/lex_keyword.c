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
 * The keywords of egressd.conf(5), and the one that a misspelt word was
 * probably meant to be.
 */

#include <stdlib.h>
#include <string.h>

#include "confparse.h"
#include "parse.h"

#define KEYWORD_LEN_MAX		24

struct keyword {
	const char	*kw_name;
	int		 kw_token;
};

/* In the order of strcmp(3). */
static const struct keyword keywords[] = {
	{ "address",			ADDRESS },
	{ "after",			AFTER },
	{ "agent",			AGENT },
	{ "allow",			ALLOW },
	{ "answer",			ANSWER },
	{ "api",			API },
	{ "audit",			AUDIT },
	{ "body",			BODY },
	{ "ca",				CA },
	{ "cache",			CACHE },
	{ "capture",			CAPTURE },
	{ "certificate",		CERTIFICATE },
	{ "cluster",			CLUSTER },
	{ "command",			COMMAND },
	{ "concurrency",		CONCURRENCY },
	{ "context",			CONTEXT },
	{ "control",			CONTROL },
	{ "custom",			CUSTOM },
	{ "cwd",			CWD },
	{ "deadline",			DEADLINE },
	{ "decide",			DECIDE },
	{ "decider",			DECIDER },
	{ "default",			DEFAULT },
	{ "denials",			DENIALS },
	{ "deny",			DENY },
	{ "directory",			DIRECTORY },
	{ "dns",			DNS },
	{ "effort",			EFFORT },
	{ "environment",		ENVIRONMENT },
	{ "exec",			EXEC },
	{ "expose",			EXPOSE },
	{ "field",			FIELD },
	{ "file",			TFILE },
	{ "full",			FULL },
	{ "git",			GIT },
	{ "group",			GROUP },
	{ "hash",			HASH },
	{ "header",			HEADER },
	{ "host",			HOST },
	{ "hosts",			HOSTS },
	{ "image",			IMAGE },
	{ "in",				IN },
	{ "in-cluster",			INCLUSTER },
	{ "include",			INCLUDE },
	{ "insecure",			INSECURE },
	{ "key",			KEY },
	{ "kubeconfig",			KUBECONFIG },
	{ "kubernetes",			KUBERNETES },
	{ "level",			LEVEL },
	{ "limit",			LIMIT },
	{ "listen",			LISTEN },
	{ "local",			LOCAL },
	{ "log",			LOG },
	{ "max",			MAX },
	{ "messages",			MESSAGES },
	{ "metadata",			METADATA },
	{ "method",			METHOD },
	{ "mode",			MODE },
	{ "model",			MODEL },
	{ "mount",			MOUNT },
	{ "namespace",			NAMESPACE },
	{ "narrow",			NARROW },
	{ "nocase",			NOCASE },
	{ "on",				ON },
	{ "operator",			OPERATOR },
	{ "out",			OUT },
	{ "owner",			OWNER },
	{ "pass",			PASS },
	{ "password",			PASSWORD },
	{ "path",			PATH },
	{ "pause",			PAUSE },
	{ "persistent",			PERSISTENT },
	{ "policy",			POLICY },
	{ "port",			PORT },
	{ "prompt",			PROMPT },
	{ "query",			QUERY },
	{ "quota",			QUOTA },
	{ "read-only",			READONLY },
	{ "read-write",			READWRITE },
	{ "recreate",			RECREATE },
	{ "redact",			REDACT },
	{ "ref",			REF },
	{ "refuse",			REFUSE },
	{ "resolver",			RESOLVER },
	{ "sandbox",			SANDBOX },
	{ "scheme",			SCHEME },
	{ "server",			SERVER },
	{ "service-account-token",	ACCOUNTTOKEN },
	{ "session",			SESSION },
	{ "show",			SHOW },
	{ "socket",			SOCKET },
	{ "tcp",			TCP },
	{ "temperature",		TEMPERATURE },
	{ "timeout",			TIMEOUT },
	{ "to",				TO },
	{ "token",			TOKEN },
	{ "tokens",			TOKENS },
	{ "transparent",		TRANSPARENT },
	{ "trust",			TRUST },
	{ "ttl",			TTL },
	{ "uids",			UIDS },
	{ "upstream",			UPSTREAM },
	{ "url",			URL },
	{ "user",			USER },
	{ "uses",			USES },
	{ "virtual",			VIRTUAL },
	{ "webhook",			WEBHOOK },
	{ "with",			WITH },
	{ "workspace",			WORKSPACE },
};

#define NKEYWORDS	(sizeof(keywords) / sizeof(keywords[0]))

static int
keyword_cmp(const void *name, const void *kw)
{
	return strcmp(name, ((const struct keyword *)kw)->kw_name);
}

/* The token of a keyword, or STRING. */
int
lex_keyword(const char *word)
{
	const struct keyword	*kw;

	kw = bsearch(word, keywords, NKEYWORDS, sizeof(keywords[0]),
	    keyword_cmp);
	return kw == NULL ? STRING : kw->kw_token;
}

static size_t
min3(size_t a, size_t b, size_t c)
{
	if (a > b)
		a = b;
	return a < c ? a : c;
}

/*
 * Letters to insert, delete, replace or swap with a neighbour to get from a
 * to b; neither is longer than KEYWORD_LEN_MAX.
 */
static size_t
keyword_distance(const char *a, const char *b)
{
	size_t	 d[KEYWORD_LEN_MAX + 1][KEYWORD_LEN_MAX + 1];
	size_t	 i, j, alen = strlen(a), blen = strlen(b);

	for (i = 0; i <= alen; i++)
		d[i][0] = i;
	for (j = 0; j <= blen; j++)
		d[0][j] = j;
	for (i = 1; i <= alen; i++)
		for (j = 1; j <= blen; j++) {
			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1,
			    d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d[i][j] = min3(d[i][j], d[i][j],
				    d[i - 2][j - 2] + 1);
		}
	return d[alen][blen];
}

/* NULL if no keyword is near: a wrong guess is worse than none. */
const char *
lex_nearest(const char *word)
{
	const char	*best = NULL;
	size_t		 i, d, bound, len = strlen(word);

	if (len < 2 || len > KEYWORD_LEN_MAX)
		return NULL;
	bound = len < 6 ? 2 : 3;
	for (i = 0; i < NKEYWORDS; i++) {
		d = keyword_distance(word, keywords[i].kw_name);
		if (d < bound) {
			bound = d;
			best = keywords[i].kw_name;
		}
	}
	return best;
}
