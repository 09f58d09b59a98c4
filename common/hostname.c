/* SPDX-License-Identifier: ISC */

/*
 * Host names and patterns; see hostname.h.  Runs in every process.  Names come
 * from SNI, Host, :authority and DNS questions, patterns from the operator:
 * the first are hostile, the second merely mistaken.
 */

#include <string.h>

#include "addr.h"
#include "hostname.h"

static int
refuse(const char **why, const char *text)
{
	if (why != NULL)
		*why = text;
	return -1;
}

static int
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* <ctype.h> depends on the locale; a name must not. */
static char
to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int
is_label_end(char c)
{
	return c == '.' || c == '\0';
}

static const char *
label_next(const char *label)
{
	label += strcspn(label, ".");
	return *label == '.' ? label + 1 : label;
}

/* What is wrong with one lower-case byte of a label, or NULL. */
static const char *
byte_fault(char c)
{
	if ((c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_')
		return NULL;
	if (c == '\0')
		return "NUL in name";
	if ((unsigned char)c >= 0x80)
		return "not ASCII, international names are written as xn--";
	if (c == '@')
		return "user information in name";
	if (c == '[' || c == ']')
		return "brackets in name";
	if (c == '*')
		return "wildcard in name";
	return "character other than letter, digit, hyphen or underscore";
}

static const char *
label_fault(const char *label, size_t len, int wild)
{
	const char	*fault;
	size_t		 i, nstars = 0;

	for (i = 0; i < len; i++) {
		if (wild && label[i] == '*')
			nstars++;
		else if ((fault = byte_fault(label[i])) != NULL)
			return fault;
	}
	if (len == 0)
		return "empty label";
	if (len > HOSTNAME_LABEL_MAX)
		return "label longer than 63 bytes";
	if (label[0] == '-' || label[len - 1] == '-')
		return "label begins or ends with a hyphen";
	if (nstars == 0 || (len == 2 && nstars == 2))
		return NULL;
	if (memmem(label, len, "**", 2) != NULL)
		return "`**' is not a whole label";
	/* Part of an encoding says nothing about the name (RFC 6125, 6.4.3). */
	if (len >= 4 && memcmp(label, "xn--", 4) == 0)
		return "wildcard inside an xn-- label";
	return NULL;
}

/* Walks the bytes by length, as a NUL may sit among them. */
static const char *
labels_fault(const char *name, size_t len, int wild)
{
	const char	*end = name + len, *dot, *fault;

	for (;; name = dot + 1) {
		if ((dot = memchr(name, '.', (size_t)(end - name))) == NULL)
			dot = end;
		fault = label_fault(name, (size_t)(dot - name), wild);
		if (fault != NULL || dot == end)
			return fault;
	}
}

/*
 * Whether the last label is a number, decimal or 0x.  No such top-level domain
 * exists, and inet_aton(3) and browsers take names of this kind for IPv4
 * addresses: `127.1', `0177.0.0.1', `0x7f.1', `2130706433'.
 */
static int
ends_in_number(const char *name)
{
	const char	*last = strrchr(name, '.');

	last = last == NULL ? name : last + 1;
	if (!is_digit(*last))
		return 0;
	if (last[0] == '0' && last[1] == 'x')
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return last[strspn(last, "0123456789")] == '\0';
}

/* Lower case and without the dot of the root; the bytes are not checked. */
static int
fold(const char *in, size_t len, char out[HOSTNAME_MAX], const char **why)
{
	size_t	 i;

	if (len > 0 && in[len - 1] == '.')
		len--;
	if (len == 0)
		return refuse(why, "empty name");
	if (len >= HOSTNAME_MAX)
		return refuse(why, "name longer than 253 bytes");
	for (i = 0; i < len; i++)
		out[i] = to_lower(in[i]);
	out[len] = '\0';
	return (int)len;
}

static int
copy_out(const char *name, char *out, size_t outsz, const char **why)
{
	if (strlcpy(out, name, outsz) < outsz)
		return 0;
	if (outsz > 0)
		out[0] = '\0';
	return refuse(why, "no room for the name");
}

/*
 * ::ffff:127.0.0.1 and ::127.0.0.1 are IPv4 addresses in disguise: a second
 * spelling of a host that rules know by its first.
 */
static int
is_disguised_v4(const struct addr *ad)
{
	static const uint8_t	 zero[12], mapped[12] = { [10] = 255, 255 };

	if (ad->ad_af != AF_INET6)
		return 0;
	if (memcmp(ad->ad_bytes, mapped, sizeof(mapped)) == 0)
		return 1;
	return memcmp(ad->ad_bytes, zero, sizeof(zero)) == 0 &&
	    (ad->ad_bytes[12] != 0 || ad->ad_bytes[13] != 0);
}

/* 1 if in is a literal address, then written to text; 0 if not; or -1. */
static int
canon_addr(const char *in, size_t len, char text[ADDR_STRLEN],
    const char **why)
{
	struct addr	 ad;

	if (len == 0 || len >= ADDR_STRLEN || memchr(in, '\0', len) != NULL)
		return 0;
	memcpy(text, in, len);
	text[len] = '\0';
	if (addr_parse(text, &ad) == -1)
		return 0;
	if (is_disguised_v4(&ad))
		return refuse(why, "IPv4 address not in dotted decimal");
	addr_format(&ad, text, ADDR_STRLEN);
	return 1;
}

static int
canon_name(const char *in, size_t len, char name[HOSTNAME_MAX],
    const char **why)
{
	const char	*fault;
	int		 n;

	if ((n = fold(in, len, name, why)) == -1)
		return -1;
	if (strstr(name, "://") != NULL)
		return refuse(why, "must be a name, not a URL");
	if (memchr(name, ':', (size_t)n) != NULL)
		return refuse(why, "port in name, or bad IPv6 address");
	if ((fault = labels_fault(name, (size_t)n, 0)) != NULL)
		return refuse(why, fault);
	if (ends_in_number(name))
		return refuse(why, "IPv4 address not in dotted decimal");
	return 0;
}

int
hostname_canon(const char *in, size_t len, char *out, size_t outsz,
    const char **why)
{
	char	 text[ADDR_STRLEN], name[HOSTNAME_MAX];

	if (outsz > 0)
		out[0] = '\0';
	switch (canon_addr(in, len, text, why)) {
	case 1:
		return copy_out(text, out, outsz, why);
	case 0:
		if (canon_name(in, len, name, why) == -1)
			return -1;
		return copy_out(name, out, outsz, why);
	default:
		return -1;
	}
}

int
hostname_is_canon(const char *name)
{
	char	 canon[HOSTNAME_MAX];

	return hostname_canon(name, strlen(name), canon, sizeof(canon),
	    NULL) == 0 && strcmp(name, canon) == 0;
}

int
hostname_pattern_canon(const char *in, size_t len, char *out, size_t outsz,
    const char **why)
{
	char		 pattern[HOSTNAME_MAX];
	const char	*fault;
	int		 n;

	if (len == 0 || memchr(in, '*', len) == NULL)
		return hostname_canon(in, len, out, outsz, why);
	if (outsz > 0)
		out[0] = '\0';
	if ((n = fold(in, len, pattern, why)) == -1)
		return -1;
	if ((fault = labels_fault(pattern, (size_t)n, 1)) != NULL)
		return refuse(why, fault);
	if (ends_in_number(pattern))
		return refuse(why, "wildcard in an address, use a prefix");
	return copy_out(pattern, out, outsz, why);
}

/*
 * Two literal labels are the least that can name an owner.  The public suffix
 * list would know better (`*.co.uk'), but it ages, and this gate must not
 * decide by the age of a list.
 */
int
hostname_pattern_check(const char *pattern, const char **why)
{
	char		 buf[HOSTNAME_MAX];
	const char	*p, *dot;

	if (hostname_pattern_canon(pattern, strlen(pattern), buf, sizeof(buf),
	    why) == -1)
		return -1;
	if ((p = strrchr(buf, '*')) == NULL || strcmp(buf, "**") == 0)
		return 0;
	if ((dot = strchr(p, '.')) == NULL || strchr(dot + 1, '.') == NULL)
		return refuse(why,
		    "fewer than two literal labels after a wildcard");
	return 0;
}

int
hostname_is_addr(const char *name)
{
	return strchr(name, ':') != NULL || ends_in_number(name);
}

/*
 * One label against one pattern label.  After a mismatch only the latest `*'
 * is made longer: what an earlier one could gain, the later one has tried.
 * Hence at most |pattern label| times |label| steps.
 */
static int
label_match(const char *p, const char *n)
{
	const char	*star = NULL, *retry = NULL;

	while (!is_label_end(*n)) {
		if (*p == '*') {
			star = ++p;
			retry = n;
		} else if (*p == *n) {
			p++;
			n++;
		} else if (star != NULL) {
			p = star;
			n = ++retry;
		} else
			return 0;
	}
	while (*p == '*')
		p++;
	return is_label_end(*p);
}

static int
is_deep(const char *label)
{
	return label[0] == '*' && label[1] == '*';
}

/*
 * The same walk over labels, with `**' in the place of `*'.  Each restart
 * begins one name label later, so a pattern label meets a given name label
 * only once and the whole costs at most |pattern| times |name| steps: 64,009,
 * whatever the two contain.
 */
static int
labels_match(const char *p, const char *n)
{
	const char	*deep = NULL, *retry = NULL;

	while (*n != '\0') {
		if (is_deep(p)) {
			deep = p = label_next(p);
			retry = n = label_next(n);
		} else if (*p != '\0' && label_match(p, n)) {
			p = label_next(p);
			n = label_next(n);
		} else if (deep != NULL) {
			p = deep;
			n = retry = label_next(retry);
		} else
			return 0;
	}
	/* Every pattern label takes a name label, so none may be left. */
	return *p == '\0';
}

int
hostname_match(const char *pattern, const char *name)
{
	if (strchr(pattern, '*') == NULL)
		return strcmp(pattern, name) == 0;
	if (hostname_is_addr(name))
		return 0;
	return labels_match(pattern, name);
}
