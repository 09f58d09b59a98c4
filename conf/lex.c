/* SPDX-License-Identifier: ISC */

/*
 * The lexer of egressd.conf(5).  Whoever runs it reads files that only root
 * or its own user can have written, so the input is trusted to be meant well
 * but not to be well formed.
 *
 * It knows the one thing about the grammar that makes errors legible: which
 * braces open a block of statements and which a list.  Inside a list a newline
 * is mere space; in a block it ends a statement, and there the parser finds its
 * feet again after a mistake.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "confparse.h"
#include "parse.h"

#define STRING_LEN_MAX	4095

static int
lex_peek(const struct lexer *lx)
{
	const struct lex_source	*sr = lx->lx_source;

	if (sr == NULL || sr->sr_next == sr->sr_len)
		return EOF;
	return (unsigned char)sr->sr_buf[sr->sr_next];
}

static struct conf_pos
lex_pos(const struct lexer *lx)
{
	struct conf_pos	 pos;

	pos.p_file = lx->lx_source->sr_name;
	pos.p_line = lx->lx_source->sr_line;
	return pos;
}

/* One mistake easily looks like several: a line gets one message. */
static bool
lex_first_on_line(struct lexer *lx, struct conf_pos pos)
{
	if (lx->lx_error.p_file == pos.p_file &&
	    lx->lx_error.p_line == pos.p_line)
		return false;
	lx->lx_error = pos;
	return true;
}

static int
lex_error(struct parse *ps, struct conf_pos pos, const char *what,
    const char *text)
{
	if (lex_first_on_line(&ps->ps_lex, pos)) {
		if (text != NULL)
			conf_error(ps, pos, "\"%s\": %s", text, what);
		else
			conf_error(ps, pos, "%s", what);
	}
	return INVALID;
}

static void
yyerror_word(struct parse *ps, struct conf_pos pos, const char *word)
{
	const char	*near = lex_nearest(word);

	if (near != NULL)
		conf_error(ps, pos,
		    "unknown keyword \"%s\", did you mean \"%s\"?", word,
		    near);
	else
		conf_error(ps, pos, "unknown keyword \"%s\"", word);
}

void
yyerror(struct parse *ps, const char *msg)
{
	struct lexer	*lx = &ps->ps_lex;
	struct conf_pos	 pos = lx->lx_value.pos;

	if (!lex_first_on_line(lx, pos))
		return;
	if (lx->lx_token == 0 && lx->lx_depth > 0)
		conf_error(ps, pos, "unexpected end of file: the brace of "
		    "line %u is not closed", lx->lx_open.p_line);
	else if (lx->lx_token == 0)
		conf_error(ps, pos, "%s at end of file", msg);
	else if (lx->lx_token == '\n')
		conf_error(ps, pos, "unexpected end of line after \"%s\"",
		    lx->lx_before);
	else if (lx->lx_token == STRING && !lx->lx_value.quoted)
		yyerror_word(ps, pos, lx->lx_value.text);
	else
		conf_error(ps, pos, "\"%s\" is not expected here",
		    lx->lx_value.text);

	/* A block whose head is wrong is skipped like a list. */
	if (lx->lx_token == OPEN) {
		lx->lx_block = false;
		lx->lx_lost = true;
	}
	lx->lx_opener = false;
}

/* The parser resumes after an error: forget the half-read statement. */
void
lex_resync(struct parse *ps)
{
	ps->ps_lex.lx_replay = NULL;
	ps->ps_lex.lx_replay_list = false;
	ps->ps_lex.lx_mode = LEX_NORMAL;
	conf_lists_reset(ps);
}

static bool
lex_skip_continuation(struct lex_source *sr)
{
	size_t	 at = sr->sr_next + 1;

	if (at < sr->sr_len && sr->sr_buf[at] == '\r')
		at++;
	if (at >= sr->sr_len || sr->sr_buf[at] != '\n')
		return false;
	sr->sr_next = at + 1;
	sr->sr_line++;
	return true;
}

static void
lex_skip_space(struct lexer *lx)
{
	struct lex_source	*sr = lx->lx_source;
	int			 c;

	while ((c = lex_peek(lx)) != EOF) {
		if (c == ' ' || c == '\t' || c == '\r')
			sr->sr_next++;
		else if (c == '#') {
			while ((c = lex_peek(lx)) != '\n' && c != EOF)
				sr->sr_next++;
		} else if (c != '\\' || !lex_skip_continuation(sr))
			return;
	}
}

