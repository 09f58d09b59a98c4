/* SPDX-License-Identifier: ISC */

/*
 * Judging single values of the configuration.  Every function that ends in
 * _error returns NULL or a constant text that completes "value: ".
 */

#include <sys/un.h>

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "confparse.h"
#include "hostname.h"
#include "urlpath.h"

#define LOWER	"abcdefghijklmnopqrstuvwxyz"
#define UPPER	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT	"0123456789"

static bool
value_only(const char *text, const char *set)
{
	return text[strspn(text, set)] == '\0';
}

const char *
value_path_error(const char *path)
{
	if (path[0] != '/')
		return "must be an absolute path";
	return NULL;
}

const char *
value_socket_error(const char *path)
{
	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return "too long for the name of a socket";
	return value_path_error(path);
}

/* A token of RFC 9110, 5.6.2. */
const char *
value_token_error(const char *text)
{
	if (text[0] == '\0' || strlen(text) > CONF_NAME_MAX)
		return "must have 1 to 64 bytes";
	if (!value_only(text, LOWER UPPER DIGIT "!#$%&'*+-.^_`|~"))
		return "not a token of RFC 9110";
	return NULL;
}

/*
 * Methods are compared byte by byte, so a rule for `get' would never match
 * what its author had in mind.
 */
const char *
value_method_error(const char *method)
{
	const char	*why;

	if ((why = value_token_error(method)) != NULL)
		return why;
	if (strpbrk(method, LOWER) != NULL)
		return "methods are case-sensitive and written in upper "
		    "case";
	return NULL;
}

/* The efforts that an API knows change; that each is a word does not. */
const char *
value_lower_error(const char *text)
{
	if (value_only(text, LOWER) && strlen(text) <= 16)
		return NULL;
	return "must be a word in lower case, such as low or high";
}

/* Kubernetes calls it an RFC 1123 label. */
const char *
value_label_error(const char *label)
{
	size_t	 len = strlen(label);

	if (len == 0 || len > 63)
		return "must have 1 to 63 bytes";
	if (!value_only(label, LOWER DIGIT "-") || label[0] == '-' ||
	    label[len - 1] == '-')
		return "must be of lower-case letters, digits and inner "
		    "hyphens";
	return NULL;
}

static bool
value_unreserved(int c)
{
	return c != '\0' && strchr(LOWER UPPER DIGIT "-._~", c) != NULL;
}

/*
 * A request's path is made canonical before rules see it: what needs no
 * escape has none, and escapes are in upper case (RFC 3986, 6.2.2).  Another
 * spelling in a rule could never match.
 */
static const char *
value_escape_error(const char *p)
{
	static const char	 hex[] = DIGIT "ABCDEF";
	const char		*hi, *lo;
	int			 c;

	if (p[1] == '\0' || (hi = strchr(hex, p[1])) == NULL ||
	    p[2] == '\0' || (lo = strchr(hex, p[2])) == NULL)
		return "% must be followed by two upper-case hex digits";
	c = (int)((hi - hex) * 16 + (lo - hex));
	if (value_unreserved(c))
		return "escapes a character that needs no escape";
	if (c < ' ' || c == 0x7f)
		return "escapes a control character";
	return NULL;
}

/* A path that no request has, in any reading, is no pattern for one. */
static const char *
value_pattern_error(const char *path)
{
	const char	*p, *why;
	char		 canon[URLPATH_MAX];

	for (p = path; (p = strstr(p, "**")) != NULL; p += 2)
		if (p[-1] != '/' || (p[2] != '/' && p[2] != '\0'))
			return "** must stand for whole segments";
	if (urlpath_canon(path, strlen(path), canon, sizeof(canon), &why) == -1)
		return why;
	return NULL;
}

const char *
value_urlpath_error(const char *path)
{
	const char	*p, *why;

	if (strlen(path) > PATH_LEN)
		return "must have at most 1024 bytes";
	if (path[0] != '/')
		return "must begin with /";
	if (strstr(path, "//") != NULL)
		return "must not contain //";
	if (strstr(path, "..") != NULL)
		return "must not contain ..";
	if (strstr(path, "/./") != NULL ||
	    (strlen(path) >= 2 && strcmp(path + strlen(path) - 2, "/.") == 0))
		return "must not contain a . segment";
	if (strchr(path, '?') != NULL)
		return "must not contain ?: rules do not see the query";
	for (p = path; *p != '\0'; p++) {
		if (*p == '%' && (why = value_escape_error(p)) != NULL)
			return why;
		if (!value_unreserved((unsigned char)*p) &&
		    strchr("/%*!$&'()+,;=:@", *p) == NULL)
			return "contains a character that must be escaped";
	}
	return value_pattern_error(path);
}

static bool
value_authority_port(const char *p, const char *end)
{
	unsigned int	 port = 0;

	if (*p++ != ':')
		return false;
	for (; p != end && isdigit((unsigned char)*p) && port <= UINT16_MAX;
	    p++)
		port = port * 10 + (unsigned int)(*p - '0');
	return p == end && port >= 1 && port <= UINT16_MAX;
}

