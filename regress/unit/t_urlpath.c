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

/* Tests of common/urlpath.c; the paths are the attack battery's. */

#include "test.h"

#include "../../common/urlpath.h"

static const char *
canon(const char *in)
{
	static char	 out[URLPATH_MAX], again[URLPATH_MAX];
	const char	*why = NULL;
	int		 n;

	n = urlpath_canon(in, strlen(in), out, sizeof(out), &why);
	if (n == -1) {
		CHECK_FOR(in, why != NULL && out[0] == '\0');
		return NULL;
	}
	CHECK_FOR(in, why == NULL);
	CHECK_FOR(in, (size_t)n == strcspn(out, "?"));
	CHECK_INT(urlpath_canon(out, strlen(out), again, sizeof(again), &why),
	    n);
	CHECK_STR(again, out);
	return out;
}

static void
check_refused(const char *in, const char *want)
{
	char		 out[URLPATH_MAX];
	const char	*why = NULL;

	CHECK_FOR(in, urlpath_canon(in, strlen(in), out, sizeof(out),
	    &why) == -1);
	CHECK_STR(why, want);
	CHECK_STR(out, "");
}

TEST(already_canonical)
{
	static const char *const	 same[] = {
		"/", "/a", "/a/", "/a/b.c", "/~user/x-y_z", "/a?b",
		"/!$&'()*+,;=:@", "/%20", "/%2F", "/@scope%2Fname", "/%25",
		"/a%3Fb", "/https://example.com//x", "//", "/a;x=1/b",
		"/...", "/.a", "/..a", "/a..", "/a.", "/.well-known/x",
		"/a%3B..", "/%C3%BC", "/%E2%82%AC", "/%F0%9F%98%80",
		"/a%252eb", "/100%25",
	};
	size_t				 i;

	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		CHECK_STR(canon(same[i]), same[i]);
}

TEST(made_canonical)
{
	CHECK_STR(canon(""), "/");
	CHECK_STR(canon("?q"), "/?q");
	CHECK_STR(canon("/%41%7e%2d%5F%30"), "/A~-_0");
	CHECK_STR(canon("/%2f%c3%bc%3a"), "/%2F%C3%BC%3A");
	CHECK_STR(canon("/\xc3\xbc"), "/%C3%BC");
	CHECK_STR(canon("/a[1]{2}|^`\"<>"),
	    "/a%5B1%5D%7B2%7D%7C%5E%60%22%3C%3E");
	CHECK_STR(canon("/a%2eb"), "/a.b");
	CHECK_STR(canon("/%25%32%46"), "/%252F");
}

TEST(query_is_kept)
{
	CHECK_STR(canon("/?a=b#c"), NULL);
	CHECK_STR(canon("/%7e?%7e=/../&b=//%2e"), "/~?%7e=/../&b=//%2e");
	CHECK_STR(canon("/?100%&[]{}|\\^`\"<>?\xc3\xbc%00"),
	    "/?100%&[]{}|\\^`\"<>?\xc3\xbc%00");
	CHECK_STR(canon("/?"), "/?");
	check_refused("/?a b", "illegal character in query");
	check_refused("/?a\r\nb", "illegal character in query");
	check_refused("/?a#b", "illegal character in query");
	check_refused("/?\x7f", "illegal character in query");
}

TEST(dot_segments)
{
	static const char *const	 dots[] = {
		"/a/../b", "/..", "/.", "/../", "/./", "/a/.", "/a/..",
		"/%2e%2e", "/%2e%2e/x", "/a/.%2E/b", "/%2E", "/a/%2e/",
		"/a;x=/../b", "/..;/b", "/..;x=1/b", "/.;/b", "/a/..;",
		"/a%2F../b", "/a/..%2Fb", "/a%2f..%2fb", "/a%2F%2E%2E",
		"/%252e%252e/", "/%252e%252e%252f", "/%25252e/", "/.%252E",
		"/a%252F..", "/%25%32%65/x", "/a//..", "//../x", "/..%3Bx/y",
		"/a/..%252fb",
	};
	size_t				 i;

	for (i = 0; i < sizeof(dots) / sizeof(dots[0]); i++)
		check_refused(dots[i], "dot segment in path");
}

