/* SPDX-License-Identifier: ISC */

/*
 * Whom an HTTP/1 request is for: its target and its Host.  Runs in the
 * tlsengine, on the bytes of a hostile agent.  A request names one host, in
 * one spelling, wherever it names it (promise P3); what a name may look like
 * is hostname_canon()'s to say.
 */

#include <string.h>

#include "h1_field.h"

/* Digits without leading zeros, from 1 to 65535; else 0. */
static uint16_t
parse_port(const char *p, const char *end)
{
	unsigned int	 port = 0;

	if (p == end || end - p > 5 || *p == '0')
		return 0;
	for (; p < end; p++) {
		if (!h1_is(*p, H1_B_DIGIT))
			return 0;
		port = port * 10 + (unsigned int)(*p - '0');
	}
	return port <= 65535 ? (uint16_t)port : 0;
}

static const char *
host_fault(const char *p, const char *end)
{
	if (p == end)
		return "empty host";
	if (memchr(p, '@', (size_t)(end - p)) != NULL)
		return "user information in host";
	if (*p == '/' || *p == '?')
		return "path in host";
	return "illegal character in host";
}

/* The end of an address in brackets, or NULL; a name in brackets is none. */
static const char *
bracket_end(const char *p, const char *end)
{
	const char	*q = h1_span(p + 1, end, H1_B_V6);

	if (q == end || *q != ']' ||
	    memchr(p, ':', (size_t)(q - p)) == NULL)
		return NULL;
	return q;
}

int
h1_parse_authority(const char *p, size_t len, struct h1_str *host,
    uint16_t *port, const char **why)
{
	const char	*q, *end = p + len;

	*port = 0;
	if (len > 0 && *p == '[') {
		if ((q = bracket_end(p, end)) == NULL) {
			*why = "no IPv6 address in brackets";
			return -1;
		}
		*host = (struct h1_str){ p + 1, (size_t)(q - p) - 1 };
		q++;
	} else {
		q = h1_span(p, end, H1_B_HOST);
		*host = (struct h1_str){ p, (size_t)(q - p) };
	}
	if (host->len == 0 || (q < end && *q != ':')) {
		*why = host_fault(q, end);
		return -1;
	}
	if (q < end && (*port = parse_port(q + 1, end)) == 0) {
		*why = memchr(q, '@', (size_t)(end - q)) != NULL ?
		    "user information in host" : "malformed port";
		return -1;
	}
	return 0;
}

static int
parse_authority(struct h1_parser *pa, const char *p, size_t len)
{
	struct h1_head	*hd = pa->pa_head;
	const char	*why;

	if (h1_parse_authority(p, len, &hd->hd_host, &hd->hd_port, &why) == -1)
		return h1_refuse(pa, 400, why);
	return 0;
}

/* http and https: through any other scheme we would not know whom we dial. */
static int
parse_absolute(struct h1_parser *pa, const char *p, size_t len)
{
	struct h1_head	*hd = pa->pa_head;
	const char	*end = p + len, *slash;

	if (len > 7 && h1_equal(p, 7, "http://"))
		hd->hd_scheme = (struct h1_str){ p, 4 };
	else if (len > 8 && h1_equal(p, 8, "https://"))
		hd->hd_scheme = (struct h1_str){ p, 5 };
	else
		return h1_refuse(pa, 400, "target is neither path nor URL");
	hd->hd_form = H1_ABSOLUTE;
	p += hd->hd_scheme.len + strlen("://");
	for (slash = p; slash < end && *slash != '/' && *slash != '?'; slash++)
		;
	hd->hd_path = (struct h1_str){ slash, (size_t)(end - slash) };
	return parse_authority(pa, p, (size_t)(slash - p));
}

int
h1_parse_target(struct h1_parser *pa, const char *p, size_t len)
{
	struct h1_head	*hd = pa->pa_head;

	hd->hd_target = (struct h1_str){ p, len };
	if (hd->hd_method == H1_CONNECT) {
		hd->hd_form = H1_AUTHORITY;
		if (parse_authority(pa, p, len) == -1)
			return -1;
		return hd->hd_port != 0 ? 0 :
		    h1_refuse(pa, 400, "CONNECT without a port");
	}
	if (len == 1 && *p == '*') {
		hd->hd_form = H1_ASTERISK;
		return hd->hd_method == H1_OPTIONS ? 0 :
		    h1_refuse(pa, 400, "target `*' without OPTIONS");
	}
	if (*p != '/')
		return parse_absolute(pa, p, len);
	hd->hd_form = H1_ORIGIN;
	hd->hd_path = hd->hd_target;
	return 0;
}

static int
same_host(const struct h1_head *hd, const struct h1_str *host, uint16_t port)
{
	uint16_t	 usual = hd->hd_scheme.len == 4 ? 80 : 443;

	if (hd->hd_host.len != host->len ||
	    strncasecmp(hd->hd_host.s, host->s, host->len) != 0)
		return 0;
	if (hd->hd_form == H1_AUTHORITY)
		return port == 0 || port == hd->hd_port;
	return (hd->hd_port != 0 ? hd->hd_port : usual) ==
	    (port != 0 ? port : usual);
}

/*
 * RFC 9112, 3.2: exactly one Host.  A proxy would go by an absolute target and
 * overwrite Host; an origin that does otherwise would serve another host than
 * was decided about, so the two must agree.
 */
int
h1_check_host(struct h1_parser *pa)
{
	const struct h1_field	*hf = pa->pa_sole[H1_F_HOST];
	struct h1_head		*hd = pa->pa_head;
	struct h1_str		 host;
	const char		*why;
	uint16_t		 port;

	if (hf == NULL)
		return hd->hd_minor == 0 ? 0 :
		    h1_refuse(pa, 400, "no Host");
	if (h1_parse_authority(hf->hf_value, hf->hf_vlen, &host, &port,
	    &why) == -1)
		return h1_refuse(pa, 400, why);
	hd->hd_host_field = (struct h1_str){ hf->hf_value, hf->hf_vlen };
	if (hd->hd_host.s != NULL && !same_host(hd, &host, port))
		return h1_refuse(pa, 421, "target and Host differ");
	if (hd->hd_host.s == NULL) {
		hd->hd_host = host;
		hd->hd_port = port;
	}
	return 0;
}
