/* SPDX-License-Identifier: ISC */

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
	de->de_kind = md->kind;
	option_presets(decider_table, &de->de_options);
	de->de_refs = 1;
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
	for (i = 0; i < FILE_KIND_MAX; i++)
		secret_free(de->de_files[i]);
	secret_free(de->de_auth);
	for (i = 0; i < HEADERS_MORE; i++)
		free(de->de_more[i]);
	free(de->de_prompt.tx_data);
	free(de->de_bundle.tx_data);
	https_server_unref(de->de_server);
	option_free(decider_table, &de->de_options);
	free(de);
}

static void
add_header(struct decider *de, const char *line)
{
	size_t	 i = 0;

	while (i < HEADERS_MAX + HEADERS_MORE && de->de_headers[i] != NULL)
		i++;
	if (i == HEADERS_MAX + HEADERS_MORE)
		fatalx("%s: more than %zu", __func__, i);
	de->de_headers[i] = line;
}

/* The parent has checked the header; -1 for one that it would not send. */
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
	if (de->de_options.do_key_header != NULL)
		name = de->de_options.do_key_header;
	else if (de->de_kind == DECIDER_AGENT &&
	    de->de_options.do_api == API_ANTHROPIC)
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

/* A server without a bundle cannot be verified: the client never asks it. */
static int
take_trust(struct decider *de)
{
	struct text		*tx = &de->de_bundle;
	struct https_trust	*tr;

	if (tx->tx_data == NULL || !https_server_tls(de->de_server))
		return 0;
	if ((tr = https_trust_new(tx->tx_data, tx->tx_len)) == NULL)
		return -1;
	https_server_trust(de->de_server, tr);
	free(tx->tx_data);
	tx->tx_data = NULL;
	return 0;
}

/* The slice is complete: make it ready to be asked, or -1 and why not. */
int
decider_ready(struct decider *de, char *why, size_t len)
{
	const struct decider_options	*op = &de->de_options;

	if (de->de_kind == DECIDER_SOCKET || op->do_persistent)
		de->de_stream = stream_new(de);
	if (de->de_kind != DECIDER_AGENT && de->de_kind != DECIDER_WEBHOOK)
		return 0;
	de->de_form_auto = op->do_form == FORM_AUTO;
	de->de_form = de->de_form_auto ? FORM_SCHEMA : op->do_form;
	if (op->do_url == NULL ||
	    (de->de_server = https_server_new(op->do_url)) == NULL) {
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
	if (take_trust(de) == -1) {
		snprintf(why, len, "trust file of \"%s\": not certificates in "
		    "PEM form", de->de_name);
		return -1;
	}
	add_header(de, "Content-Type: application/json");
	add_header(de, "Accept: application/json");
	if (de->de_kind == DECIDER_AGENT && op->do_api == API_ANTHROPIC)
		add_header(de, "anthropic-version: 2023-06-01");
	return 0;
}
