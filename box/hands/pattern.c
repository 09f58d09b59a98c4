/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: patterns of paths.  Braces are written out, and each
 * alternative is a row of segments, all in one array:
 *
 *	src/{*.c,a}	src  *.c  END  src  a  END
 *
 * How far a path has got is a set of places in that array, so that one walk
 * over a tree serves all alternatives and finds each path once.  The client is
 * not trusted: lengths have limits, and no match goes back more than one star.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "../box.h"
#include "op.h"
#include "utf8.h"

#define PATTERN_MAX		4096		/* bytes */
#define BRACES_MAX		64
#define ALTERNATIVES_MAX	256
#define SEGMENTS_MAX		4096
#define TEXT_MAX		(256 * 1024)	/* of all alternatives */

enum segment_kind { SEG_LITERAL, SEG_MAGIC, SEG_ANY_DEPTH, SEG_END,
    SEG_END_DIR };

struct segment {
	enum segment_kind	 sg_kind;
	char			*sg_text;	/* or NULL */
};

struct pattern {
	struct segment	 pt_segments[SEGMENTS_MAX];
	size_t		 pt_nsegments;
	uint16_t	 pt_starts[ALTERNATIVES_MAX];
	size_t		 pt_nstarts;
	size_t		 pt_text;	/* bytes, written out */
	int		 pt_slash;	/* more than a name */
	int		 pt_absolute;
	const char	*pt_why;
};

/* The character at p, or a byte that is none, and its length. */
static size_t
character(const char *p, uint32_t *c)
{
	size_t	 n = utf8_decode(p, UTF8_LEN_MAX, c);

	if (n > 0)
		return n;
	*c = 0x110000U + (uint8_t)*p;
	return 1;
}

/* `[' has an end: where the bracket is over, or NULL. */
static const char *
bracket_end(const char *p)
{
	p++;
	if (*p == '!' || *p == '^')
		p++;
	if (*p == ']')
		p++;
	for (; *p != '\0' && *p != ']'; p++)
		if (*p == '\\' && p[1] != '\0')
			p++;
	return *p == ']' ? p : NULL;
}

static size_t
bracket_character(const char *p, uint32_t *c)
{
	if (*p == '\\' && p[1] != '\0')
		return 1 + character(p + 1, c);
	return character(p, c);
}

/* Whether a character is one of `[...]', which ends at end. */
static int
bracket_match(const char *p, const char *end, uint32_t c)
{
	int		 found = 0, not = 0;
	uint32_t	 first, last;

	p++;
	if (*p == '!' || *p == '^') {
		not = 1;
		p++;
	}
	while (p < end) {
		p += bracket_character(p, &first);
		last = first;
		if (*p == '-' && p + 1 < end)
			p += 1 + bracket_character(p + 1, &last);
		if (c >= first && c <= last)
			found = 1;
	}
	return found != not;
}

/* One character of a name against what stands at *p, which moves behind. */
static int
segment_one(const char **p, uint32_t c)
{
	const char	*end;
	uint32_t	 want;

	if (**p == '?') {
		(*p)++;
		return 1;
	}
	if (**p == '[' && (end = bracket_end(*p)) != NULL) {
		if (!bracket_match(*p, end, c))
			return 0;
		*p = end + 1;
		return 1;
	}
	if (**p == '\0')
		return 0;
	*p += bracket_character(*p, &want);
	return c == want;
}

