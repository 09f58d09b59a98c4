/* SPDX-License-Identifier: ISC */

/*
 * egressctl: makes strings from the daemon safe to look at.  The sandbox
 * chooses many of them, and a terminal obeys what it is sent: an escape
 * sequence can retitle the window, a bidi override can turn a host name
 * round, a zero-width character can hide part of it.  Only what occupies
 * a column passes.
 */

#include <langinfo.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "show.h"
#include "utf8.h"

#define VISIBLE_MAX	512	/* bytes of a string, unless whole */

/* Columns that a character takes on this terminal; 0 if it must not pass. */
static size_t
code_width(uint32_t code)
{
	int	width;

	if (code < 0x80)
		return code >= 0x20 && code < 0x7f;
	if (utf8_unseen(code) || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		return 0;
	if (!iswprint((wint_t)code) || (width = wcwidth((wchar_t)code)) < 1)
		return 0;
	return (size_t)width;
}

/* A word, which may be a name, is plain ASCII: letters have look-alikes. */
static int
is_allowed(char c, enum visible where)
{
	if (c == '\\')
		return 0;
	if (where == VISIBLE_QUOTED)
		return c != '"';
	return where == VISIBLE_TEXT || where == VISIBLE_LINE ||
	    (c > ' ' && c < 0x7f);
}

/* Escapes as vis(3) with VIS_CSTYLE and VIS_OCTAL, for unvis(1). */
static size_t
put_escaped(FILE *fp, const char *s, size_t len)
{
	static const char	 from[] = "\\\n\r\t", to[] = "\\nrt";
	const char		*p;
	size_t			 i;

	if (*s != '\0' && (p = strchr(from, *s)) != NULL) {
		if (fp != NULL)
			fprintf(fp, "\\%c", to[p - from]);
		return 2;
	}
	for (i = 0; fp != NULL && i < len; i++)
		fprintf(fp, "\\%03o", (unsigned char)s[i]);
	return 4 * len;
}

/*
 * Writes a string so that it cannot drive the terminal, and returns the
 * columns it takes; only counts them if fp is NULL.  What is cut off is
 * announced, never silent.
 */
size_t
visible_put(FILE *fp, const char *s, enum visible where)
{
	const char	*start = s;
	char		 cut[32];
	uint32_t	 code;
	size_t		 len, width, columns = 0;

	for (; *s != '\0' && (where == VISIBLE_WHOLE ||
	    where == VISIBLE_LINE || s - start < VISIBLE_MAX); s += len) {
		width = 0;
		if ((len = utf8_decode(s, UTF8_LEN_MAX, &code)) == 0)
			len = 1;
		else if (is_allowed(*s, where))
			width = code_width(code);
		if (width == 0)
			columns += put_escaped(fp, s, len);
		else if (fp != NULL)
			fwrite(s, 1, len, fp);
		columns += width;
	}
	if (*s == '\0')
		return columns;
	columns += (size_t)snprintf(cut, sizeof(cut), "[+%zu bytes]",
	    strlen(s));
	if (fp != NULL)
		fputs(cut, fp);
	return columns;
}

/* Bytes that are no character, but may be the beginning of one. */
static int
is_begun(const char *s, size_t len)
{
	unsigned char	lead = (unsigned char)*s;
	size_t		i, n = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	if (lead < 0xc2 || lead > 0xf4 || len >= n)
		return 0;
	for (i = 1; i < len; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 0;
	return 1;
}

/*
 * Writes what a file holds, or a part of it, for a terminal.  Lines, tabs and
 * backslashes stay, so this is for looking at and not for unvis(1).  Returns
 * the bytes taken: all but the beginning of a character that more may end.
 */
size_t
visible_put_content(FILE *fp, const char *s, size_t len)
{
	uint32_t	code;
	size_t		at, n;

	for (at = 0; at < len; at += n) {
		n = utf8_decode(s + at, len - at, &code);
		if (n == 0 && is_begun(s + at, len - at))
			break;
		if (n == 0)
			n = 1;
		else if (code == '\n' || code == '\t' || code_width(code) > 0) {
			fwrite(s + at, 1, n, fp);
			continue;
		}
		put_escaped(fp, s + at, n);
	}
	return at;
}

/*
 * Writes a line of JSON for a terminal: what must not pass becomes a \u
 * escape, so that the line remains JSON of the same meaning.
 */
void
visible_put_json(FILE *fp, const char *s)
{
	uint32_t	code;
	size_t		len;

	for (; *s != '\0'; s += len) {
		if ((len = utf8_decode(s, UTF8_LEN_MAX, &code)) == 0) {
			len = 1;
			code = 0xfffd;
		} else if (code_width(code) > 0) {
			fwrite(s, 1, len, fp);
			continue;
		}
		if (code > 0xffff)
			fprintf(fp, "\\u%04x\\u%04x",
			    (unsigned int)(0xd7c0 + (code >> 10)),
			    (unsigned int)(0xdc00 | (code & 0x3ff)));
		else
			fprintf(fp, "\\u%04x", (unsigned int)code);
	}
}
