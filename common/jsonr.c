/* SPDX-License-Identifier: ISC */

/*
 * The strict JSON reader; see jsonr.h.  Runs in the hands of a sandbox, on what
 * a client sends.  Values are in one array and strings in one buffer; neither
 * can be longer than the text says, which is counted before.
 */

#include <stdlib.h>
#include <string.h>

#include "jsonr.h"
#include "utf8.h"

/* The array of values is the document: its first element is the root. */
struct parse {
	const char	*ps_at;
	const char	*ps_end;
	struct jsonr	*ps_values;
	size_t		 ps_nvalues;
	size_t		 ps_max;
	char		*ps_text;	/* where the next string goes */
	int		 ps_nul;	/* in the string that was read last */
	unsigned int	 ps_depth;
	const char	*ps_why;
};

static struct jsonr	*parse_value(struct parse *);

static int
parse_fail(struct parse *ps, const char *why)
{
	if (ps->ps_why == NULL)
		ps->ps_why = why;
	return -1;
}

static void
parse_space(struct parse *ps)
{
	while (ps->ps_at < ps->ps_end && (*ps->ps_at == ' ' ||
	    *ps->ps_at == '\t' || *ps->ps_at == '\n' || *ps->ps_at == '\r'))
		ps->ps_at++;
}