TEST(backslashes)
{
	check_refused("/a\\b", "backslash in path");
	check_refused("/a%5Cb", "backslash in path");
	check_refused("/a%5cb", "backslash in path");
	check_refused("/a%255cb", "backslash in path");
	check_refused("/..\\x", "backslash in path");
}

TEST(controls)
{
	char	 out[URLPATH_MAX];

	check_refused("/%00", "escaped control character in path");
	check_refused("/%0d%0aHost:", "escaped control character in path");
	check_refused("/%7f", "escaped control character in path");
	check_refused("/%2500", "escaped control character in path");
	check_refused("/a b", "space or control character in path");
	check_refused("/a\tb", "space or control character in path");
	check_refused("/a\r\nb", "space or control character in path");
	check_refused("/\x7f", "space or control character in path");
	check_refused("/a#b", "fragment in path");
	CHECK_INT(urlpath_canon("/a\0b", 4, out, sizeof(out), NULL), -1);
	CHECK_INT(urlpath_canon("/?\0", 3, out, sizeof(out), NULL), -1);
}

TEST(bad_escapes)
{
	static const char *const	 bad[] = {
		"/%", "/%2", "/%zz", "/%2g", "/%g2", "/%%41", "/%u0041",
		"/a%?41", "/% 1", "/%-1",
	};
	size_t				 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(bad[i], "malformed escape in path");
}

TEST(overlong)
{
	check_refused("/%C0%AE%C0%AE/", "overlong UTF-8 in path");
	check_refused("/\xc0\xaf", "overlong UTF-8 in path");
	check_refused("/%c1%9c", "overlong UTF-8 in path");
	check_refused("/%e0%80%ae", "overlong UTF-8 in path");
	check_refused("/%f0%80%80%ae", "overlong UTF-8 in path");
	check_refused("/%25c0%25ae", "overlong UTF-8 in path");
}

TEST(not_a_path)
{
	check_refused("a", "path does not begin with a slash");
	check_refused("*", "path does not begin with a slash");
	check_refused("http://a.test/", "path does not begin with a slash");
	check_refused("%2Fa", "path does not begin with a slash");
}

/* Whatever the room, nothing is written behind it. */
TEST(room)
{
	static const char	 in[] = "/\xc3\xbc" "a%41?q";
	char			 out[16];
	size_t			 size;

	for (size = 0; size <= sizeof(out); size++) {
		memset(out, '#', sizeof(out));
		CHECK_INT(urlpath_canon(in, strlen(in), out, size, NULL),
		    size < 12 ? -1 : 9);
		if (size < sizeof(out))
			CHECK_INT(out[size], '#');
	}
	CHECK_STR(out, "/%C3%BCaA?q");
	CHECK_INT(urlpath_canon(NULL, 0, out, sizeof(out), NULL), 1);
	CHECK_STR(out, "/");
}

/* How a pattern fares: Y in every reading, y in some, n in none. */
static void
check_match(const char *pattern, const char *path, char want)
{
	char	 text[256];

	snprintf(text, sizeof(text), "%s %s", pattern, path);
	CHECK_FOR(text, urlpath_match(pattern, path) == (want == 'Y'));
	CHECK_FOR(text, urlpath_may_match(pattern, path) == (want != 'n'));
}

TEST(match_literal)
{
	check_match("/", "/", 'Y');
	check_match("/a", "/a", 'Y');
	check_match("/a", "/a?b", 'Y');
	check_match("/a", "/b", 'n');
	check_match("/a", "/A", 'n');
	check_match("/a", "/a/", 'n');
	check_match("/a/", "/a", 'n');
	check_match("/a", "/ab", 'n');
	check_match("/ab", "/a", 'n');
	check_match("/a/b", "/a", 'n');
	check_match("/a", "/a/b", 'n');
	check_match("/a", "/b?/a", 'n');
}

TEST(match_star)
{
	check_match("/*", "/a", 'Y');
	check_match("/*", "/", 'n');
	check_match("/*", "/a/b", 'n');
	check_match("/*", "/a/", 'n');
	check_match("/a*", "/a", 'Y');
	check_match("/a*", "/abc", 'Y');
	check_match("/a*", "/ab/c", 'n');
	check_match("/*c", "/abc", 'Y');
	check_match("/*c", "/abcd", 'n');
	check_match("/a*c*e", "/abcde", 'Y');
	check_match("/a*c*e", "/abde", 'n');
	check_match("/*aab", "/aaaaab", 'Y');
	check_match("/v*/x", "/v1/x", 'Y');
	check_match("/*/*", "/a/b", 'Y');
	check_match("/*/*", "/a/b/c", 'n');
	check_match("/*.json", "/a.json?x", 'Y');
	check_match("/a*b", "/a*b", 'Y');
}

