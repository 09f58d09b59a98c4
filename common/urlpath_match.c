/* SPDX-License-Identifier: ISC */

/*
 * The readings of a path, and patterns against them; see urlpath.h.  Runs in
 * policyd, on canonical paths of hostile agents.
 *
 * A reading is a form of the text and a way to take it.  The forms are the
 * path as it is, decoded once to URLPATH_DEPTH times with %2F a slash, and
 * likewise with %2F kept, as for who splits first and decodes then.  The ways
 * are with and without parameters, trimmed or not.  Merged slashes and a slash
 * at the end need no readings of their own: no pattern has an empty segment
 * inside, so a path that is matched with one is matched without it.
 */

#include <string.h>

#include "urlpath.h"

#define WAY_CUT		0x01	/* no parameters; ? and # end the path */
#define WAY_TRIM	0x02	/* segments without spaces around, dots after */

#define HOW_NOCASE	0x01
#define HOW_MERGE	0x02	/* // is / */
#define HOW_STRIP	0x04	/* /a/ is /a */

#define STAR_LITERAL	'\001'	/* %2A in a pattern; no path has controls */

/* ---- readings ------------------------------------------------------------ */

/* `;' hides what is left of its segment, `?' and `#' of the path. */
static void
cut(char *text)
{
	const char	*p = text;

	while (*p != '\0' && *p != '?' && *p != '#') {
		if (*p == ';')
			p += strcspn(p, "/?#");
		else
			*text++ = *p++;
	}
	*text = '\0';
}

static int
is_blank(char c)
{
	return c == ' ' || c == '+';
}

/* `+' is a space to who decodes a path as if it were a form. */
static void
trim(char *text)
{
	const char	*p = text;
	char		*start = text;

	for (;; p++) {
		if (*p == '/' || *p == '\0') {
			while (text > start && (text[-1] == ' ' ||
			    text[-1] == '.'))
				text--;
			if (*p == '\0')
				break;
			*text++ = '/';
			start = text;
		} else if (!is_blank(*p))
			*text++ = *p;
		else if (text > start)
			*text++ = ' ';
	}
	*text = '\0';
}

static void
take(char *text, int ways)
{
	if (ways & WAY_CUT)
		cut(text);
	if (ways & WAY_TRIM)
		trim(text);
}

/* Whether there is but one reading: nothing to decode, cut or trim. */
static int
is_plain(const char *p, const char *end)
{
	char	 before = '\0';

	for (; p < end; before = *p++)
		if (*p == '%' || *p == ';' || *p == '+' ||
		    (*p == '/' && before == '.'))
			return 0;
	return before != '.';
}

/* The form of which this one is the next decoding. */
static int
form_before(int form)
{
	return form == URLPATH_DEPTH + 1 ? 0 : form - 1;
}

static int
form_keeps_slash(int form)
{
	return form > URLPATH_DEPTH;
}

/* Add the readings of a form, each different text once. */
static void
add_form(struct urlpath_readings *ur, int form)
{
	const char	*text = ur->ur_text[ur->ur_n];
	char		*out;
	int		 ways, i, first = ur->ur_n;

	for (ways = 0; ways < URLPATH_WAYS; ways++) {
		out = ur->ur_text[ur->ur_n];
		if (ways != 0) {
			strlcpy(out, text, URLPATH_MAX);
			take(out, ways);
		}
		for (i = first; strcmp(ur->ur_text[i], out) != 0; i++)
			;
		ur->ur_at[form][ways] = i;
		if (i == ur->ur_n)
			ur->ur_n++;
	}
}

/* If two forms have the same text, they share their readings. */
static int
same_form(struct urlpath_readings *ur, int form, int other)
{
	if (strcmp(ur->ur_text[ur->ur_n], ur->ur_text[ur->ur_at[other][0]]) !=
	    0)
		return 0;
	memcpy(ur->ur_at[form], ur->ur_at[other], sizeof(ur->ur_at[form]));
	return 1;
}

int
urlpath_read(struct urlpath_readings *ur, const char *path)
{
	const char	*before;
	char		*text = ur->ur_text[0];
	size_t		 len = strcspn(path, "?");
	int		 form;

	if (len >= URLPATH_MAX)
		return -1;
	memcpy(text, path, len);
	text[len] = '\0';
	if (is_plain(text, text + len)) {
		memset(ur->ur_at, 0, sizeof(ur->ur_at));
		ur->ur_n = 1;
		return 0;
	}
	ur->ur_n = 0;
	add_form(ur, 0);
	for (form = 1; form < URLPATH_FORMS; form++) {
		text = ur->ur_text[ur->ur_n];
		before = ur->ur_text[ur->ur_at[form_before(form)][0]];
		len = strlcpy(text, before, URLPATH_MAX);
		urlpath_decode(text, len, form_keeps_slash(form), '*');
		if (!same_form(ur, form, form_before(form)) &&
		    !(form_keeps_slash(form) &&
		    same_form(ur, form, form - URLPATH_DEPTH)))
			add_form(ur, form);
	}
	return 0;
}

/* ---- matching ------------------------------------------------------------ */

static int
ends_segment(char c)
{
	return c == '/' || c == '\0';
}

