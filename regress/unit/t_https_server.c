/* SPDX-License-Identifier: ISC */

/*
 * Tests of common/https: what a server may be given.  URLs, names, proxies,
 * client certificates and bundles; nobody is asked.
 */

#include "common/https/private.h"
#include "test.h"

static const char certificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBezCCASGgAwIBAgIUBLiyzYSdVBQFwlBt1WvK0i0t6MAwCgYIKoZIzj0EAwIw\n"
    "EjEQMA4GA1UEAwwHcmVncmVzczAgFw0yNjExMTYwMzEzNDRaGA8yMTI2MTAyMzAz\n"
    "MTM0NFowEjEQMA4GA1UEAwwHcmVncmVzczBZMBMGByqGSM49AgEGCCqGSM49AwEH\n"
    "A0IABLLWgmeWFCFoB78AxJLwlkRnjCJOWqjUIEeiXi337CMFDtgOn+qkQGRK8rUn\n"
    "TQzh+/BOsed/UiZyOVaDP/uhxNSjUzBRMB0GA1UdDgQWBBTMI1ODLRU/7mIYFmuz\n"
    "L2dVqndbQTAfBgNVHSMEGDAWgBTMI1ODLRU/7mIYFmuzL2dVqndbQTAPBgNVHRMB\n"
    "Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIBkOLNmLyjMr56CUlzKkrUql2y+1\n"
    "WiUCNtKL/1HX0rNvAiEA8/1dfjjeZAJ5RnJsEWfis9yrLXuSXRKKflqDML3TDMc=\n"
    "-----END CERTIFICATE-----\n";

/* ---- URLs ---- */

static const struct {
	const char	*url;
	const char	*whole;		/* NULL: cannot be used */
	const char	*origin;
	int		 tls;
	int		 named;
} urls[] = {
	{ "https://API.Example.com", "https://api.example.com:443/",
	    "https://api.example.com:443", 1, 1 },
	{ "https://a.test:6443/x/y?z=1#w", "https://a.test:6443/x/y?z=1#w",
	    "https://a.test:6443", 1, 1 },
	{ "https://a.test./", "https://a.test:443/", "https://a.test:443",
	    1, 1 },
	{ "http://127.0.0.1:8080/", "http://127.0.0.1:8080/",
	    "http://127.0.0.1:8080", 0, 0 },
	{ "https://[::1]:1/p", "https://[::1]:1/p", "https://[::1]:1", 1, 0 },
	{ "http://LocalHost", "http://localhost:80/", "http://localhost:80",
	    0, 1 },
	{ "", NULL, NULL, 0, 0 },
	{ "a.test", NULL, NULL, 0, 0 },
	{ "https://", NULL, NULL, 0, 0 },
	{ "https://a.test:0/", NULL, NULL, 0, 0 },
	{ "https://a.test:65536/", NULL, NULL, 0, 0 },
	{ "https://a..test/", NULL, NULL, 0, 0 },
	{ "https://a_b!.test/", NULL, NULL, 0, 0 },
	{ "https://[::g]/", NULL, NULL, 0, 0 },
};

TEST(urls)
{
	struct https_server	*sv;
	size_t			 i;

	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		sv = https_server_new(urls[i].url);
		CHECK_FOR(urls[i].url, (sv != NULL) ==
		    (urls[i].whole != NULL));
		if (sv == NULL)
			continue;
		CHECK_STR(sv->sv_url, urls[i].whole);
		CHECK_STR(sv->sv_origin, urls[i].origin);
		CHECK_INT(https_server_tls(sv), urls[i].tls);
		CHECK_INT(sv->sv_named, urls[i].named);
		https_server_unref(sv);
	}
}

