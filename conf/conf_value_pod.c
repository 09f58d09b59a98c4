/* SPDX-License-Identifier: ISC */

/*
 * Judging single values that end in a pod, by the rules of the API that they
 * are sent to later: what is wrong is told when the configuration is read.
 * As in conf_value.c, the functions return NULL or a text that completes
 * "value: ".
 */

#include <ctype.h>
#include <string.h>

#include "confparse.h"
#include "hostname.h"

#define LOWER	"abcdefghijklmnopqrstuvwxyz"
#define UPPER	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT	"0123456789"
#define ALNUM	LOWER UPPER DIGIT

#define SUBDOMAIN_MAX	253
#define NAME_PART_MAX	63	/* of a key, and of a label's value */
#define IMAGE_MAX	512
#define REF_MAX		255
#define SECONDS_MAX	10	/* digits */

static bool
is_one_of(int c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

static bool
spelt(const char *p, size_t len, const char *ends, const char *inner)
{
	size_t	 i;

	if (len == 0 || !is_one_of(p[0], ends) || !is_one_of(p[len - 1], ends))
		return false;
	for (i = 0; i < len; i++)
		if (!is_one_of(p[i], inner))
			return false;
	return true;
}

/* Labels of RFC 1123 with dots between; names of most objects are such. */
static bool
is_subdomain(const char *p, size_t len)
{
	const char	*end = p + len, *dot;

	if (len == 0 || len > SUBDOMAIN_MAX)
		return false;
	for (;; p = dot + 1) {
		if ((dot = memchr(p, '.', (size_t)(end - p))) == NULL)
			dot = end;
		if (dot - p > 63 || !spelt(p, (size_t)(dot - p), LOWER DIGIT,
		    LOWER DIGIT "-"))
			return false;
		if (dot == end)
			return true;
	}
}

const char *
value_subdomain_error(const char *text)
{
	return is_subdomain(text, strlen(text)) ? NULL : "must be 1 to 253 "
	    "lower-case letters, digits, inner hyphens and dots";
}

/* A name or an address, for a certificate to be compared with. */
const char *
value_hostname_error(const char *text)
{
	char	 host[HOSTNAME_MAX];

	return hostname_canon(text, strlen(text), host, sizeof(host),
	    NULL) == 0 ? NULL : "not a host name";
}

/* The key of a label, of an annotation, or a resource: prefix/name. */
const char *
value_qualified_error(const char *key)
{
	const char	*name = strchr(key, '/');

	if (name != NULL && !is_subdomain(key, (size_t)(name - key)))
		return "what is before the slash must be a domain in lower "
		    "case";
	name = name == NULL ? key : name + 1;
	if (strlen(name) > NAME_PART_MAX)
		return "the name has more than 63 bytes";
	if (!spelt(name, strlen(name), ALNUM, ALNUM "-_."))
		return "the name must be letters, digits and inner - _ .";
	return NULL;
}

const char *
value_labelled_error(const char *value)
{
	if (strlen(value) > NAME_PART_MAX)
		return "has more than 63 bytes";
	if (value[0] != '\0' && !spelt(value, strlen(value), ALNUM,
	    ALNUM "-_."))
		return "must be letters, digits and inner - _ .";
	return NULL;
}

/* 500m, 1.5, 2Gi, 1e3: what Kubernetes calls a quantity, but no sign. */
const char *
value_quantity_error(const char *text)
{
	static const char *const	 units[] = { "", "n", "u", "m", "k",
	    "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
	size_t				 i, n = strspn(text, DIGIT), digits = n;

	if (text[n] == '.') {
		digits += strspn(text + n + 1, DIGIT);
		n = digits + 1;
	}
	if (digits == 0 || digits > 18)
		return "must be a quantity such as 500m or 1Gi";
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(text + n, units[i]) == 0)
			return NULL;
	if ((text[n] == 'e' || text[n] == 'E') && text[n + 1] != '\0' &&
	    strlen(text + n) <= 3 && text[n + 1 + strspn(text + n + 1,
	    DIGIT)] == '\0')
		return NULL;
	return "must be a quantity such as 500m or 1Gi";
}

/* One part of an image's path: words joined by ., _, __ or hyphens. */
static bool
is_image_part(const char *p, size_t len)
{
	size_t	 i, n;

	if (!spelt(p, len, LOWER DIGIT, LOWER DIGIT "._-"))
		return false;
	for (i = 0; i < len; i += n == 0 ? 1 : n) {
		for (n = 0; is_one_of(p[i + n], "._"); n++)
			continue;
		if (n > 2 || (n == 2 && memcmp(p + i, "__", 2) != 0))
			return false;
	}
	return true;
}

/* The first part is a registry if it looks like a host, or has a port. */
static bool
is_registry(const char *p, size_t len)
{
	const char	*colon = memchr(p, ':', len);
	size_t		 host = colon == NULL ? len : (size_t)(colon - p), n;

	n = len - host;
	if (colon == NULL && memchr(p, '.', len) == NULL &&
	    (len != 9 || memcmp(p, "localhost", 9) != 0))
		return false;
	if (colon != NULL && (n < 2 || n > 6 ||
	    strspn(colon + 1, DIGIT) < n - 1))
		return false;
	return spelt(p, host, ALNUM, ALNUM "-.");
}

static bool
is_digest(const char *p)
{
	return strncmp(p, "sha256:", 7) == 0 && strlen(p) == 7 + 64 &&
	    strspn(p + 7, DIGIT "abcdef") == 64;
}

const char *
value_image_error(const char *image)
{
	const char	*p = image, *end, *at, *slash, *colon;

	if (strlen(image) > IMAGE_MAX)
		return "has more than 512 bytes";
	end = image + strlen(image);
	if ((at = strchr(image, '@')) != NULL) {
		if (!is_digest(at + 1))
			return "@ must be followed by sha256: and 64 hex "
			    "digits";
		end = at;
	}
	if ((slash = memchr(p, '/', (size_t)(end - p))) != NULL &&
	    is_registry(p, (size_t)(slash - p)))
		p = slash + 1;
	if ((colon = memchr(p, ':', (size_t)(end - p))) != NULL) {
		if (end - colon - 1 > 128 || !spelt(colon + 1,
		    (size_t)(end - colon - 1), ALNUM "_-.", ALNUM "_-.") ||
		    is_one_of(colon[1], "-."))
			return "what is after the colon is no tag";
		end = colon;
	}
	for (;; p = slash + 1) {
		if ((slash = memchr(p, '/', (size_t)(end - p))) == NULL)
			slash = end;
		if (!is_image_part(p, (size_t)(slash - p)))
			return "must be [registry/]name[:tag][@digest], the "
			    "name in lower case";
		if (slash == end)
			return NULL;
	}
}

/* git-check-ref-format(1), and nothing that git would take for an option. */
const char *
value_ref_error(const char *ref)
{
	const char	*p;

	if (strlen(ref) > REF_MAX)
		return "has more than 255 bytes";
	for (p = ref; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p) || strchr("~^:?*[\\", *p))
			return "not the name of a branch, tag or commit";
	if (ref[0] == '-' || ref[0] == '/' || p[-1] == '/' || p[-1] == '.' ||
	    strstr(ref, "..") != NULL || strstr(ref, "@{") != NULL ||
	    strstr(ref, "//") != NULL)
		return "not the name of a branch, tag or commit";
	return NULL;
}