/* The start of the next segment, or NULL. */
static const char *
next_segment(const char *p, int how)
{
	if (p == NULL || (p = strchr(p, '/')) == NULL)
		return NULL;
	do
		p++;
	while ((how & HOW_MERGE) && *p == '/');
	return (how & HOW_STRIP) && *p == '\0' ? NULL : p;
}

/* <ctype.h> depends on the locale; a verdict must not. */
static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int
is_same(char pattern, char c, int how)
{
	if (pattern == STAR_LITERAL)
		pattern = '*';
	return pattern == c ||
	    ((how & HOW_NOCASE) && lower(pattern) == lower(c));
}

/*
 * One segment against one segment of the pattern.  After a mismatch only the
 * latest `*' is made longer: what an earlier one could gain, the later one has
 * tried.
 */
static int
segment_match(const char *p, const char *n, int how)
{
	const char	*star = NULL, *retry = NULL;

	if (p[0] == '*' && ends_segment(p[1]))
		return !ends_segment(*n);
	for (;;) {
		if (*p == '*') {
			star = ++p;
			retry = n;
		} else if (ends_segment(*n))
			return ends_segment(*p);
		else if (is_same(*p, *n, how)) {
			p++;
			n++;
		} else if (star != NULL) {
			p = star;
			n = ++retry;
		} else
			return 0;
	}
}

static int
is_deep(const char *p)
{
	return p != NULL && p[0] == '*' && p[1] == '*' && ends_segment(p[2]);
}

/*
 * The same walk over segments, with `**' in the place of `*'.  Each restart
 * begins one segment of the path later, so a segment of the pattern meets a
 * given segment of the path only once.
 */
static int
text_match(const char *p, const char *n, int how)
{
	const char	*deep = NULL, *retry = NULL;

	p = next_segment(p, how);
	n = next_segment(n, how);
	while (n != NULL) {
		if (is_deep(p)) {
			if ((deep = p = next_segment(p, how)) == NULL)
				return 1;
			retry = n;
		} else if (p != NULL && segment_match(p, n, how)) {
			p = next_segment(p, how);
			n = next_segment(n, how);
		} else if (deep != NULL) {
			p = deep;
			n = retry = next_segment(retry, how);
		} else
			return 0;
	}
	while (is_deep(p))
		p = next_segment(p, how);
	return p == NULL;
}

/* A rule about slashes at the end is for origins that see them. */
static int
pattern_match(const char *pattern, const char *text, int how)
{
	size_t	 len = strlen(pattern);

	if (len > 0 && pattern[len - 1] == '/')
		how &= ~HOW_STRIP;
	return text_match(pattern, text, how);
}

/* A plain pattern is the same in each reading. */
static const char *
find_plain(const char *pattern, int how, const struct urlpath_readings *ur,
    int want)
{
	int	 i;

	for (i = 0; i < ur->ur_n; i++)
		if (pattern_match(pattern, ur->ur_text[i], how) == want)
			return ur->ur_text[i];
	return NULL;
}

/* A pattern in one form, in all ways in which it is read as the path is. */
static const char *
find_form(const char *pattern, int how, const struct urlpath_readings *ur,
    int form, int want)
{
	static char	 taken[URLPATH_MAX];
	const char	*text;
	int		 ways;

	for (ways = 0; ways < URLPATH_WAYS; ways++) {
		/* A rule about parameters is for origins that see them. */
		if ((ways & WAY_CUT) && strpbrk(pattern, ";?#") != NULL)
			continue;
		strlcpy(taken, pattern, sizeof(taken));
		take(taken, ways);
		/* Nor for origins that see an empty segment in the pattern. */
		if (form + ways > 0 && strstr(taken, "//") != NULL)
			continue;
		text = ur->ur_text[ur->ur_at[form][ways]];
		if (pattern_match(taken, text, how) == want)
			return text;
	}
	return NULL;
}

/* The first reading in which the pattern matches, or does not; or NULL. */
static const char *
find(const char *pattern, int how, const struct urlpath_readings *ur, int want)
{
	static char	 forms[URLPATH_FORMS][URLPATH_MAX];
	const char	*found = NULL;
	int		 form;

	if (is_plain(pattern, pattern + strlen(pattern)))
		return find_plain(pattern, how, ur, want);
	for (form = 0; found == NULL && form < URLPATH_FORMS; form++) {
		strlcpy(forms[form], form == 0 ? pattern :
		    forms[form_before(form)], URLPATH_MAX);
		if (form > 0)
			urlpath_decode(forms[form], strlen(forms[form]),
			    form_keeps_slash(form), STAR_LITERAL);
		found = find_form(forms[form], how, ur, form, want);
	}
	return found;
}

const char *
urlpath_miss(const char *pattern, int nocase,
    const struct urlpath_readings *ur)
{
	return find(pattern, nocase ? HOW_NOCASE : 0, ur, 0);
}

const char *
urlpath_hit(const char *pattern, int nocase,
    const struct urlpath_readings *ur)
{
	return find(pattern, HOW_MERGE | HOW_STRIP |
	    (nocase ? HOW_NOCASE : 0), ur, 1);
}