/* A host of as many bytes as there may be, and of one more. */
TEST(long_host)
{
	struct https_server	*sv;
	char			 url[300] = "https://", *p = url + 8;
	size_t			 i;

	for (i = 0; i < HOST_LEN; i++)
		p[i] = i % 50 == 49 ? '.' : 'a';
	CHECK((sv = https_server_new(url)) != NULL);
	CHECK_INT(strlen(sv->sv_host), HOST_LEN);
	https_server_unref(sv);
	strlcat(url, "a", sizeof(url));
	CHECK(https_server_new(url) == NULL);
}

TEST(localhost_is_known)
{
	struct https_server	*sv = https_server_new("http://localhost:81/");

	CHECK_STR(sv->sv_known, "localhost:81:127.0.0.1,[::1]");
	https_server_unref(sv);
}

/* ---- what a server may be given ---- */

static const char client[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBejCCAR+gAwIBAgIUJPDyQ/HuZC9dxeTVwQsBaEvGmTUwCgYIKoZIzj0EAwIw\n"
    "ETEPMA0GA1UEAwwGY2xpZW50MCAXDTI2MTExODExMDAzOFoYDzIxMjYxMDI1MTEw\n"
    "MDM4WjARMQ8wDQYDVQQDDAZjbGllbnQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
    "AAQ1LlLK+mjxbJVJm5/nXzFz/cneQgF4F2ZkKrZj4IOrfzjZMvmi3zwE7YfZQRPA\n"
    "swNrgNvrySsOzzwLhKyOUxr4o1MwUTAdBgNVHQ4EFgQUooQrZrgGEkDzBa2ohp5C\n"
    "qpqIpJ8wHwYDVR0jBBgwFoAUooQrZrgGEkDzBa2ohp5CqpqIpJ8wDwYDVR0TAQH/\n"
    "BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEA6xnEamugvYKkhnKunfNM1tC0l6sO\n"
    "Qxchk9uOHlXmjTYCIQDt0CPWT5Xnc8nj/SdnqnFNVfgMObSY6ezSxZy6WrVStQ==\n"
    "-----END CERTIFICATE-----\n";
static const char key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfYkTNy7wbFx722pA\n"
    "t8x3agyLDSsY9BuYt8t/X8Pfqn+hRANCAAQ1LlLK+mjxbJVJm5/nXzFz/cneQgF4\n"
    "F2ZkKrZj4IOrfzjZMvmi3zwE7YfZQRPAswNrgNvrySsOzzwLhKyOUxr4\n"
    "-----END PRIVATE KEY-----\n";
static const char encrypted[] =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg3o0XzMBighwICA+gw\n"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEENeFAxU+TCuUERwtZF3fUo8EgZBQ\n"
    "Wk6UGC+CQu1SUbqJPN9R4jT4R87Py3Q6sm6UVGA/Fivw9Kh9YEJXyREReVfs9g23\n"
    "NnmJI8jVMwxfsufzA1pqCaYdR/ESGZ/nMIjBN6moIrKK85VVXF2bH/dQxg7USsvm\n"
    "LLS1WbRO223HBsxkOK4747kvrGFj9GVMmqrevtlPHC7KSeRH53R3oFHbeqqldEk=\n"
    "-----END ENCRYPTED PRIVATE KEY-----\n";

static const struct {
	const char	*name;
	const char	*whole;		/* NULL: cannot be used */
} names[] = {
	{ "Kubernetes", "https://kubernetes:6443/a?b" },
	{ "10.96.0.1", "https://10.96.0.1:6443/a?b" },
	{ "", NULL },
	{ "a b", NULL },
	{ "a/b", NULL },
	{ "::1", NULL },
};

TEST(server_name)
{
	struct https_server	*sv;
	size_t			 i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		sv = https_server_new("https://[::1]:6443/a?b");
		CHECK_INT(https_server_name(sv, names[i].name),
		    names[i].whole != NULL ? 0 : -1);
		if (names[i].whole != NULL) {
			CHECK_STR(sv->sv_url, names[i].whole);
			CHECK_STR(sv->sv_host_line, "Host: [::1]:6443");
			CHECK_STR(sv->sv_connect_to->data, "::[::1]:6443");
		}
		CHECK_STR(sv->sv_dial, "::1");
		https_server_unref(sv);
	}
}

