/* SPDX-License-Identifier: ISC */

/*
 * policyd: what a question is about.  Host and path are canonical: verdict.c
 * has seen to it, so two ways to write one thing are one subject.
 */

#include <stdlib.h>
#include <string.h>

#include "policyd.h"
#include "utf8.h"

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

/* Of a subject made by subject_copy(). */
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

/* A decision about a small upload is none about a large one. */
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

/*
 * What records hide (promise P7), deciders and operators do not see either;
 * that something is hidden, and how much, they are told: data could leave in
 * it.  Those who may only look do not see the query.
 */
void
subject_show(struct shown *sh, const struct redact *rd,
    const struct subject *sj, int query)
{
	struct redacted	 re;
	size_t		 n;

	memset(sh, 0, sizeof(*sh));
	if (sj->sj_scheme == URL_TCP)
		return;
	re = redact_path(rd, sj->sj_path, strlen(sj->sj_path));
	n = utf8_cut(re.re_text, query ? re.re_len :
	    strcspn(sj->sj_path, "?"), SHOWN_LEN);
	memcpy(sh->sh_path, re.re_text, n);
	sh->sh_truncated = n < re.re_len || sj->sj_cut;
	if (query)
		sh->sh_redacted = sj->sj_hidden > re.re_hidden ?
		    sj->sj_hidden : re.re_hidden;
}

/* Into an object. */
void
subject_put(struct jsonw *w, const struct redact *rd,
    const struct subject *sj)
{
	struct shown	 sh;

	subject_show(&sh, rd, sj, 1);
	put_str(w, "scheme", url_scheme_name(sj->sj_scheme));
	put_str(w, "host", sj->sj_host);
	put_uint(w, "port", sj->sj_port);
	if (sj->sj_scheme == URL_TCP) {
		put_str(w, "method", NULL);
		put_str(w, "path", NULL);
		return;
	}
	put_str(w, "method", sj->sj_method);
	put_str(w, "path", sh.sh_path);
	if (sh.sh_truncated)
		put_bool(w, "path_truncated", 1);
	if (sh.sh_redacted > 0)
		put_uint(w, "path_redacted", sh.sh_redacted);
}
