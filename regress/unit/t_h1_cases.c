/* SPDX-License-Identifier: ISC */

/*
 * Runs the cases of regress/http, which are data:
 *
 *	case NAME		a request
 *	response METHOD[+] NAME	a response to METHOD (+: that asked to upgrade)
 *	> line			bytes that come in, CRLF is added
 *	>> bytes		the same without CRLF
 *	! status reason		they are refused so
 *	= facts			they are accepted, and this is understood
 *	< line			what goes out in their place, CRLF is added
 *
 * with \r \n \t \0 \\ and \xHH in lines.  Beyond that each head is fed byte by
 * byte, and what goes out must be understood the same and go out the same.
 */

#include <err.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h1_echo.h"

struct kase {
	char		 name[128];
	int		 is_response;
	enum h1_method	 method;
	int		 upgrade;
	char		 in[4096], out[4096];
	size_t		 inlen, outlen;
	char		 want[512];	/* "! ..." or "= ..." */
};

static int	 nfailed;

__attribute__((__format__(__printf__, 2, 3)))
static int
failed(const struct kase *ka, const char *fmt, ...)
{
	va_list	 ap;

	nfailed++;
	printf("not ok %s: ", ka->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	return -1;
}

static char
unescape(const char **p)
{
	static const char	 from[] = "rnt0\\", to[] = "\r\n\t\0\\";
	const char		*at;
	unsigned int		 c;

	if (**p != '\\')
		return *(*p)++;
	if ((*p)[1] == 'x') {
		if (sscanf(*p + 2, "%2x", &c) != 1)
			errx(1, "bad escape: %s", *p);
		*p += 4;
		return (char)c;
	}
	if ((*p)[1] == '\0' || (at = strchr(from, (*p)[1])) == NULL)
		errx(1, "bad escape: %s", *p);
	*p += 2;
	return to[at - from];
}

static void
append(char *buf, size_t *len, const char *text, int crlf)
{
	while (*text != '\0' && *len < 4000)
		buf[(*len)++] = unescape(&text);
	if (crlf) {
		buf[(*len)++] = '\r';
		buf[(*len)++] = '\n';
	}
}

static void
print(FILE *fp, const char *before, struct h1_str str)
{
	if (str.len > 0)
		fprintf(fp, "%s%.*s", before, (int)str.len, str.s);
}

static void
describe(const struct h1_head *hd, char *text, size_t size)
{
	static const char *const	 forms[] = { "origin", "absolute/",
	    "authority", "asterisk" };
	static const char *const	 framings[] = { "none", "length=",
	    "chunked", "until-close" };
	FILE				*fp = fmemopen(text, size, "w");

	fputs("= ", fp);
	if (hd->hd_is_request) {
		print(fp, "", hd->hd_method_text);
		fprintf(fp, "%s %s", hd->hd_method == H1_OTHER ? "?" : "",
		    forms[hd->hd_form]);
		print(fp, "", hd->hd_scheme);
		fprintf(fp, " 1.%d %s", hd->hd_minor,
		    hd->hd_host.s == NULL ? "-" : "");
		print(fp, "", hd->hd_host);
		if (hd->hd_port != 0)
			fprintf(fp, ":%u", hd->hd_port);
	} else
		fprintf(fp, "%d 1.%d", hd->hd_status, hd->hd_minor);
	fprintf(fp, " %s", framings[hd->hd_framing]);
	if (hd->hd_framing == H1_LENGTH)
		fprintf(fp, "%ju", (uintmax_t)hd->hd_length);
	else if (hd->hd_has_length)
		fprintf(fp, " declared=%ju", (uintmax_t)hd->hd_length);
	fputs(hd->hd_keep_alive ? " keep-alive" : " close", fp);
	if (hd->hd_expect_continue)
		fputs(" expect", fp);
	print(fp, " upgrade=", hd->hd_upgrade);
	print(fp, " override=", hd->hd_override);
	if (hd->hd_te_trailers)
		fputs(" te-trailers", fp);
	fclose(fp);
}

/* In pieces of n bytes. */
static int
scan(const struct kase *ka, size_t n, struct h1_error *he)
{
	struct h1_scan	 st = { 0 };
	size_t		 len = 0;
	int		 r = 0;

	while (r == 0 && len < ka->inlen) {
		len = len + n < ka->inlen ? len + n : ka->inlen;
		r = h1_scan(&st, ka->in, len, he);
	}
	return r;
}

static int
parse(const struct kase *ka, const char *buf, size_t len, struct h1_head *hd,
    struct h1_error *he)
{
	return ka->is_response ?
	    h1_parse_response(buf, len, ka->method, ka->upgrade, hd, he) :
	    h1_parse_request(buf, len, hd, he);
}

static ssize_t
echo(const struct kase *ka, const struct h1_head *hd, char *out, size_t size)
{
	return ka->is_response ? h1_echo_response(hd, out, size) :
	    h1_echo_request(hd, out, size);
}

static int
check_echo(const struct kase *ka, const struct h1_head *hd)
{
	static struct h1_head	 again;
	struct h1_error		 he;
	char			 one[8192], two[8192];
	ssize_t			 n, m;

	if ((n = echo(ka, hd, one, sizeof(one))) == -1)
		return failed(ka, "it can not be sent on");
	if (ka->outlen > 0 && ((size_t)n != ka->outlen ||
	    memcmp(one, ka->out, ka->outlen) != 0))
		return failed(ka, "sent on as %.*s", (int)n, one);
	if (parse(ka, one, (size_t)n, &again, &he) == -1)
		return failed(ka, "sent on and refused: %s", he.he_reason);
	if (!h1_echo_same(hd, &again))
		return failed(ka, "understood differently when sent on");
	m = echo(ka, &again, two, sizeof(two));
	if (n != m || memcmp(one, two, (size_t)n) != 0)
		return failed(ka, "sent on differently the second time");
	return 0;
}

static int
check(const struct kase *ka)
{
	static struct h1_head	 hd;
	struct h1_error		 he = { 0, NULL }, piecemeal = { 0, NULL };
	char			 got[512];
	size_t			 n;
	int			 r;

	r = scan(ka, ka->inlen, &he);
	for (n = 1; n < ka->inlen; n++)
		if (scan(ka, n, &piecemeal) != r ||
		    he.he_reason != piecemeal.he_reason)
			return failed(ka, "scanned differently by %zu", n);
	if (r == 0)
		return failed(ka, "the head has no end");
	if (r > 0 && (size_t)r != ka->inlen)
		return failed(ka, "the head ends at %d", r);
	if (r > 0)
		r = parse(ka, ka->in, ka->inlen, &hd, &he);
	if (r == -1)
		snprintf(got, sizeof(got), "! %d %s", he.he_status,
		    he.he_reason);
	else
		describe(&hd, got, sizeof(got));
	if (strcmp(got, ka->want) != 0)
		return failed(ka, "got \"%s\"", got);
	return r == -1 ? 0 : check_echo(ka, &hd);
}

static void
finish(struct kase *ka)
{
	if (ka->name[0] != '\0' && check(ka) == 0)
		printf("ok %s\n", ka->name);
	memset(ka, 0, sizeof(*ka));
}

static void
begin(struct kase *ka, const char *file, const char *line)
{
	const char	*base = strrchr(file, '/') + 1;
	size_t		 len;

	finish(ka);
	if (strncmp(line, "response ", 9) == 0) {
		line += 9;
		len = strcspn(line, "+ ");
		ka->is_response = 1;
		ka->method = h1_method(line, len);
		ka->upgrade = line[len] == '+';
	}
	snprintf(ka->name, sizeof(ka->name), "h1.%.*s.%s",
	    (int)strcspn(base, "."), base, strchr(line, ' ') + 1);
}

static const char *
text_of(const char *line)
{
	return line[1] == ' ' ? line + 2 : line + 1;
}

static void
run_file(const char *file)
{
	static struct kase	 ka;
	FILE			*fp = fopen(file, "r");
	char			 line[4096];

	if (fp == NULL)
		err(1, "%s", file);
	while (fgets(line, sizeof(line), fp) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			continue;
		if (strncmp(line, ">> ", 3) == 0)
			append(ka.in, &ka.inlen, line + 3, 0);
		else if (line[0] == '>')
			append(ka.in, &ka.inlen, text_of(line), 1);
		else if (line[0] == '<')
			append(ka.out, &ka.outlen, text_of(line), 1);
		else if (line[0] == '!' || line[0] == '=')
			strlcpy(ka.want, line, sizeof(ka.want));
		else
			begin(&ka, file, line);
	}
	finish(&ka);
	fclose(fp);
}

int
main(void)
{
	glob_t	 gl;
	size_t	 i;

	if (glob("regress/http/*.txt", 0, NULL, &gl) != 0)
		errx(1, "no regress/http here");
	for (i = 0; i < gl.gl_pathc; i++)
		run_file(gl.gl_pathv[i]);
	globfree(&gl);
	return nfailed > 0;
}