/* Without recursion: only the last star is ever tried again. */
static int
segment_match(const char *p, const char *name)
{
	const char	*star = NULL, *again = NULL;
	uint32_t	 c;
	size_t		 n;

	if (*name == '.' && *p != '.' && strncmp(p, "\\.", 2) != 0)
		return 0;
	while (*name != '\0') {
		if (*p == '*') {
			star = ++p;
			again = name;
			continue;
		}
		n = character(name, &c);
		if (segment_one(&p, c))
			name += n;
		else if (star != NULL) {
			p = star;
			again += character(again, &c);
			name = again;
		} else
			return 0;
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}

static int
is_magic(const char *p)
{
	for (; *p != '\0'; p++) {
		if (*p == '*' || *p == '?' || (*p == '[' &&
		    bracket_end(p) != NULL))
			return 1;
		if (*p == '\\' && p[1] != '\0')
			p++;
	}
	return 0;
}

static void
unescape(char *text)
{
	char	*to = text;

	for (; *text != '\0'; text++) {
		if (*text == '\\' && text[1] != '\0')
			text++;
		*to++ = *text;
	}
	*to = '\0';
}

static int
pattern_segment(struct pattern *pt, enum segment_kind kind, const char *text,
    size_t len)
{
	struct segment	*sg;

	if (pt->pt_nsegments == SEGMENTS_MAX) {
		pt->pt_why = "too many segments";
		return -1;
	}
	sg = &pt->pt_segments[pt->pt_nsegments++];
	sg->sg_kind = kind;
	if (text == NULL)
		return 0;
	if ((sg->sg_text = strndup(text, len)) == NULL)
		err(BOX_FAILED, NULL);
	if (strcmp(sg->sg_text, "**") == 0)
		sg->sg_kind = SEG_ANY_DEPTH;
	else if (is_magic(sg->sg_text))
		sg->sg_kind = SEG_MAGIC;
	else
		unescape(sg->sg_text);
	return 0;
}

/* `**' twice is once; so there is one way only to take it. */
static int
is_repeated(const struct pattern *pt, const char *p, size_t len)
{
	return len == 2 && memcmp(p, "**", 2) == 0 &&
	    pt->pt_nsegments > pt->pt_starts[pt->pt_nstarts - 1] &&
	    pt->pt_segments[pt->pt_nsegments - 1].sg_kind == SEG_ANY_DEPTH;
}

static int
pattern_alternative(struct pattern *pt, const char *p)
{
	size_t	 len;
	int	 absolute = *p == '/';

	if (pt->pt_nstarts == ALTERNATIVES_MAX) {
		pt->pt_why = "too many alternatives";
		return -1;
	}
	if (pt->pt_nstarts > 0 && absolute != pt->pt_absolute) {
		pt->pt_why = "alternatives that are absolute and others";
		return -1;
	}
	pt->pt_absolute = absolute;
	pt->pt_starts[pt->pt_nstarts++] = (uint16_t)pt->pt_nsegments;
	for (;; p += len) {
		if (*p == '/')
			pt->pt_slash = 1;
		p += strspn(p, "/");
		if ((len = strcspn(p, "/")) == 0)
			break;
		if (!is_repeated(pt, p, len) &&
		    pattern_segment(pt, SEG_LITERAL, p, len) == -1)
			return -1;
	}
	if (pt->pt_nsegments == pt->pt_starts[pt->pt_nstarts - 1]) {
		pt->pt_why = "no segment";
		return -1;
	}
	return pattern_segment(pt, p[-1] == '/' ? SEG_END_DIR : SEG_END,
	    NULL, 0);
}

/* The end of a brace at p, and whether it has a comma of its own. */
static const char *
brace_end(const char *p, int *comma)
{
	int	 depth = 0;

	*comma = 0;
	for (; *p != '\0'; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (*p == '{')
			depth++;
		else if (*p == ',' && depth == 1)
			*comma = 1;
		else if (*p == '}' && --depth == 0)
			return p;
	}
	return NULL;
}

/* The first brace that means something, and its end. */
static const char *
brace_find(const char *p, const char **end)
{
	int	 comma;

	for (; *p != '\0'; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (*p == '{' && (*end = brace_end(p, &comma)) != NULL &&
		    comma)
			return p;
	}
	return NULL;
}

/* Up to the comma or the end of a brace that is next. */
static const char *
brace_part(const char *p, const char *end)
{
	int	 depth = 0;

	for (; p < end; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (*p == '{')
			depth++;
		else if (*p == '}')
			depth--;
		else if (*p == ',' && depth == 0)
			break;
	}
	return p;
}

/* Recurse once for each brace; the text's length bounds that. */
static int
pattern_expand(struct pattern *pt, const char *text)
{
	const char	*open, *end, *part, *next;
	char		*whole;
	int		 error = 0;

	if ((pt->pt_text += strlen(text)) > TEXT_MAX) {
		pt->pt_why = "too many alternatives";
		return -1;
	}
	if ((open = brace_find(text, &end)) == NULL)
		return pattern_alternative(pt, text);
	for (part = open + 1; part <= end && error == 0; part = next + 1) {
		next = brace_part(part, end);
		if (asprintf(&whole, "%.*s%.*s%s", (int)(open - text), text,
		    (int)(next - part), part, end + 1) == -1)
			err(BOX_FAILED, NULL);
		error = pattern_expand(pt, whole);
		free(whole);
	}
	return error;
}

/* To find a brace's end takes the square of what is here. */
static const char *
pattern_too_long(const char *text)
{
	size_t	 braces = 0;

	if (strlen(text) > PATTERN_MAX)
		return "longer than 4096 bytes";
	for (; *text != '\0'; text++)
		braces += *text == '{';
	return braces > BRACES_MAX ? "more than 64 braces" : NULL;
}

struct pattern *
pattern_new(const char *text, const char **why)
{
	struct pattern	*pt;

	if ((*why = pattern_too_long(text)) != NULL)
		return NULL;
	if ((pt = calloc(1, sizeof(*pt))) == NULL)
		err(BOX_FAILED, NULL);
	if (pattern_expand(pt, text) == 0)
		return pt;
	*why = pt->pt_why;
	pattern_free(pt);
	return NULL;
}

void
pattern_free(struct pattern *pt)
{
	size_t	 i;

	if (pt == NULL)
		return;
	for (i = 0; i < pt->pt_nsegments; i++)
		free(pt->pt_segments[i].sg_text);
	free(pt);
}

int
pattern_absolute(const struct pattern *pt)
{
	return pt->pt_absolute;
}

/* A set that is being made. */
struct states {
	const struct pattern	*ss_pattern;
	uint8_t			 ss_seen[SEGMENTS_MAX / 8];
	uint16_t		 ss_list[SEGMENTS_MAX];
	size_t			 ss_n;
};

/* The segment at i may be next; `**' may also stand for nothing. */
static void
states_add(struct states *ss, size_t i)
{
	const struct segment	*sg = &ss->ss_pattern->pt_segments[i];

	if (sg->sg_kind >= SEG_END || ss->ss_seen[i / 8] & 1 << i % 8)
		return;
	ss->ss_seen[i / 8] |= (uint8_t)(1 << i % 8);
	ss->ss_list[ss->ss_n++] = (uint16_t)i;
	if (sg->sg_kind == SEG_ANY_DEPTH)
		states_add(ss, i + 1);
}

static struct pattern_state *
states_end(const struct states *ss)
{
	struct pattern_state	*state;

	if ((state = malloc(sizeof(*state) + ss->ss_n *
	    sizeof(state->pa_at[0]))) == NULL)
		err(BOX_FAILED, NULL);
	state->pa_n = ss->ss_n;
	memcpy(state->pa_at, ss->ss_list, ss->ss_n * sizeof(ss->ss_list[0]));
	return state;
}

/* Before the first name of a path; to be freed. */
struct pattern_state *
pattern_start(const struct pattern *pt)
{
	static struct states	 ss;
	size_t			 i;

	ss = (struct states){ .ss_pattern = pt };
	for (i = 0; i < pt->pt_nstarts; i++)
		states_add(&ss, pt->pt_starts[i]);
	return states_end(&ss);
}

static int
segment_takes(const struct segment *sg, const char *name)
{
	switch (sg->sg_kind) {
	case SEG_LITERAL:
		return strcmp(sg->sg_text, name) == 0;
	case SEG_MAGIC:
		return segment_match(sg->sg_text, name);
	case SEG_ANY_DEPTH:
		return *name != '.';
	default:
		return 0;
	}
}

static int
segment_hits(const struct segment *sg)
{
	return sg->sg_kind == SEG_END ? PATTERN_HIT : sg->sg_kind ==
	    SEG_END_DIR ? PATTERN_HIT_DIR : 0;
}

/*
 * One name deeper: what that makes of the path, and where it may go on below
 * it, to be freed, or NULL.  `**' does not go on below a link.
 */
struct pattern_state *
pattern_step(const struct pattern *pt, const struct pattern_state *state,
    const char *name, int is_link, int *hit)
{
	static struct states	 ss;
	const struct segment	*sg;
	size_t			 i, at;

	memset(ss.ss_seen, 0, sizeof(ss.ss_seen));
	ss.ss_n = 0;
	ss.ss_pattern = pt;
	*hit = 0;
	for (i = 0; i < state->pa_n; i++) {
		at = state->pa_at[i];
		sg = &pt->pt_segments[at];
		if (!segment_takes(sg, name))
			continue;
		*hit |= segment_hits(sg + 1);
		if (sg->sg_kind != SEG_ANY_DEPTH)
			states_add(&ss, at + 1);
		else if (!is_link)
			states_add(&ss, at);
	}
	return ss.ss_n == 0 ? NULL : states_end(&ss);
}

/*
 * The literal names that may come next, one for each i until NULL; of those
 * that no directory lists, if it has to be read anyway.
 */
const char *
pattern_literal(const struct pattern *pt, const struct pattern_state *state,
    size_t i)
{
	const struct segment	*sg;

	if (i >= state->pa_n)
		return NULL;
	sg = &pt->pt_segments[state->pa_at[i]];
	return sg->sg_kind == SEG_LITERAL ? sg->sg_text : "";
}

/* Whether a path is what was asked for; a name, if the pattern is one. */
int
pattern_match(const struct pattern *pt, const char *path)
{
	struct pattern_state	*state, *next;
	const char		*slash;
	char			 name[256];
	size_t			 len;
	int			 hit = 0;

	if (!pt->pt_slash && (slash = strrchr(path, '/')) != NULL)
		path = slash + 1;
	state = pattern_start(pt);
	while (state != NULL && *path != '\0') {
		len = strcspn(path, "/");
		if (len >= sizeof(name))
			len = sizeof(name) - 1;
		memcpy(name, path, len);
		name[len] = '\0';
		next = pattern_step(pt, state, name, 0, &hit);
		free(state);
		state = next;
		path += len;
		path += strspn(path, "/");
	}
	free(state);
	return *path == '\0' && (hit & PATTERN_HIT);
}
