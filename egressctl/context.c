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
 * egressctl: what deciders are told about a session besides its requests.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "egressctl.h"
#include "utf8.h"

/* JSON is UTF-8, and what is not would be refused without saying where. */
void
check_text(const char *what, const char *s)
{
	const char	*start = s;
	uint32_t	 code;
	size_t		 len;

	for (; *s != '\0'; s += len)
		if ((len = utf8_decode(s, UTF8_LEN_MAX, &code)) == 0)
			errx(EXIT_USAGE, "%s: not UTF-8 at byte %zu", what,
			    (size_t)(s - start) + 1);
}

/* The standard input without the newline that ends it. */
static char *
read_input(void)
{
	char	*text;
	size_t	 len;

	if ((text = malloc(REQUEST_MAX + 1)) == NULL)
		err(EXIT_USAGE, NULL);
	len = fread(text, 1, REQUEST_MAX + 1, stdin);
	if (ferror(stdin))
		err(EXIT_USAGE, "standard input");
	if (len > REQUEST_MAX)
		errx(EXIT_USAGE, "standard input: too long, a request has at "
		    "most %d bytes", REQUEST_MAX);
	if (memchr(text, '\0', len) != NULL)
		errx(EXIT_USAGE, "standard input: there is a NUL in it");
	if (len > 0 && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return text;
}

void
message_ask(const struct invocation *in, cJSON *request)
{
	char	*text = NULL;

	if (strcmp(in->in_text, "-") == 0)
		text = read_input();
	check_text("role", in->in_role);
	check_text("text", text != NULL ? text : in->in_text);
	cJSON_AddStringToObject(request, "session", in->in_session);
	cJSON_AddStringToObject(request, "role", in->in_role);
	cJSON_AddStringToObject(request, "content",
	    text != NULL ? text : in->in_text);
	free(text);
}

/* A key that comes twice is an error, as it is for the daemon. */
static void
add_pair(cJSON *metadata, const char *pair)
{
	const char	*value = strchr(pair, '=') + 1;
	char		*key;

	check_text("metadata", pair);
	if ((key = strndup(pair, (size_t)(value - pair) - 1)) == NULL)
		err(EXIT_USAGE, NULL);
	if (json_get(metadata, key) != NULL)
		errx(EXIT_USAGE, "metadata: a key is given twice");
	cJSON_AddStringToObject(metadata, key, value);
	free(key);
}

void
metadata_ask(const struct invocation *in, cJSON *request)
{
	cJSON	*metadata;
	size_t	 i;

	cJSON_AddStringToObject(request, "session", in->in_session);
	metadata = cJSON_AddObjectToObject(request, "metadata");
	for (i = 0; i < in->in_nwords; i++)
		add_pair(metadata, in->in_words[i]);
}