static bool
is_effect(const char *p, size_t len)
{
	static const char *const	 effects[] = { "NoSchedule",
	    "PreferNoSchedule", "NoExecute" };
	size_t				 i;

	for (i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
		if (strlen(effects[i]) == len &&
		    memcmp(effects[i], p, len) == 0)
			return true;
	return false;
}

/* 300s, of NoExecute: how long a pod stays after the taint has come. */
static const char *
taint_time_error(const char *effect, const char *time)
{
	size_t	 n = strspn(time, DIGIT);

	if (n == 0 || n > SECONDS_MAX || strcmp(time + n, "s") != 0)
		return "the time must be seconds, such as 300s";
	if (strncmp(effect, "NoExecute:", 10) != 0)
		return "a time is for NoExecute";
	return NULL;
}

/* key[=value][:effect[:time]], as kubectl taint writes it; * is every key. */
const char *
value_taint_error(const char *taint)
{
	const char	*why, *effect, *time;
	char		 key[SUBDOMAIN_MAX + NAME_PART_MAX + 2];
	char		 value[NAME_PART_MAX + 2] = "";
	size_t		 n = strcspn(taint, "=:"), len;

	if (n >= sizeof(key))
		return "the key is too long";
	memcpy(key, taint, n);
	key[n] = '\0';
	if (taint[n] == '=') {
		len = strcspn(taint + n + 1, ":");
		if (len >= sizeof(value))
			return "the value has more than 63 bytes";
		memcpy(value, taint + n + 1, len);
		n += len + 1;
	}
	if (strcmp(key, "*") == 0 && value[0] != '\0')
		return "* is every key and takes no value";
	if (strcmp(key, "*") != 0 &&
	    (why = value_qualified_error(key)) != NULL)
		return why;
	if ((why = value_labelled_error(value)) != NULL)
		return why;
	if (taint[n] == '\0')
		return NULL;
	effect = taint + n + 1;
	time = strchr(effect, ':');
	if (!is_effect(effect, time == NULL ? strlen(effect) :
	    (size_t)(time - effect)))
		return "the effect must be NoSchedule, PreferNoSchedule or "
		    "NoExecute";
	return time == NULL ? NULL : taint_time_error(effect, time + 1);
}