static bool
lex_is_word(int c)
{
	return c != EOF && c != '\0' &&
	    (isalnum(c) || strchr("._-*/:+@%~", c) != NULL);
}

/*
 * The end of an included file is the end of its last line.  A block cannot
 * span files: its other half would be looked for in the wrong one.
 */
static int
lex_end(struct parse *ps)
{
	struct lexer	*lx = &ps->ps_lex;

	if (lx->lx_depth > (lx->lx_block ? 1U : 0U))
		return 0;
	if (!lx->lx_source->sr_ended) {
		lx->lx_source->sr_ended = true;
		lx->lx_opener = false;
		return '\n';
	}
	if (lx->lx_depth > 0 || lx->lx_source->sr_outer == NULL)
		return 0;
	lex_pop(ps);
	return -1;
}

static int
lex_brace_open(struct lexer *lx, struct conf_pos pos)
{
	if (lx->lx_mode == LEX_RAW_NEXT)
		lx->lx_mode = LEX_RAW_LIST;
	if (lx->lx_depth++ > 0)
		return '{';
	lx->lx_open = pos;
	lx->lx_block = lx->lx_opener;
	lx->lx_opener = false;
	if (lx->lx_error.p_file == pos.p_file &&
	    lx->lx_error.p_line == pos.p_line)
		lx->lx_lost = true;
	return lx->lx_block ? OPEN : '{';
}

static int
lex_brace_close(struct lexer *lx)
{
	lx->lx_mode = LEX_NORMAL;
	if (lx->lx_depth == 0 || --lx->lx_depth > 0 || !lx->lx_block)
		return '}';
	lx->lx_block = false;
	return CLOSE;
}

/*
 * A mistake inside a string does not end it: what follows would be taken for
 * the beginning of another.
 */
static int
lex_quoted(struct parse *ps, struct lex_value *val)
{
	struct lex_source	*sr = ps->ps_lex.lx_source;
	const char		*why = NULL;
	char			 buf[STRING_LEN_MAX];
	size_t			 len = 0;
	int			 c;

	for (;;) {
		sr->sr_next++;
		c = lex_peek(&ps->ps_lex);
		if (c == '"')
			break;
		if (c == '\\') {
			sr->sr_next++;
			c = lex_peek(&ps->ps_lex);
			if (c != '"' && c != '\\')
				why = "only \\\" and \\\\ are escapes in a "
				    "string";
		}
		if (c == EOF || c == '\n')
			return lex_error(ps, val->pos,
			    "string is not closed on its line", NULL);
		if ((c < ' ' && c != '\t') || c == 0x7f)
			why = "control character in a string";
		if (len == sizeof(buf))
			why = "string is longer than 4095 bytes";
		else
			buf[len++] = (char)c;
	}
	sr->sr_next++;
	if (why != NULL)
		return lex_error(ps, val->pos, why, NULL);
	val->text = conf_strndup(ps->ps_conf, buf, len);
	val->quoted = true;
	return STRING;
}

static const struct lex_unit {
	const char	*un_name;
	int		 un_token;
	int64_t		 un_factor;
} lex_units[] = {
	{ "",	NUMBER,		1 },
	{ "ms",	DURATION,	1 },
	{ "s",	DURATION,	1000 },
	{ "m",	DURATION,	60 * 1000 },
	{ "h",	DURATION,	60 * 60 * 1000 },
	{ "d",	DURATION,	24 * 60 * 60 * 1000 },
	{ "K",	SIZE,		1024 },
	{ "M",	SIZE,		1024 * 1024 },
	{ "G",	SIZE,		1024 * 1024 * 1024 },
};

/* A mark or like, as nft(8) prints it; elsewhere such a word may be a name. */
static bool
lex_hexadecimal(const struct lexer *lx, struct lex_value *val)
{
	const char	*p = val->text;
	char		*end;

	if (lx->lx_token != O_COUNT || p[0] != '0' || p[1] != 'x' ||
	    !isxdigit((unsigned char)p[2]) || strlen(p) > 2 + 15)
		return false;
	val->number = strtoll(p, &end, 16);
	return *end == '\0';
}

