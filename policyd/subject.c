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
 * policyd: what a question is about.  Host and path are canonical: verdict.c
 * has seen to it, so two ways to write one thing are one subject.
 */

#include <stdlib.h>
#include <string.h>

#include "policyd.h"

static char *
keep_text(const char *text)
{
	char	*copy;

	if ((copy = strdup(text)) == NULL)
		fatal("%s", __func__);
	return copy;
}

void
subject_copy(struct subject *to, const struct subject *from)
{
	*to = *from;
	to->sj_host = keep_text(from->sj_host);
	to->sj_method = keep_text(from->sj_method);
	to->sj_path = keep_text(from->sj_path);
}

static void
free_text(const char *text)
{
	free((void *)(uintptr_t)text);
}

/* A copy's. */
void
subject_free(struct subject *sj)
{
	free_text(sj->sj_host);
	free_text(sj->sj_method);
	free_text(sj->sj_path);
}

size_t
subject_size(const struct subject *sj)
{
	return strlen(sj->sj_host) + strlen(sj->sj_method) +
	    strlen(sj->sj_path) + 3;
}

/* A word about a small upload is none about a large one. */
int
subject_size_class(const struct subject *sj)
{
	if (sj->sj_length == UINT64_MAX)
		return 5;
	return sj->sj_length == 0 ? 0 : sj->sj_length <= 1024 ? 1 :
	    sj->sj_length <= 65536 ? 2 : sj->sj_length <= 1048576 ? 3 : 4;
}

static int
number_cmp(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* 0 if an answer about one, kept like this, is one about the other. */
int
subject_cmp(const struct subject *a, const struct subject *b,
    enum rule_cache cache)
{
	int	 n;

	if ((n = number_cmp(a->sj_scheme, b->sj_scheme)) != 0 ||
	    (n = number_cmp(a->sj_port, b->sj_port)) != 0 ||
	    (n = strcmp(a->sj_host, b->sj_host)) != 0 || cache == CACHE_HOST)
		return n;
	if ((n = number_cmp(subject_size_class(a),
	    subject_size_class(b))) != 0 ||
	    (n = strcmp(a->sj_method, b->sj_method)) != 0)
		return n;
	return strcmp(a->sj_path, b->sj_path);
}

/* At most so many bytes, and no character cut in two. */
size_t
text_cut(const char *text, size_t len, size_t max)
{
	size_t	 n;

	if (len <= max)
		return len;
	for (n = max; n > max - 4 && (text[n] & 0xc0) == 0x80; n--)
		continue;
	return (text[n] & 0xc0) == 0x80 ? max : n;
}

/*
 * What records hide (promise P7), deciders and operators do not see either;
 * that something is hidden, and how much, they are told: data could leave in
 * it.
 */
static void
put_path(struct jsonw *w, const struct redact *rd, const char *path, int query)
{
	struct redacted	 re = redact_path(rd, path, strlen(path));
	size_t		 n;

	n = text_cut(re.re_text, query ? re.re_len : strcspn(path, "?"),
	    SHOWN_PATH);
	jsonw_key(w, "path");
	jsonw_string(w, re.re_text, n);
	if (n < re.re_len)
		put_bool(w, "path_truncated", 1);
	if (query && re.re_hidden > 0)
		put_uint(w, "path_redacted", re.re_hidden);
}

/* Into an object. */
void
subject_put_place(struct jsonw *w, const struct subject *sj)
{
	static const char *const	 schemes[URL_SCHEME_MAX] = {
		[URL_HTTP] = "http", [URL_HTTPS] = "https", [URL_TCP] = "tcp",
	};

	put_str(w, "scheme", schemes[sj->sj_scheme]);
	put_str(w, "host", sj->sj_host);
	put_uint(w, "port", sj->sj_port);
}

/* The same, and the rest; those who may only look do not see the query. */
void
subject_put(struct jsonw *w, const struct redact *rd,
    const struct subject *sj, int query)
{
	subject_put_place(w, sj);
	if (sj->sj_scheme == URL_TCP) {
		put_str(w, "method", NULL);
		put_str(w, "path", NULL);
		return;
	}
	put_str(w, "method", sj->sj_method);
	put_path(w, rd, sj->sj_path, query);
}