/* Take this character if it is the next one. */
static int
parse_is(struct parse *ps, char c)
{
	if (ps->ps_at == ps->ps_end || *ps->ps_at != c)
		return 0;
	ps->ps_at++;
	return 1;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Four digits, after `\u'. */
static int
parse_unit(struct parse *ps, uint32_t *unit)
{
	int	 digit, i;

	*unit = 0;
	for (i = 0; i < 4; i++) {
		if (ps->ps_at == ps->ps_end ||
		    (digit = hex_digit(*ps->ps_at++)) == -1)
			return parse_fail(ps, "bad escape");
		*unit = *unit << 4 | (uint32_t)digit;
	}
	return 0;
}

/* What stands for a byte becomes that byte; never more than was read. */
static int
parse_put(struct parse *ps, uint32_t c)
{
	char	*p = ps->ps_text;

	ps->ps_nul |= c == 0;
	if (c >= 0xef80 && c <= 0xefff)
		*p++ = (char)(c & 0xff);
	else if (c < 0x80)
		*p++ = (char)c;
	else {
		if (c < 0x800)
			*p++ = (char)(0xc0 | c >> 6);
		else {
			if (c < 0x10000)
				*p++ = (char)(0xe0 | c >> 12);
			else {
				*p++ = (char)(0xf0 | c >> 18);
				*p++ = (char)(0x80 | (c >> 12 & 0x3f));
			}
			*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		}
		*p++ = (char)(0x80 | (c & 0x3f));
	}
	ps->ps_text = p;
	return 0;
}

static int
parse_escape(struct parse *ps)
{
	static const char	 from[] = "\"\\/bfnrt";
	static const char	 to[] = "\"\\/\b\f\n\r\t";
	const char		*p;
	uint32_t		 c, low;

	if (ps->ps_at == ps->ps_end)
		return parse_fail(ps, "string without an end");
	if (*ps->ps_at != '\0' && (p = strchr(from, *ps->ps_at)) != NULL) {
		ps->ps_at++;
		return parse_put(ps, (uint32_t)to[p - from]);
	}
	if (!parse_is(ps, 'u'))
		return parse_fail(ps, "bad escape");
	if (parse_unit(ps, &c) == -1)
		return -1;
	if (c >= 0xd800 && c <= 0xdbff) {
		if (!parse_is(ps, '\\') || !parse_is(ps, 'u') ||
		    parse_unit(ps, &low) == -1 || low < 0xdc00 || low > 0xdfff)
			return parse_fail(ps, "half a surrogate pair");
		c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
	} else if (c >= 0xdc00 && c <= 0xdfff)
		return parse_fail(ps, "half a surrogate pair");
	return parse_put(ps, c);
}

static int
parse_character(struct parse *ps)
{
	uint32_t	 c;
	size_t		 n;

	if ((uint8_t)*ps->ps_at < 0x20)
		return parse_fail(ps, "control character in a string");
	n = utf8_decode(ps->ps_at, (size_t)(ps->ps_end - ps->ps_at), &c);
	if (n == 0)
		return parse_fail(ps, "not UTF-8");
	ps->ps_at += n;
	return parse_put(ps, c);
}

/* After the first quote, up to the last one. */
static const char *
parse_string(struct parse *ps, size_t *len)
{
	const char	*text = ps->ps_text;

	ps->ps_nul = 0;
	for (;;) {
		if (ps->ps_at == ps->ps_end) {
			parse_fail(ps, "string without an end");
			return NULL;
		}
		if (parse_is(ps, '"'))
			break;
		if ((parse_is(ps, '\\') ? parse_escape(ps) :
		    parse_character(ps)) == -1)
			return NULL;
	}
	*len = (size_t)(ps->ps_text - text);
	*ps->ps_text++ = '\0';
	return text;
}

static size_t
parse_digits(struct parse *ps)
{
	const char	*from = ps->ps_at;

	while (ps->ps_at < ps->ps_end && *ps->ps_at >= '0' && *ps->ps_at <= '9')
		ps->ps_at++;
	return (size_t)(ps->ps_at - from);
}

/* RFC 8259 section 6: what follows the digits of an integer. */
static int
parse_fraction(struct parse *ps, struct jsonr *jr)
{
	if (parse_is(ps, '.')) {
		jr->jr_type = JSONR_NUMBER;
		if (parse_digits(ps) == 0)
			return parse_fail(ps, "bad number");
	}
	if (parse_is(ps, 'e') || parse_is(ps, 'E')) {
		jr->jr_type = JSONR_NUMBER;
		if (!parse_is(ps, '+'))
			(void)parse_is(ps, '-');
		if (parse_digits(ps) == 0)
			return parse_fail(ps, "bad number");
	}
	return 0;
}

static int
parse_number(struct parse *ps, struct jsonr *jr)
{
	int		 negative = parse_is(ps, '-');
	const char	*p = ps->ps_at;
	size_t		 len = parse_digits(ps);

	if (len == 0 || (len > 1 && *p == '0'))
		return parse_fail(ps, "bad number");
	jr->jr_type = JSONR_INTEGER;
	for (; len > 0; len--, p++)
		if (jr->jr_number <= JSONR_INTEGER_MAX)
			jr->jr_number = jr->jr_number * 10 + (*p - '0');
	if (jr->jr_number > JSONR_INTEGER_MAX) {
		jr->jr_type = JSONR_NUMBER;
		jr->jr_number = 0;
	}
	if (negative)
		jr->jr_number = -jr->jr_number;
	return parse_fraction(ps, jr);
}

static int
parse_word(struct parse *ps, struct jsonr *jr)
{
	static const struct {
		const char	*word;
		size_t		 len;
		enum jsonr_type	 type;
		int		 number;
	} words[] = {
		{ "null", 4, JSONR_NULL, 0 },
		{ "true", 4, JSONR_BOOL, 1 },
		{ "false", 5, JSONR_BOOL, 0 },
	};
	size_t	 i, left = (size_t)(ps->ps_end - ps->ps_at);

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (left < words[i].len || memcmp(ps->ps_at, words[i].word,
		    words[i].len) != 0)
			continue;
		ps->ps_at += words[i].len;
		jr->jr_type = words[i].type;
		jr->jr_number = words[i].number;
		return 0;
	}
	return parse_fail(ps, "no value");
}

/* `"name":', before a member's value. */
static const char *
parse_name(struct parse *ps, const struct jsonr *object)
{
	const char	*name;
	size_t		 len;

	parse_space(ps);
	if (!parse_is(ps, '"')) {
		parse_fail(ps, "member without a name");
		return NULL;
	}
	if ((name = parse_string(ps, &len)) == NULL)
		return NULL;
	parse_space(ps);
	if (!parse_is(ps, ':'))
		parse_fail(ps, "member without a value");
	else if (object->jr_len == JSONR_MEMBERS_MAX)
		parse_fail(ps, "too many members");
	else if (jsonr_member(object, name) != NULL)
		parse_fail(ps, "a name twice in an object");
	else
		return name;
	return NULL;
}

/* The values of a container, after its bracket. */
static int
parse_values(struct parse *ps, struct jsonr *jr, char end)
{
	struct jsonr	**next = &jr->jr_first, *value;
	const char	*name = NULL;
	int		 nul;

	parse_space(ps);
	if (parse_is(ps, end))
		return 0;
	do {
		if (jr->jr_type == JSONR_OBJECT &&
		    (name = parse_name(ps, jr)) == NULL)
			return -1;
		nul = name != NULL && ps->ps_nul;
		if ((value = parse_value(ps)) == NULL)
			return -1;
		value->jr_name = name;
		if (nul)
			value->jr_type = JSONR_NUL;
		*next = value;
		next = &value->jr_next;
		jr->jr_len++;
		parse_space(ps);
	} while (parse_is(ps, ','));
	if (!parse_is(ps, end))
		return parse_fail(ps, "container without an end");
	return 0;
}

static int
parse_container(struct parse *ps, struct jsonr *jr, char end)
{
	int	 error;

	jr->jr_type = end == '}' ? JSONR_OBJECT : JSONR_ARRAY;
	if (ps->ps_depth++ == JSONR_DEPTH_MAX)
		return parse_fail(ps, "nested too deep");
	error = parse_values(ps, jr, end);
	ps->ps_depth--;
	return error;
}

static int
parse_any(struct parse *ps, struct jsonr *jr)
{
	if (parse_is(ps, '"')) {
		jr->jr_text = parse_string(ps, &jr->jr_len);
		jr->jr_type = ps->ps_nul ? JSONR_NUL : JSONR_STRING;
		return jr->jr_text == NULL ? -1 : 0;
	}
	if (parse_is(ps, '{'))
		return parse_container(ps, jr, '}');
	if (parse_is(ps, '['))
		return parse_container(ps, jr, ']');
	if (ps->ps_at < ps->ps_end && (*ps->ps_at == '-' ||
	    (*ps->ps_at >= '0' && *ps->ps_at <= '9')))
		return parse_number(ps, jr);
	return parse_word(ps, jr);
}

static struct jsonr *
parse_value(struct parse *ps)
{
	struct jsonr	*jr;

	parse_space(ps);
	if (ps->ps_nvalues == ps->ps_max) {
		parse_fail(ps, "too many values");
		return NULL;
	}
	jr = &ps->ps_values[ps->ps_nvalues++];
	return parse_any(ps, jr) == -1 ? NULL : jr;
}

/* No more values than there are commas and brackets, and one. */
static size_t
parse_count(const char *text, size_t len)
{
	size_t	 i, n = 1;

	for (i = 0; i < len && n < JSONR_VALUES_MAX; i++)
		n += text[i] == ',' || text[i] == '[' || text[i] == '{';
	return n;
}

/*
 * The strings are behind the values, in the same piece of memory.  Each is
 * shorter than it is in the text, where it has quotes, even with its NUL.
 */
struct jsonr *
jsonr_parse(const char *text, size_t len, const char **why)
{
	struct parse	 ps = { .ps_at = text, .ps_end = text + len };

	ps.ps_max = parse_count(text, len);
	if (len > SIZE_MAX / 2 || (ps.ps_values = calloc(1,
	    ps.ps_max * sizeof(*ps.ps_values) + len + 1)) == NULL) {
		*why = "out of memory";
		return NULL;
	}
	ps.ps_text = (char *)(ps.ps_values + ps.ps_max);
	if (parse_value(&ps) != NULL) {
		parse_space(&ps);
		if (ps.ps_at == ps.ps_end)
			return ps.ps_values;
		parse_fail(&ps, "something after the value");
	}
	*why = ps.ps_why;
	free(ps.ps_values);
	return NULL;
}

void
jsonr_free(struct jsonr *jr)
{
	free(jr);
}

const struct jsonr *
jsonr_member(const struct jsonr *object, const char *name)
{
	const struct jsonr	*jr;

	for (jr = object->jr_first; jr != NULL; jr = jr->jr_next)
		if (jr->jr_name != NULL && strcmp(jr->jr_name, name) == 0)
			return jr;
	return NULL;
}