/* STRING if the word is no number, as many names begin with a digit. */
static int
lex_number(struct parse *ps, struct lex_value *val)
{
	const char	*p = val->text;
	size_t		 i;

	if (lex_hexadecimal(&ps->ps_lex, val))
		return NUMBER;
	for (val->number = 0; isdigit((unsigned char)*p); p++) {
		if (val->number > INT64_MAX / 10 - 1)
			return lex_error(ps, val->pos, "number is too large",
			    val->text);
		val->number = val->number * 10 + (*p - '0');
	}
	for (i = 0; i < sizeof(lex_units) / sizeof(lex_units[0]); i++) {
		if (strcmp(p, lex_units[i].un_name) != 0)
			continue;
		if (val->number > INT64_MAX / lex_units[i].un_factor)
			return lex_error(ps, val->pos, "number is too large",
			    val->text);
		val->number *= lex_units[i].un_factor;
		return lex_units[i].un_token;
	}
	if (*p++ != '-' || !isdigit((unsigned char)*p))
		return STRING;
	for (val->last = 0; isdigit((unsigned char)*p) &&
	    val->last < INT64_MAX / 10 - 1; p++)
		val->last = val->last * 10 + (*p - '0');
	return *p == '\0' ? RANGE : STRING;
}

/* After some keywords the next word is text, even if it is a keyword. */
static void
lex_after_keyword(struct lexer *lx, int token)
{
	switch (token) {
	case HEADER:
	case QUERY:
	case FIELD:
	case ENVIRONMENT:
	case C_PAIRS:
	case C_RAW:
	case O_NAMES:
	case O_PAIRS:
	case O_RAW:
		lx->lx_mode = LEX_RAW_NEXT;
		break;
	case CLUSTER:
	case DECIDER:
	case POLICY:
	case SANDBOX:
	case SESSION:
		if (lx->lx_depth > 0 || lx->lx_token == DEFAULT)
			break;
		lx->lx_opener = true;
		lx->lx_keyword = token;
		break;
	}
}

/* What a word, fresh or out of a macro, is in the place where it stands. */
static int
lex_classify(struct parse *ps, struct lex_value *val)
{
	struct lexer	*lx = &ps->ps_lex;
	int		 token;

	if (lx->lx_mode == LEX_RAW_LIST)
		return STRING;
	if (lx->lx_mode == LEX_RAW_NEXT) {
		lx->lx_mode = LEX_NORMAL;
		return STRING;
	}
	if (val->quoted)
		return STRING;
	if (isdigit((unsigned char)val->text[0]))
		return lex_number(ps, val);
	token = lex_keyword(lx->lx_block ? lx->lx_keyword : 0, lx->lx_token,
	    val->text);
	lex_after_keyword(lx, token);
	return token;
}

static int
lex_word(struct parse *ps, struct lex_value *val)
{
	struct lexer		*lx = &ps->ps_lex;
	struct lex_source	*sr = lx->lx_source;
	size_t			 start = sr->sr_next;

	while (lex_is_word(lex_peek(lx)))
		sr->sr_next++;
	if (sr->sr_next - start > STRING_LEN_MAX)
		return lex_error(ps, val->pos,
		    "word is longer than 4095 bytes", NULL);
	val->text = conf_strndup(ps->ps_conf, sr->sr_buf + start,
	    sr->sr_next - start);
	if (lx->lx_mode == LEX_NORMAL && lx->lx_depth == 0) {
		lex_skip_space(lx);
		if (lex_peek(lx) == '=')
			return MACRO;
	}
	return lex_classify(ps, val);
}

static int
lex_replay(struct parse *ps, struct lex_value *val)
{
	struct lexer	*lx = &ps->ps_lex;

	val->pos = lx->lx_value.pos;
	if (lx->lx_replay == NULL) {
		lx->lx_replay_list = false;
		lx->lx_mode = LEX_NORMAL;
		val->text = "}";
		return '}';
	}
	val->text = lx->lx_replay->wd_text;
	val->quoted = lx->lx_replay->wd_quoted;
	lx->lx_replay = TAILQ_NEXT(lx->lx_replay, wd_entry);
	return lex_classify(ps, val);
}

static const struct lex_macro *
lex_macro_find(const struct lexer *lx, const char *name)
{
	const struct lex_macro	*mc;

	TAILQ_FOREACH(mc, &lx->lx_macros, mc_entry)
		if (strcmp(mc->mc_name, name) == 0)
			return mc;
	return NULL;
}