static const struct {
	const char	*url;
	const char	*whole;		/* NULL: cannot be used */
	const char	*host;
	unsigned int	 port;
} proxies[] = {
	{ "http://Proxy.test:3128", "http://proxy.test:3128/", "proxy.test",
	    3128 },
	{ "https://u:p@10.0.0.1", "https://u:p@10.0.0.1:443/", "10.0.0.1",
	    443 },
	{ "http://[::1]:80/", "http://[::1]:80/", "::1", 80 },
	{ "socks5://127.0.0.1:1080", NULL, NULL, 0 },
	{ "socks4a://127.0.0.1:1080", NULL, NULL, 0 },
	{ "proxy.test:3128", NULL, NULL, 0 },
	{ "ftp://127.0.0.1", NULL, NULL, 0 },
	{ "http://", NULL, NULL, 0 },
	{ "", NULL, NULL, 0 },
};

TEST(proxy)
{
	struct https_server	*sv;
	size_t			 i;

	for (i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
		sv = https_server_new("https://a.test:6443/");
		CHECK_INT(https_server_proxy(sv, proxies[i].url),
		    proxies[i].whole != NULL ? 0 : -1);
		CHECK_STR(sv->sv_proxy, proxies[i].whole);
		CHECK_STR(sv->sv_dial, proxies[i].host != NULL ?
		    proxies[i].host : "a.test");
		CHECK_INT(sv->sv_dial_port, proxies[i].host != NULL ?
		    proxies[i].port : 6443);
		CHECK_STR(sv->sv_host, "a.test");
		https_server_unref(sv);
	}
}

static int
give(const char *cert, const char *private)
{
	struct https_server	*sv = https_server_new("https://127.0.0.1/");
	int			 rv;

	rv = https_server_certificate(sv, cert, strlen(cert), private,
	    strlen(private));
	CHECK_INT(sv->sv_key != NULL, rv == 0);
	https_server_unref(sv);
	return rv;
}

/* An encrypted key would have a terminal asked for its passphrase. */
TEST(client_certificate)
{
	CHECK_INT(give(client, key), 0);
	CHECK_INT(give(certificate, key), -1);
	CHECK_INT(give("", key), -1);
	CHECK_INT(give(client, ""), -1);
	CHECK_INT(give(client, client), -1);
	CHECK_INT(give(client, encrypted), -1);
}

/* ---- bundles ---- */

static struct https_trust *
trust_of(const char *text)
{
	return https_trust_new(text, strlen(text));
}

TEST(bundles_are_shared)
{
	struct https_trust	*a, *b, *c;
	char			*more;

	CHECK(asprintf(&more, "%s# a comment\n%s", certificate,
	    certificate) != -1);
	CHECK((a = trust_of(certificate)) != NULL);
	CHECK((b = trust_of(certificate)) == a);
	CHECK((c = trust_of(more)) != NULL && c != a);
	https_trust_unref(a);
	CHECK(trust_of(certificate) == b);
	https_trust_unref(b);
	https_trust_unref(b);
	https_trust_unref(c);
	free(more);
}

TEST(bad_bundles)
{
	char	*text, *damaged = strdup(certificate);

	CHECK(trust_of("") == NULL);
	CHECK(trust_of("no certificate\n") == NULL);
	CHECK(https_trust_new(certificate, sizeof(certificate) - 40) == NULL);
	damaged[100] = '!';
	CHECK(trust_of(damaged) == NULL);
	/* One bad one spoils the good one before it. */
	CHECK(asprintf(&text, "%s%s", certificate, damaged) != -1);
	CHECK(trust_of(text) == NULL);
	free(text);
	free(damaged);
}

TEST_MAIN("https_server")