TEST(match_deep)
{
	check_match("/**", "/", 'Y');
	check_match("/**", "/a/b/c", 'Y');
	check_match("/v1/**", "/v1", 'Y');
	check_match("/v1/**", "/v1/", 'Y');
	check_match("/v1/**", "/v1/a/b", 'Y');
	check_match("/v1/**", "/v1?x", 'Y');
	check_match("/v1/**", "/v11", 'n');
	check_match("/v1/**", "/v2/v1/a", 'n');
	check_match("/**/x", "/x", 'Y');
	check_match("/**/x", "/a/b/x", 'Y');
	check_match("/**/x", "/a/b/xy", 'n');
	check_match("/a/**/b", "/a/b", 'Y');
	check_match("/a/**/b", "/a/x/y/b", 'Y');
	check_match("/a/**/b", "/a/x/b/y", 'n');
	check_match("/**/a/b", "/a/a/b", 'Y');
	check_match("/**/a/b", "/a/a/a/b", 'Y');
	check_match("/**/a/**/b", "/x/a/y/b", 'Y');
	check_match("/**/*.json", "/a/b/c.json", 'Y');
	check_match("/**/**", "/", 'Y');
	check_match("/a/**/**", "/a", 'Y');
	check_match("/**", "*", 'Y');
}

/* What opens must match in each reading, what closes in one. */
TEST(match_readings)
{
	check_match("/@scope/**", "/%40scope/x", 'y');
	check_match("/@scope%2F*", "/@scope%2Fname", 'Y');
	check_match("/@scope%2F*", "/@scope/name", 'y');
	check_match("/v1/*", "/v1/a%2Fb", 'y');
	check_match("/v1/**", "/v1/a%2Fb", 'Y');
	check_match("/v1/**", "/v1%2Fb", 'y');
	check_match("/admin/**", "/admin%2Fx", 'y');
	check_match("/admin/**", "//admin/x", 'y');
	check_match("/admin/**", "/%2Fadmin/x", 'y');
	check_match("/admin/**", "/admin;x=1/y", 'y');
	check_match("/admin/**", "/;a/admin;b/y", 'y');
	check_match("/*.json", "/secret;.json", 'y');
	check_match("/a;v=1/*", "/a;v=1/x", 'Y');
	check_match("/a;v=1/*", "/a/x", 'n');
	check_match("/**", "/https://example.com//x;y%2F", 'Y');
	check_match("/https:/**", "/https://example.com/x", 'Y');
	check_match("/a/*/b", "/a//b", 'n');
	check_match("/a/b", "/a//b", 'y');
	check_match("/a%2Ab", "/a*b", 'y');
	check_match("/a%2Ab", "/axb", 'n');
	check_match("/a%3Fb", "/a%3Fb", 'Y');
	check_match("/a", "/a%3Fb", 'n');
	check_match("/100%25", "/100%25", 'Y');
	check_match("/v1/**", "/v1//", 'Y');
}

/* 2,000 segments against a pattern that retries at each of them. */
TEST(match_is_bounded)
{
	static char	 path[URLPATH_MAX], pattern[512];
	size_t		 i;

	for (i = 0; i < 4000; i += 2)
		memcpy(path + i, "/a", 2);
	for (i = 0; i + 5 < sizeof(pattern) - 8; i += 5)
		memcpy(pattern + i, "/**/a", 5);
	strlcpy(pattern + i, "/b", sizeof(pattern) - i);
	check_match(pattern, path, 'n');
	memset(path + 1, 'a', sizeof(path) - 2);
	path[sizeof(path) - 2] = ';';
	for (i = 1; i + 2 < sizeof(pattern) - 8; i += 2)
		memcpy(pattern + i, "*a", 2);
	strlcpy(pattern + i, "b", sizeof(pattern) - i);
	check_match(pattern, path, 'n');
}

TEST_MAIN("urlpath")