/* Braces of a macro's list balance, so they do not count as open ones. */
static int
lex_expand(struct parse *ps, struct lex_value *val)
{
	struct lexer		*lx = &ps->ps_lex;
	struct lex_source	*sr = lx->lx_source;
	const struct lex_macro	*mc;
	size_t			 start = sr->sr_next++;

	while (isalnum(lex_peek(lx)) || lex_peek(lx) == '_')
		sr->sr_next++;
	val->text = conf_strndup(ps->ps_conf, sr->sr_buf + start,
	    sr->sr_next - start);
	if ((mc = lex_macro_find(lx, val->text + 1)) == NULL)
		return lex_error(ps, val->pos, "macro is not defined",
		    val->text);
	lx->lx_replay = TAILQ_FIRST(&mc->mc_words);
	lx->lx_replay_list = mc->mc_list;
	lx->lx_value.pos = val->pos;
	if (!mc->mc_list)
		return lex_replay(ps, val);
	if (lx->lx_mode == LEX_RAW_NEXT)
		lx->lx_mode = LEX_RAW_LIST;
	val->text = "{";
	return '{';
}

/* Takes the list that was just read.  A later definition wins. */
void
lex_macro_set(struct parse *ps, struct conf_pos pos, const char *name,
    bool list)
{
	struct lex_macro	*mc;
	const char		*p;

	for (p = name; isalnum((unsigned char)*p) || *p == '_'; p++)
		continue;
	if (*p != '\0')
		conf_error(ps, pos, "macro \"%s\": names are of letters, "
		    "digits and _", name);
	mc = conf_alloc(ps->ps_conf, sizeof(*mc));
	mc->mc_name = name;
	mc->mc_list = list;
	TAILQ_INIT(&mc->mc_words);
	TAILQ_CONCAT(&mc->mc_words, &ps->ps_words, wd_entry);
	TAILQ_INSERT_HEAD(&ps->ps_lex.lx_macros, mc, mc_entry);
}

static int
lex_punctuation(struct parse *ps, struct lex_value *val, int c)
{
	struct lexer	*lx = &ps->ps_lex;
	char		 text[2] = { (char)c, '\0' };

	if (strchr("{},=-", c) == NULL || c == '\0') {
		lx->lx_source->sr_next++;
		return lex_error(ps, val->pos, "unexpected character",
		    isprint(c) ? text : NULL);
	}
	val->text = conf_strndup(ps->ps_conf, text, 1);
	lx->lx_source->sr_next++;
	if (c == '{')
		return lex_brace_open(lx, val->pos);
	if (c == '}')
		return lex_brace_close(lx);
	if (c == '=')
		lx->lx_mode = LEX_RAW_NEXT;
	return c;
}

/* -1 if there was only a newline inside a list. */
static int
lex_newline(struct lexer *lx, struct lex_value *val)
{
	lx->lx_source->sr_next++;
	lx->lx_source->sr_line++;
	if (lx->lx_depth > (lx->lx_block ? 1U : 0U))
		return -1;
	lx->lx_mode = LEX_NORMAL;
	lx->lx_opener = false;
	val->text = "newline";
	return '\n';
}

static int
lex_scan(struct parse *ps, struct lex_value *val)
{
	struct lexer	*lx = &ps->ps_lex;
	int		 c;

	lex_skip_space(lx);
	val->pos = lex_pos(lx);
	switch (c = lex_peek(lx)) {
	case EOF:
		val->text = "end of file";
		return lex_end(ps);
	case '\n':
		return lex_newline(lx, val);
	case '"':
		if ((c = lex_quoted(ps, val)) == STRING)
			c = lex_classify(ps, val);
		return c;
	case '$':
		return lex_expand(ps, val);
	case '-':
		return lex_punctuation(ps, val, c);
	default:
		if (lex_is_word(c))
			return lex_word(ps, val);
		return lex_punctuation(ps, val, c);
	}
}

int
yylex(struct lex_value *val, struct parse *ps)
{
	struct lexer	*lx = &ps->ps_lex;
	int		 token;

	do {
		memset(val, 0, sizeof(*val));
		val->text = "";
		if (lx->lx_replay != NULL || lx->lx_replay_list)
			token = lex_replay(ps, val);
		else
			token = lex_scan(ps, val);
	} while (token == -1);
	lx->lx_before = lx->lx_value.text;
	lx->lx_value = *val;
	lx->lx_token = token;
	return token;
}
