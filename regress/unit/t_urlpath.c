/* SPDX-License-Identifier: ISC */

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
		"/a/..%252fb", "/a/..%3Fb", "/a/..%23", "/a/..%20/b",
		"/a/%20../b", "/a/.%20", "/a/.%20./b", "/a/..%2520/b",
		"/%25%2532e%25%2532e/b",
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

/* As many readings as there are levels. */
TEST(escaped_too_often)
{
	CHECK_STR(canon("/%252525"), "/%252525");
	CHECK_STR(canon("/%25252Fa"), "/%25252Fa");
	check_refused("/%25252525", "path escaped too often");
	check_refused("/%2525252Fa", "path escaped too often");
	check_refused("/%25252525252E", "path escaped too often");
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

static struct urlpath_readings	 ur;

/* How a pattern fares: Y in every reading, y in some, n in none. */
static void
check_match(const char *pattern, const char *path, char want)
{
	char	 text[256];

	snprintf(text, sizeof(text), "%s %s", pattern, path);
	CHECK_FOR(text, urlpath_read(&ur, path) == 0);
	CHECK_FOR(text, (urlpath_miss(pattern, 0, &ur) == NULL) ==
	    (want == 'Y'));
	CHECK_FOR(text, (urlpath_hit(pattern, 0, &ur) != NULL) ==
	    (want != 'n'));
}

TEST(match_literal)
{
	check_match("/", "/", 'Y');
	check_match("/a", "/a", 'Y');
	check_match("/a", "/a?b", 'Y');
	check_match("/a", "/b", 'n');
	check_match("/a", "/A", 'n');
	check_match("/a", "/a/", 'y');
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
	check_match("/*", "/a/", 'y');
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
	check_match("/a", "/a%3Fb", 'y');
	check_match("/100%25", "/100%25", 'Y');
	check_match("/v1/**", "/v1//", 'Y');
}

/* All of them are /secret to somebody, and none of them to everybody. */
TEST(match_another_spelling)
{
	static const char *const	 spellings[] = {
		"/secret/", "//secret", "/secret//", "/secret%2F", "/secret.",
		"/secret..", "/secret%20", "/%20secret", "/secret+",
		"/secret;", "/secret;x=y", "/secret%3B", "/secret%253Bx",
		"/secret%3Fx", "/secret%23", "/%2573ecret", "/%252573ecret",
		"/;a/secret", "/secret%20/", "/secret/%20", "/secret.;x",
		"/secret%20.%2F;x=y//", "/%2573ecret%252F%253B",
		"/%25%2537%33ecret",
	};
	size_t				 i;

	for (i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
		check_match("/secret", canon(spellings[i]), 'y');
	check_match("/secret", "/secretly", 'n');
	check_match("/secret", "/secret/x", 'n');
	check_match("/secret", "/secret%2Fx", 'n');
	check_match("/secret", "/secret.json", 'n');
	check_match("/secret", "/SECRET", 'n');
	check_match("/secret", "/x?/secret", 'n');
}

/* What opens is held to every reading, and not hindered by others. */
TEST(match_opens)
{
	check_match("/pub/**", "/pub/a%20b", 'Y');
	check_match("/pub/**", "/pub/c++", 'Y');
	check_match("/pub/**", "/pub/what%3F", 'Y');
	check_match("/pub/**", "/pub/a.", 'Y');
	check_match("/pub/**", "/pub/", 'Y');
	check_match("/pub/**", "/pub%252Fa", 'y');
	check_match("/pub/**", "/pub;/a", 'y');
	check_match("/pub/**", "/pub%20/a", 'y');
	check_match("/pub/*", "/pub/a%252Fb", 'y');
	check_match("/pub/*", "/pub/%20", 'y');
	check_match("/pub/*", "/pub/...", 'y');
	check_match("/pub/*", "/pub/%3Fx", 'y');
	check_match("/pub/*.js", "/pub/a%3F.js", 'y');
	check_match("/pub/*.js", "/pub/a%20b.js", 'Y');
	check_match("/pub/*", "/pub/@a%2Fb", 'y');
	check_match("/pub/c++", "/pub/c++", 'Y');
	check_match("/pub/a.", "/pub/a.", 'Y');
	check_match("/pub/what%3F", "/pub/what%3F", 'Y');
	check_match("/pub/100%25", "/pub/100%25", 'Y');
	check_match("/pub/", "/pub/", 'Y');
	check_match("/pub/", "/pub", 'n');
	check_match("/pub/", "/pub/%20", 'y');
}

/* Who splits and then decodes sees %2F within a segment. */
TEST(match_slash_within)
{
	check_match("/@evil*", "/%40evil%2Fname", 'y');
	check_match("/@evil*", "/%2540evil%252Fname", 'y');
	check_match("/a/*", "/a%2Fb%252Fc", 'y');
	check_match("/a/*", "/a%252Fb%25252Fc", 'y');
	check_match("/a/*", "/a/b/c", 'n');
}

TEST(match_nocase)
{
	CHECK_INT(urlpath_read(&ur, "/Secret/%C3%84"), 0);
	CHECK(urlpath_hit("/sECRET/**", 1, &ur) != NULL);
	CHECK(urlpath_miss("/sECRET/**", 1, &ur) == NULL);
	CHECK(urlpath_hit("/sECRET/**", 0, &ur) == NULL);
	CHECK_INT(urlpath_read(&ur, "/SECRE%2554%20"), 0);
	CHECK(urlpath_hit("/secret", 1, &ur) != NULL);
	CHECK_INT(urlpath_read(&ur, "/a%5Bb"), 0);
	CHECK(urlpath_hit("/a%7Bb", 1, &ur) == NULL);
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
