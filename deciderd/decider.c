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
 * deciderd runs this: a decider, its credentials and its files.  Questions
 * keep the decider that they were put to, so that a reload takes nothing away
 * from under them.
 *
 * The key is kept in one place: the header that carries it, in memory for
 * secrets, which libcurl reads where it lies.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "deciderd.h"

#define KEY_LEN	4096

struct decider *
decider_new(const struct msg_conf_decider *md)
{
	struct decider	*de;

	if ((de = calloc(1, sizeof(*de))) == NULL)
		fatal("%s", __func__);
	strlcpy(de->de_name, md->name, sizeof(de->de_name));
	strlcpy(de->de_url, md->url, sizeof(de->de_url));
	strlcpy(de->de_model, md->model, sizeof(de->de_model));
	de->de_kind = md->kind;
	de->de_api = md->api;
	de->de_form_auto = md->form == FORM_AUTO;
	de->de_form = de->de_form_auto ? FORM_SCHEMA : md->form;
	de->de_max_tokens = md->max_tokens;
	de->de_temperature = md->temperature;
	strlcpy(de->de_effort, md->effort, sizeof(de->de_effort));
	strlcpy(de->de_key_header, md->key_header, sizeof(de->de_key_header));
	de->de_persistent = md->persistent != 0;
	de->de_refs = 1;
	TAILQ_INIT(&de->de_place.pc_waiting);
	if (de->de_kind == DECIDER_SOCKET || de->de_persistent)
		de->de_stream = stream_new(de);
	return de;
}

struct decider *
decider_ref(struct decider *de)
{
	de->de_refs++;
	return de;
}

void
decider_unref(struct decider *de)
{
	size_t	 i;

	if (de == NULL || --de->de_refs > 0)
		return;
	stream_free(de->de_stream);
	place_free(&de->de_place);
	for (i = 0; i < FILE_KIND_MAX; i++)
		secret_free(de->de_files[i]);
	secret_free(de->de_auth);
	for (i = 0; i < HEADERS_MORE; i++)
		free(de->de_more[i]);
	free(de->de_prompt.tx_data);
	free(de->de_bundle.tx_data);
	trust_unref(de->de_trust);
	free(de);
}

static void
add_header(struct decider *de, const char *line)
{
	struct curl_slist	*sl = de->de_headers;
	size_t			 i = 0;

	while (i < HEADERS_MAX + HEADERS_MORE && sl[i].data != NULL)
		i++;
	if (i == HEADERS_MAX + HEADERS_MORE)
		fatalx("%s: more than %zu", __func__, i);
	/* libcurl has no const here and changes nothing. */
	sl[i].data = strchr(line, *line);
	if (i > 0)
		sl[i - 1].next = &sl[i];
}

/* The parent has looked at it; one that it would not send is bad. */
int
decider_header(struct decider *de, const struct msg_conf_header *mh)
{
	size_t	 i = 0;

	while (i < HEADERS_MORE && de->de_more[i] != NULL)
		i++;
	if (i == HEADERS_MORE || strpbrk(mh->name, ":\r\n") != NULL ||
	    strpbrk(mh->value, "\r\n") != NULL)
		return -1;
	if (asprintf(&de->de_more[i], "%s: %s", mh->name, mh->value) == -1)
		fatal("%s", __func__);
	add_header(de, de->de_more[i]);
	return 0;
}

/* A line break in a key would begin another header. */
static int
key_check(const struct secret *key)
{
	size_t	 i;

	for (i = 0; i < key->sc_len; i++)
		if (key->sc_data[i] <= ' ' || key->sc_data[i] >= 0x7f)
			return -1;
	return key->sc_len <= KEY_LEN ? 0 : -1;
}

static int
make_auth(struct decider *de)
{
	struct secret	*key = de->de_files[FILE_KEY];
	const char	*name = "Authorization", *scheme;
	size_t		 size;

	if (key == NULL)
		return 0;
	if (key_check(key) == -1)
		return -1;
	if (de->de_key_header[0] != '\0')
		name = de->de_key_header;
	else if (de->de_kind == DECIDER_AGENT && de->de_api == API_ANTHROPIC)
		name = "x-api-key";
	scheme = strcasecmp(name, "authorization") == 0 ? ": Bearer " : ": ";
	size = strlen(name) + strlen(scheme) + key->sc_len + 1;
	if ((de->de_auth = secret_alloc(size)) == NULL)
		fatal("%s", __func__);
	de->de_auth->sc_len = (size_t)snprintf((char *)de->de_auth->sc_data,
	    size, "%s%s%s", name, scheme, (const char *)key->sc_data);
	secret_free(key);
	de->de_files[FILE_KEY] = NULL;
	add_header(de, (const char *)de->de_auth->sc_data);
	return 0;
}

/* All of it is there: is it sound?  Else -1 and why. */
int
decider_ready(struct decider *de, char *why, size_t len)
{
	if (de->de_kind != DECIDER_AGENT && de->de_kind != DECIDER_WEBHOOK)
		return 0;
	if (place_parse(&de->de_place, de->de_url,
	    sizeof(de->de_url)) == -1) {
		snprintf(why, len, "url of \"%s\" cannot be used",
		    de->de_name);
		return -1;
	}
	if (make_auth(de) == -1) {
		snprintf(why, len, "key file of \"%s\": not 1 to %d printable "
		    "characters on one line", de->de_name, KEY_LEN);
		return -1;
	}
	if (de->de_prompt.tx_data != NULL &&
	    !agent_prompt_fits(&de->de_prompt)) {
		snprintf(why, len, "prompt file of \"%s\": not UTF-8 text",
		    de->de_name);
		return -1;
	}
	if (de->de_place.pc_tls && de->de_bundle.tx_data != NULL &&
	    (de->de_trust = trust_take(&de->de_bundle)) == NULL) {
		snprintf(why, len, "trust file of \"%s\": not certificates in "
		    "PEM form", de->de_name);
		return -1;
	}
	add_header(de, "Content-Type: application/json");
	add_header(de, "Accept: application/json");
	/* libcurl would wait for leave to send a body. */
	add_header(de, "Expect:");
	if (de->de_kind == DECIDER_AGENT && de->de_api == API_ANTHROPIC)
		add_header(de, "anthropic-version: 2023-06-01");
	return 0;
}
