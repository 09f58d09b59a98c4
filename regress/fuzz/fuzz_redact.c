/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/redact.c and common/redact_body.c.  The input makes a
 * JSON document, a form or a query around a secret that is told apart by its
 * letter: wherever the text is cut, none of it is left.  And whatever bytes
 * are given as they are, the result is no longer than a record allows for.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/jsonw.h"
#include "../../common/redact.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

#define SECRET		'Z'	/* occurs nowhere else */
#define TEXT_MAX	4096

struct text {
	char		 tx_buf[TEXT_MAX];
	size_t		 tx_len;
	unsigned int	 tx_depth;	/* of strings around it */
};

struct input {
	const uint8_t	*in_data;
	size_t		 in_len;
};

static unsigned int
take(struct input *in)
{
	if (in->in_len == 0)
		return 0;
	in->in_len--;
	return *in->in_data++;
}

static void
put_char(struct text *tx, char c)
{
	if (tx->tx_len < TEXT_MAX)
		tx->tx_buf[tx->tx_len++] = c;
}

/* What is a quote or backslash is escaped once for each string around it. */
static void
put(struct text *tx, const char *s)
{
	unsigned int	 i;

	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			for (i = 1; i < 1U << tx->tx_depth; i++)
				put_char(tx, '\\');
		put_char(tx, *s);
	}
}

static void
put_name(struct text *tx, struct input *in)
{
	static const char *const	 names[] = {
		"\"password\"", "\"pass\\u0077ord\"", "\"ToKeN\"",
		"\"api_key\"",
		"\"\\u0073ecre\\u0074\"", "\"client-secret\"", "\"mine\"",
		"\"a token\"", "\"min\\u0065\"", "\"passw\\u006Frd2\""
	};

	put(tx, names[take(in) % (sizeof(names) / sizeof(names[0]))]);
}

/* Anything that may stand in a string, with the secret in between. */
static void
put_string(struct text *tx, struct input *in)
{
	static const char *const	 parts[] = {
		"Z", "ZZZZ", "\\\"", "\\\\", "\\\\\\\"", "\\u005a", "\\n", ":",
		"{", "}", "[", "]", ",", " ", "Z\\\":\\\"Z", "&", "="
	};
	unsigned int			 n = take(in) % 8;

	put(tx, "\"");
	while (n-- > 0)
		put(tx, parts[take(in) % (sizeof(parts) / sizeof(parts[0]))]);
	put(tx, "\"");
}

static void	 put_value(struct text *, struct input *, unsigned int);

static void
put_nest(struct text *tx, struct input *in, unsigned int deep)
{
	unsigned int	 n = take(in) % 4, object = take(in) & 1;

	put(tx, object ? "{" : "[");
	while (n-- > 0) {
		if (object)
			put(tx, (take(in) & 1) != 0 ? "\"id\":" : "\"Z\": ");
		put_value(tx, in, deep + 1);
		if (n > 0)
			put(tx, ",");
	}
	put(tx, object ? "}" : "]");
}

static void
put_value(struct text *tx, struct input *in, unsigned int deep)
{
	switch (take(in) % 4) {
	case 0:
	case 1:
		put_string(tx, in);
		break;
	case 2:
		put(tx, "ZZ");	/* where a number would stand */
		break;
	default:
		if (deep < 4)
			put_nest(tx, in, deep);
		else
			put(tx, "null");
	}
}

static void
make_json(struct text *tx, struct input *in)
{
	static const char *const	 before[] = {
		"", "{\"a\":\"b\",", "[{", "data: {\"x\":[1,2],",
		"{\"u\":\"\\\\\",", "{\"u\":\"\\\"\",", "\xff\xfe{"
	};
	static const char *const	 colons[] = {
		":", " : ", "\n:\t", ":\r\n"
	};
	unsigned int			 members = 1 + take(in) % 3;

	tx->tx_depth = take(in) % 4;
	put(tx, before[take(in) % 7]);
	while (members-- > 0) {
		put_name(tx, in);
		put(tx, colons[take(in) % 4]);
		put_value(tx, in, 0);
		put(tx, members > 0 ? "," : "}");
	}
}

static void
make_query(struct text *tx, struct input *in)
{
	static const char *const	 parts[] = {
		"token=Z", "&a=b", "&%74oken=ZZ", ";key=Z;Z", "?sig=Z?Z",
		"&u[password]=Z#Z", "&x", "&mine[]=Z=Z", "&+secret=%5A%00Z"
	};
	unsigned int			 n = take(in) % 16;

	tx->tx_depth = 0;
	put(tx, "/?");
	while (n-- > 0)
		put(tx, parts[take(in) % 9]);
}

static void
require_hidden(struct redacted re)
{
	REQUIRE(re.re_text == NULL ||
	    memchr(re.re_text, SECRET, re.re_len) == NULL);
}

/* As a record would have it. */
static void
require_bounded(struct redacted re, size_t len)
{
	static struct jsonw	 w;
	size_t			 size = 0;

	jsonw_init(&w, 1024 * 1024);
	jsonw_string(&w, re.re_text, re.re_len);
	REQUIRE(jsonw_finish(&w, &size) != NULL);
	REQUIRE(size <= JSONW_ESCAPED(len) + 2);
	jsonw_free(&w);
}

static void
fuzz_made(const struct redact *rd, struct input *in)
{
	static struct text	 tx;
	size_t			 i, step;

	tx.tx_len = 0;
	if ((take(in) & 1) != 0) {
		make_json(&tx, in);
		step = 1 + take(in) % 16;
		for (i = 0; i < tx.tx_len; i += step)
			require_hidden(redact_body(rd, MEDIA_JSON, tx.tx_buf,
			    i));
		require_hidden(redact_body(rd, MEDIA_OTHER, tx.tx_buf,
		    tx.tx_len));
		return;
	}
	make_query(&tx, in);
	for (i = 0; i <= tx.tx_len; i++) {
		require_hidden(redact_path(rd, tx.tx_buf, i));
		require_hidden(redact_value(rd, tx.tx_buf, i));
		if (i >= 2)
			require_hidden(redact_body(rd, MEDIA_FORM,
			    tx.tx_buf + 2, i - 2));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct redact	*rd;
	struct input		 in = { data, len };
	struct redacted		 re;
	enum redact_media	 media;
	const char		*text = (const char *)data;

	if (rd == NULL) {
		rd = redact_new();
		redact_add(rd, REDACT_FIELD, "mine", false);
		redact_add(rd, REDACT_QUERY, "mine", false);
		redact_add(rd, REDACT_QUERY, "a", false);
	}
	fuzz_made(rd, &in);
	require_bounded(redact_path(rd, text, len), len);
	require_bounded(redact_value(rd, text, len), len);
	for (media = MEDIA_UNKNOWN; media <= MEDIA_ENCODED; media++) {
		re = redact_body(rd, media, text, len);
		REQUIRE(re.re_text != NULL || re.re_hidden == len);
	}
	return 0;
}