/* Splits [host]:port or host:port; false if it is neither. */
static bool
value_authority(const char *text, size_t len, char *host, size_t size)
{
	const char	*end = text + len, *close, *port;

	if (text[0] == '[') {
		if ((close = memchr(text, ']', len)) == NULL)
			return false;
		text++;
		port = close + 1;
		len = (size_t)(close - text);
		if (memchr(text, ':', len) == NULL)
			return false;
	} else {
		if ((port = memchr(text, ':', len)) == NULL)
			port = end;
		len = (size_t)(port - text);
	}
	if (port != end && !value_authority_port(port, end))
		return false;
	return hostname_canon(text, len, host, size, NULL) == 0;
}

static bool
value_is_loopback(const char *host)
{
	struct addr	 ad;

	if (addr_parse(host, &ad) == 0)
		return addr_classify(&ad) == ADDR_LOOPBACK;
	return strcmp(host, "localhost") == 0;
}

/*
 * Keys and questions do not cross a network in the clear, unless it is one's
 * own and the operator says so; where a name leads is seen when it is asked.
 */
const char *
value_clear_error(const char *url, bool insecure)
{
	struct addr	 ad;
	const char	*rest;
	char		 host[HOSTNAME_MAX];

	if (strncmp(url, "http://", 7) != 0)
		return insecure ? "insecure is for http://" : NULL;
	rest = url + 7;
	if (!value_authority(rest, strcspn(rest, "/?"), host, sizeof(host)) ||
	    value_is_loopback(host))
		return NULL;
	if (!insecure)
		return "http:// is for loopback only: use https://, or "
		    "insecure if the address is private";
	if (addr_parse(host, &ad) == 0 && !addr_is_private(&ad))
		return "insecure is for private addresses";
	return NULL;
}

/* A URL must not carry a secret: the configuration holds none. */
const char *
value_url_error(const char *url, bool clear_too)
{
	const char	*p, *rest;
	char		 host[HOSTNAME_MAX];
	bool		 clear;

	for (p = url; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p) || strchr("\"<>\\^`{|}", *p))
			return "contains a character that must be escaped";
	clear = strncmp(url, "http://", 7) == 0;
	if (!clear && strncmp(url, "https://", 8) != 0)
		return "must begin with https://";
	rest = url + (clear ? 7 : 8);
	if (strchr(rest, '#') != NULL)
		return "must not have a fragment";
	p = rest + strcspn(rest, "/?");
	if (memchr(rest, '@', (size_t)(p - rest)) != NULL)
		return "must not contain a user or password";
	if (!value_authority(rest, (size_t)(p - rest), host, sizeof(host)))
		return "bad host or port";
	if (clear && !clear_too && !value_is_loopback(host))
		return "http:// is for loopback only, use https://";
	return NULL;
}

/* A bare number where a time belongs is a trap: seconds, or milliseconds? */
int64_t
value_unitless(struct parse *ps, struct conf_pos pos, int64_t n)
{
	conf_error(ps, pos, "time %" PRId64 " has no unit: ms, s, m, h or d",
	    n);
	return VALUE_BAD;
}

int64_t
value_port(struct parse *ps, struct conf_pos pos, int64_t n)
{
	if (n >= 1 && n <= UINT16_MAX)
		return n;
	conf_error(ps, pos, "port %" PRId64 ": must be between 1 and 65535",
	    n);
	return VALUE_BAD;
}

bool
value_addr(struct parse *ps, struct conf_pos pos, const char *text,
    struct addr *ad)
{
	if (addr_parse(text, ad) == 0)
		return true;
	conf_error(ps, pos, "\"%s\" is not an IPv4 or IPv6 address", text);
	return false;
}

struct conf_net *
value_net(struct parse *ps, struct conf_pos pos, const char *text)
{
	struct conf_net	*nt;
	const char	*why;

	nt = conf_alloc(ps->ps_conf, sizeof(*nt));
	nt->nt_pos = pos;
	if (prefix_parse(text, &nt->nt_prefix, &why) == 0)
		return nt;
	conf_error(ps, pos, "prefix \"%s\": %s", text, why);
	return NULL;
}

const char *
value_format(enum option_type type, uint64_t n, char *buf)
{
	static const struct {
		enum option_type	 type;
		uint64_t		 factor;
		const char		*unit;
	} units[] = {
		{ OPTION_MS,	24 * 60 * 60 * 1000,	"d" },
		{ OPTION_MS,	60 * 60 * 1000,		"h" },
		{ OPTION_MS,	60 * 1000,		"m" },
		{ OPTION_MS,	1000,			"s" },
		{ OPTION_MS,	1,			"ms" },
		{ OPTION_BYTES,	1024 * 1024 * 1024,	"G" },
		{ OPTION_BYTES,	1024 * 1024,		"M" },
		{ OPTION_BYTES,	1024,			"K" },
	};
	const char	*unit = "";
	size_t		 i;

	for (i = 0; n != 0 && i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].type == type && n % units[i].factor == 0) {
			n /= units[i].factor;
			unit = units[i].unit;
			break;
		}
	snprintf(buf, VALUE_STRLEN, "%" PRIu64 "%s", n, unit);
	return buf;
}
