/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a method and a URL from the command line, brought into the form in
 * which the daemon would put them before its rules.
 */

#include <stdlib.h>
#include <string.h>

#include "role.h"
#include "show.h"
#include "url.h"

static const struct {
	const char	*prefix;
	enum url_scheme	 scheme;
	uint16_t	 port;
} schemes[] = {
	{ "https://",	URL_HTTPS,	443 },
	{ "http://",	URL_HTTP,	80 },
	{ "tcp://",	URL_TCP,	0 },
};

/* The part after the scheme, or NULL if the scheme is unknown. */
static const char *
parse_scheme(const char *url, struct url *ur)
{
	size_t	i, len;

	for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		len = strlen(schemes[i].prefix);
		if (strncasecmp(url, schemes[i].prefix, len) != 0)
			continue;
		ur->ur_scheme = schemes[i].scheme;
		ur->ur_port = schemes[i].port;
		return url + len;
	}
	return NULL;
}

static const char *
parse_port(const char *text, size_t len, struct url *ur)
{
	char		 digits[sizeof("65535")];
	const char	*why;

	if (len == 0)
		return NULL;
	if (len >= sizeof(digits) || strspn(text, "0123456789") < len)
		return "the port must be between 1 and 65535";
	memcpy(digits, text, len);
	digits[len] = '\0';
	ur->ur_port = (uint16_t)strtonum(digits, 1, 65535, &why);
	return why == NULL ? NULL : "the port must be between 1 and 65535";
}

/* host, host:port, [address] or [address]:port (RFC 3986, 3.2). */
static const char *
parse_authority(const char *text, size_t len, struct url *ur)
{
	const char	*end = text + len, *host = text, *after, *why;

	if (memchr(text, '@', len) != NULL)
		return "there must be no user or password in it";
	if (len > 0 && *text == '[') {
		host++;
		if ((after = memchr(host, ']', len - 1)) == NULL ||
		    memchr(host, ':', (size_t)(after - host)) == NULL)
			return "brackets must hold an IPv6 address";
	} else if ((after = memchr(text, ':', len)) == NULL)
		after = end;
	if (hostname_canon(host, (size_t)(after - host), ur->ur_host,
	    sizeof(ur->ur_host), &why) == -1)
		return why;
	if (*after == ']')
		after++;
	if (after == end)
		return NULL;
	if (*after != ':')
		return "only a port may follow the address";
	return parse_port(after + 1, (size_t)(end - after - 1), ur);
}

/* NULL, or what is wrong with the URL. */
static const char *
url_parse(const char *url, struct url *ur)
{
	const char	*rest, *why;
	size_t		 len;

	memset(ur, 0, sizeof(*ur));
	if ((rest = parse_scheme(url, ur)) == NULL)
		return "it must begin with https://, http:// or tcp://";
	len = strcspn(rest, "/?#");
	if ((why = parse_authority(rest, len, ur)) != NULL)
		return why;
	rest += len;
	if (ur->ur_port == 0)
		return "tcp:// needs a port";
	if (ur->ur_scheme == URL_TCP)
		return *rest == '\0' ? NULL : "tcp:// has no path";
	if (urlpath_canon(rest, strlen(rest), ur->ur_path,
	    sizeof(ur->ur_path), &why) == -1)
		return why;
	return NULL;
}

static int
check_method(const char *method, enum url_scheme scheme)
{
	static const char	 set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "!#$%&'*+-.^_`|~";

	if (scheme == URL_TCP) {
		if (strcmp(method, "-") == 0)
			return 0;
		fputs("egressctl: tcp:// has no method, write \"-\"\n", stderr);
		return -1;
	}
	if (strlen(method) <= METHOD_LEN && *method != '\0' &&
	    method[strspn(method, set)] == '\0')
		return 0;
	fputs("egressctl: method \"", stderr);
	visible_put(stderr, method, VISIBLE_QUOTED);
	fprintf(stderr, "\": must be a word of at most %d bytes, in upper "
	    "case\n", METHOD_LEN);
	return -1;
}

/* -1 after saying what is wrong with method or URL. */
int
url_request(const char *method, const char *url, struct url *ur)
{
	const char	*why;

	if ((why = url_parse(url, ur)) != NULL) {
		fputs("egressctl: URL \"", stderr);
		visible_put(stderr, url, VISIBLE_QUOTED);
		fprintf(stderr, "\": %s\n", why);
		return -1;
	}
	return check_method(method, ur->ur_scheme);
}
