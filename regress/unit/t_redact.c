/* SPDX-License-Identifier: ISC */

/* What records and questions hide, apart from any process. */

#include <stdlib.h>

#include "../../common/redact.h"
#include "test.h"

static struct redact	*rd;

static void
setup(void)
{
	redact_free(rd);
	rd = redact_new();
}

/* A copy with an end, to be compared; "-" if nothing may be shown. */
static const char *
text_of(struct redacted re)
{
	static char	*text;

	free(text);
	text = re.re_text == NULL ? strdup("-") :
	    strndup(re.re_text, re.re_len);
	CHECK(text != NULL);
	return text;
}

static const char *
path(const char *in)
{
	return text_of(redact_path(rd, in, strlen(in)));
}

static const char *
value(const char *in)
{
	return text_of(redact_value(rd, in, strlen(in)));
}

static const char *
body(enum redact_media media, const char *in)
{
	return text_of(redact_body(rd, media, in, strlen(in)));
}

static bool
hides(enum redact_kind kind, const char *name)
{
	return redact_hides(rd, kind, name, strlen(name));
}

/* Credentials of many APIs, in the three places where they travel. */
TEST(known)
{
	static const char *const	 headers[] = {
		"Authorization", "proxy-authorization", "Cookie", "set-cookie",
		"cookie2", "x-api-key", "api-key", "apikey", "x-apikey",
		"X-Goog-Api-Key", "x-vault-token", "dd-api-key",
		"dd-application-key", "x-amz-security-token", "x-auth-token",
		"x-access-token", "private-token", "job-token", "deploy-token",
		"x-gitlab-token", "x-github-token", "x-shopify-access-token",
		"x-figma-token", "ocp-apim-subscription-key",
		"x-rapidapi-key", "x-functions-key", "x-csrf-token",
		"x-consul-token", "x-nomad-token", "circle-token",
		"x-auth-key", "cf-access-client-secret",
		"cf-access-jwt-assertion", "x-goog-iap-jwt-assertion",
		"x-serverless-authorization", "x-forwarded-authorization",
		"x-ms-authorization-auxiliary", "x-amzn-oidc-accesstoken",
		"x-aws-ec2-metadata-token", "x-honeycomb-team",
		"x-parse-master-key", "x-mbx-apikey", "ok-access-sign",
		"ok-access-passphrase", "x-hub-signature-256",
		"stripe-signature", "x-session-id", "x-password",
		"x-amz-server-side-encryption-customer-key",
		"authentication-info"
	};
	static const char *const	 queries[] = {
		"access_token", "api_key", "apikey", "apiKey", "key", "token",
		"sig", "signature", "X-Amz-Signature", "X-Amz-Security-Token",
		"X-Amz-Credential", "X-Goog-Signature", "X-Goog-Credential",
		"password", "passwd", "pwd", "secret", "client_secret", "code",
		"auth", "jwt", "id_token", "refresh_token", "private_token",
		"client_assertion", "SAMLResponse", "code_verifier", "hmac",
		"sid", "JSESSIONID", "PHPSESSID", "ticket", "subscription-key"
	};
	static const char *const	 fields[] = {
		"access_token", "accessToken", "refresh_token", "id_token",
		"client_secret", "clientSecret", "password", "new-password",
		"password2", "api_key", "apiKey", "secret", "token",
		"private_key", "privateKey", "secretAccessKey",
		"aws_secret_access_key", "passphrase", "credentials",
		"connectionString", "authorization", "cookie", "auth",
		"client-key-data", "PersonalAccessToken"
	};
	size_t				 i;

	setup();
	for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		CHECK_FOR(headers[i], hides(REDACT_HEADER, headers[i]));
	for (i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		CHECK_FOR(queries[i], hides(REDACT_QUERY, queries[i]));
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		CHECK_FOR(fields[i], hides(REDACT_FIELD, fields[i]));
}

/* What looks like it and is of use. */
TEST(innocent)
{
	static const char *const	 headers[] = {
		"host", "accept", "user-agent", "content-type", "date",
		"www-authenticate", "idempotency-key", "sec-websocket-key",
		"surrogate-key", "x-cache-key", "connection", "etag", "e", ""
	};
	static const char *const	 queries[] = {
		"q", "page", "keys", "tokens", "keyword", "decode", "author",
		"design", "postcode", "monkey", ""
	};
	static const char *const	 fields[] = {
		"key", "code", "id", "content", "max_tokens", "total_tokens",
		"tokens", "public_key", "cacheKey", "signature", "model", ""
	};
	size_t				 i;

	setup();
	for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		CHECK_FOR(headers[i], !hides(REDACT_HEADER, headers[i]));
	for (i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		CHECK_FOR(queries[i], !hides(REDACT_QUERY, queries[i]));
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		CHECK_FOR(fields[i], !hides(REDACT_FIELD, fields[i]));
}

/* A policy's own names, and what it wants shown. */
TEST(named)
{
	setup();
	redact_add(rd, REDACT_HEADER, "x-tenant", false);
	redact_add(rd, REDACT_QUERY, "Page", false);
	redact_add(rd, REDACT_FIELD, "iban", false);
	redact_add(rd, REDACT_FIELD, "token", true);
	redact_add(rd, REDACT_QUERY, "code", true);
	redact_add(rd, REDACT_QUERY, "both", true);
	redact_add(rd, REDACT_QUERY, "both", false);
	CHECK(hides(REDACT_HEADER, "X-Tenant"));
	CHECK(!hides(REDACT_QUERY, "x-tenant"));
	CHECK(hides(REDACT_QUERY, "page") && !hides(REDACT_QUERY, "pages"));
	CHECK(hides(REDACT_FIELD, "IBAN"));
	CHECK(!hides(REDACT_FIELD, "Token"));
	CHECK(hides(REDACT_FIELD, "access_token"));
	CHECK(!hides(REDACT_QUERY, "code") && hides(REDACT_QUERY, "token"));
	CHECK(hides(REDACT_QUERY, "both"));
	CHECK(redact_always("Cookie") && !redact_always("x-api-key"));
	CHECK_STR(body(MEDIA_JSON, "{\"IBAN\":\"DE0\",\"token\":1}"),
	    "{\"IBAN\":\"[redacted]\",\"token\":1}");
}

/* Wherever an origin may find a name, and up to where no value goes on. */
TEST(parameters)
{
	static const struct {
		const char	*in, *out;
	} cases[] = {
		{ "/x?token=1", "/x?token=[redacted]" },
		{ "/x?a=b&token=1&c=d", "/x?a=b&token=[redacted]&c=d" },
		{ "/x?a=1&token=2&token=3",
		    "/x?a=1&token=[redacted]&token=[redacted]" },
		{ "/x??token=1", "/x??token=[redacted]" },
		{ "/x???&;?token=1", "/x???&;?token=[redacted]" },
		{ "/x?a=b?token=1&c", "/x?a=b?token=[redacted]&c" },
		{ "/x?&&token=1&&", "/x?&&token=[redacted]&&" },
		{ "/x?a;token=1", "/x?a;token=[redacted]" },
		{ "/x?token=1;2", "/x?token=[redacted]" },
		{ "/x?token=1?2&a=b", "/x?token=[redacted]&a=b" },
		{ "/x?token==1=2", "/x?token=[redacted]" },
		{ "/x?token=", "/x?token=" },
		{ "/x?token=&a=b", "/x?token=&a=b" },
		{ "/x?token=;1", "/x?token=[redacted]" },
		{ "/x?TOken=1", "/x?TOken=[redacted]" },
		{ "/x?%74o%6BeN=1", "/x?%74o%6BeN=[redacted]" },
		{ "/x?+%20%09token=1", "/x?+%20%09token=[redacted]" },
		{ "/x?token[]=1", "/x?token[]=[redacted]" },
		{ "/x?token%5b0%5D=1", "/x?token%5b0%5D=[redacted]" },
		{ "/x?user[token]=1", "/x?user[token]=[redacted]" },
		{ "/x?a[b][key][]=1", "/x?a[b][key][]=[redacted]" },
		{ "/x?list[a]=1", "/x?list[a]=[redacted]" },
		{ "/x?list[b]=1", "/x?list[b]=1" },
		{ "/x?tokens=2&to%=3&token", "/x?tokens=2&to%=3&token" },
		{ "/token=1", "/token=1" },
		{ "/x?", "/x?" },
		{ "", "" },
	};
	static char	 name[4096];
	size_t		 i;

	setup();
	redact_add(rd, REDACT_QUERY, "list[a]", false);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(path(cases[i].in), cases[i].out);
	CHECK_INT(redact_path(rd, "/?a=b&token=1&key=", 18).re_hidden, 1);
	CHECK_INT(redact_path(rd, "/?key=12&token=34", 17).re_hidden, 4);
	/* The end of a name counts, however long it is. */
	memset(name, 'x', sizeof(name));
	memcpy(name, "/?", 2);
	memcpy(name + sizeof(name) - 9, "token=1", 8);
	CHECK_STR(path(name) + sizeof(name) - 9, "token=[redacted]");
}

TEST(urls_in_fields)
{
	static const struct {
		const char	*in, *out;
	} cases[] = {
		{ "https://a/b?code=1&state=2",
		    "https://a/b?code=[redacted]&state=2" },
		{ "/cb#access_token=1&expires_in=2",
		    "/cb#access_token=[redacted]&expires_in=2" },
		{ "https://user:pass@a/b", "https://[redacted]@a/b" },
		{ "https://tok@a/b?x=y@z", "https://[redacted]@a/b?x=y@z" },
		{ "https://u:p@ss@a/?key=1",
		    "https://[redacted]@a/?key=[redacted]" },
		{ "https://@a/", "https://@a/" },
		{ "https://a/b@c", "https://a/b@c" },
		{ "<https://a/?page=2>; rel=\"next\"",
		    "<https://a/?page=2>; rel=\"next\"" },
		{ "<https://a/?key=1&page=2>, <https://u:p@b/>",
		    "<https://a/?key=[redacted]&page=2>, "
		    "<https://[redacted]@b/>" },
		{ "me@example.com", "me@example.com" },
		{ "text/html;q=0.8", "text/html;q=0.8" },
		{ "", "" },
	};
	size_t	 i;

	setup();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(value(cases[i].in), cases[i].out);
}

TEST(members)
{
	static const struct {
		const char	*in, *out;
	} cases[] = {
		{ "{\"password\":\"x\",\"a\":1}",
		    "{\"password\":\"[redacted]\",\"a\":1}" },
		{ "{\"password\" :\n \"x\" }",
		    "{\"password\" :\n \"[redacted]\" }" },
		{ "{\"pin_token\":1234,\"a\":[true]}",
		    "{\"pin_token\":\"[redacted]\",\"a\":[true]}" },
		{ "[{\"token\":null},{\"token\":{\"a\":[\"}\",\"\\\"\"]}}]",
		    "[{\"token\":\"[redacted]\"},{\"token\":\"[redacted]\"}]" },
		{ "{\"secret\":\"a\\\"b\\\\\",\"c\":\"d\"}",
		    "{\"secret\":\"[redacted]\",\"c\":\"d\"}" },
		{ "{\"pass\\u0077ord\":\"x\"}",
		    "{\"pass\\u0077ord\":\"[redacted]\"}" },
		{ "{\"passw\\u006frd\":\"x\"}",
		    "{\"passw\\u006frd\":\"[redacted]\"}" },
		{ "{\"passwo\\u0072d\":\"x\"}",
		    "{\"passwo\\u0072d\":\"[redacted]\"}" },
		{ "{\"passwor\\u0064\":\"x\"}",
		    "{\"passwor\\u0064\":\"[redacted]\"}" },
		{ "{\"\\u0074\\u006f\\u006B\\u0065\\u006E\":\"x\"}",
		    "{\"\\u0074\\u006f\\u006B\\u0065\\u006E\":"
		    "\"[redacted]\"}" },
		/* Cut in the value, in the name, before either. */
		{ "{\"password\":\"half of", "{\"password\":\"[redacted]\"" },
		{ "{\"secret\":{\"a\":\"b\",", "{\"secret\":\"[redacted]\"" },
		{ "{\"passwor", "{\"passwor" },
		{ "{\"password\":", "{\"password\":" },
		/* Lines, events, what is no JSON at all. */
		{ "{\"token\":1}\n{\"token\":2}\n",
		    "{\"token\":\"[redacted]\"}\n"
		    "{\"token\":\"[redacted]\"}\n" },
		{ "data: {\"token\":\"x\"}\n\n",
		    "data: {\"token\":\"[redacted]\"}\n\n" },
		{ "var a = {\"apiKey\": 'x, y'};",
		    "var a = {\"apiKey\": \"[redacted]\"};" },
		{ "{\"token\":not json, b}", "{\"token\":\"[redacted]\", b}" },
		/* A document in a string, and one in that. */
		{ "{\"args\":\"{\\\"token\\\": \\\"x\\\",\\\"a\\\":1}\"}",
		    "{\"args\":\"{\\\"token\\\": \\\"[redacted]\\\","
		    "\\\"a\\\":1}\"}" },
		{ "\"{\\\"a\\\":\\\"{\\\\\\\"token\\\\\\\":"
		    "\\\\\\\"x\\\\\\\"}\\\"}\"",
		    "\"{\\\"a\\\":\\\"{\\\\\\\"token\\\\\\\":"
		    "\\\\\\\"[redacted]\\\\\\\"}\\\"}\"" },
		{ "{\"s\":\"\\\"token\\\": bare\",\"t\":1}",
		    "{\"s\":\"\\\"token\\\": \\\"[redacted]\\\"\",\"t\":1}" },
		{ "{\"url\":\"http://x\",\"at\":\"12:30\"}",
		    "{\"url\":\"http://x\",\"at\":\"12:30\"}" },
		{ ":\":\"\":", ":\":\"\":" },
		{ "", "" },
	};
	size_t	 i;

	setup();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_STR(body(MEDIA_JSON, cases[i].in), cases[i].out);
		CHECK_STR(body(MEDIA_OTHER, cases[i].in), cases[i].out);
	}
}

TEST(forms)
{
	static const char	 parts[] =
	    "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nme\r\n"
	    "--b\r\nContent-Disposition: form-data; name=\"key\"; "
	    "filename=\"f\"\r\nContent-Type: a/b\r\n\r\n--bogus\r\nx\r\n"
	    "--b\r\ncontent-disposition: form-data; filename=\"token\"; "
	    "name=a\r\n\r\nb\r\n--b--\r\n";
	static const char	 hidden[] =
	    "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nme\r\n"
	    "--b\r\nContent-Disposition: form-data; name=\"key\"; "
	    "filename=\"f\"\r\nContent-Type: a/b\r\n\r\n[redacted]\r\n"
	    "--b\r\ncontent-disposition: form-data; filename=\"token\"; "
	    "name=a\r\n\r\nb\r\n--b--\r\n";

	setup();
	redact_add(rd, REDACT_FIELD, "iban", false);
	CHECK_STR(body(MEDIA_FORM, "user=a&pass%77ord=b&iban=c&code=d&x=e"),
	    "user=a&pass%77ord=[redacted]&iban=[redacted]&code=[redacted]"
	    "&x=e");
	CHECK_STR(body(MEDIA_UNKNOWN, "password=b"), "password=[redacted]");
	CHECK_STR(body(MEDIA_FORM, "{\"password\":\"x\"}"),
	    "{\"password\":\"[redacted]\"}");
	CHECK_STR(body(MEDIA_OTHER, "password=b"), "password=b");
	CHECK_STR(body(MEDIA_MULTIPART, parts), hidden);
	/* Cut in what is hidden, and where no part can be seen. */
	CHECK_STR(body(MEDIA_MULTIPART,
	    "--b\nContent-Disposition: form-data; name=password\n\nse"),
	    "--b\nContent-Disposition: form-data; name=password\n\n"
	    "[redacted]\r\n");
	CHECK_STR(body(MEDIA_MULTIPART, "name=\"password\"\r\n\r\nx"), "-");
	CHECK_STR(body(MEDIA_MULTIPART, "--\r\n\r\nx"), "-");
}

static enum redact_media
media(const char *lines)
{
	enum redact_media	 m = MEDIA_UNKNOWN;
	struct redact_line	 rl;
	size_t			 left = strlen(lines);

	while (redact_next(&lines, &left, &rl))
		m = redact_media(m, &rl);
	return m;
}

TEST(types)
{
	setup();
	CHECK_INT(media("Host: a\r\n"), MEDIA_UNKNOWN);
	CHECK_INT(media("content-type: Application/JSON; charset=utf-8\r\n"),
	    MEDIA_JSON);
	CHECK_INT(media("content-type: application/problem+json ;a=b\r\n"),
	    MEDIA_JSON);
	CHECK_INT(media("content-type: text/event-stream\r\n"), MEDIA_JSON);
	CHECK_INT(media("content-type: image/png\r\n"), MEDIA_OTHER);
	CHECK_INT(media("content-type: multipart/form-data; boundary=b\r\n"),
	    MEDIA_MULTIPART);
	CHECK_INT(media("content-type: application/x-www-form-urlencoded"),
	    MEDIA_FORM);
	CHECK_INT(media("Content-Encoding: gzip\r\nContent-Type: a/b\r\n"),
	    MEDIA_ENCODED);
	CHECK_INT(media("Content-Encoding: identity\r\nX: y\r\n"),
	    MEDIA_UNKNOWN);
	/* What cannot be looked into is not shown. */
	CHECK_STR(body(MEDIA_ENCODED, "\037\213"), "-");
	CHECK_STR(text_of(redact_body(rd, MEDIA_JSON, "{\0\"", 3)), "-");
	CHECK_INT(redact_body(rd, MEDIA_UNKNOWN, "a\0b", 3).re_len, 3);
}

TEST_MAIN("redact")
