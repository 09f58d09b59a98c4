/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a record as one line of text.  The sandbox chose most of its
 * strings, so every one passes visible_put, and all but plain words are
 * quoted: a path or a reason must not look like the fields after it.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "records.h"
#include "show.h"

#define WIDTH_AT	24
#define WIDTH_SEQ	6
#define WIDTH_SESSION	16
#define WIDTH_KIND	7
#define WIDTH_METHOD	7
#define WIDTH_URL	40
#define WIDTH_STATUS	3

#define EXACT_BELOW	10000	/* larger counts of bytes are rounded */

#define COLOUR_PLAIN	""
#define COLOUR_DIM	"\033[2m"
#define COLOUR_RED	"\033[31m"
#define COLOUR_GREEN	"\033[32m"
#define COLOUR_YELLOW	"\033[33m"
#define COLOUR_CYAN	"\033[36m"
#define COLOUR_OFF	"\033[0m"

struct kind {
	const char	*kd_word;
	const char	*kd_colour;
};

/* The short word and the colour of each kind. */
#define KIND_LOOKS(X) \
	X(RECORD_REQUEST_OPENED, "opened", COLOUR_DIM) \
	X(RECORD_REQUEST_ALLOWED, "allowed", COLOUR_GREEN) \
	X(RECORD_REQUEST_DENIED, "denied", COLOUR_RED) \
	X(RECORD_REQUEST_CLOSED, "closed", COLOUR_PLAIN) \
	X(RECORD_REQUEST_FAILED, "failed", COLOUR_RED) \
	X(RECORD_DECIDER_FAILURE, "decider", COLOUR_YELLOW) \
	X(RECORD_SESSION_STARTED, "started", COLOUR_CYAN) \
	X(RECORD_SESSION_ENDED, "ended", COLOUR_CYAN) \
	X(RECORD_SESSION_ATTACHED, "attached", COLOUR_DIM) \
	X(RECORD_SESSION_DETACHED, "detached", COLOUR_DIM) \
	X(RECORD_CONNECTION_REFUSED, "refused", COLOUR_RED) \
	X(RECORD_NAME_ASKED, "asked", COLOUR_DIM) \
	X(RECORD_GAP, "gap", COLOUR_YELLOW) \
	X(RECORD_FILE_OPENED, "file", COLOUR_DIM) \
	X(RECORD_POD_GAP, "pod gap", COLOUR_YELLOW) \
	X(RECORD_POD_LOST, "pod lost", COLOUR_YELLOW) \
	X(RECORD_POD_HOSTILE, "hostile", COLOUR_RED)

#define KIND_ENTRY(constant, word, colour)	[constant] = { word, colour },
#define KIND_ONE(constant, word, colour)	+ 1

static const struct kind kinds[RECORD_KIND_MAX] = {
	KIND_LOOKS(KIND_ENTRY)
};
_Static_assert(0 KIND_LOOKS(KIND_ONE) == RECORD_KIND_MAX,
    "every kind of record has its look");

static int
want_colour(void)
{
	const char	*term = getenv("TERM");

	return isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL &&
	    term != NULL && strcmp(term, "dumb") != 0;
}

/* An unknown kind is shown by its own name. */
static struct kind
kind_find(const char *name)
{
	struct kind	unknown = { name, COLOUR_PLAIN };
	int		i = name == NULL ? -1 : record_kind_find(name);

	return i == -1 ? unknown : kinds[i];
}

static void
put_space(size_t columns, size_t width)
{
	printf("%*s", columns < width ? (int)(width - columns) : 0, "");
}

static size_t
put_word(const char *s)
{
	return visible_put(stdout, s != NULL ? s : "-", VISIBLE_WORD);
}

static void
put_column(const cJSON *record, const char *name, size_t width)
{
	put_space(put_word(json_string(record, name)), width);
}

static void
put_kind(const cJSON *record)
{
	struct kind	kind = kind_find(json_string(record, "kind"));
	int		coloured = want_colour() && *kind.kd_colour != '\0';

	if (coloured)
		fputs(kind.kd_colour, stdout);
	put_space(put_word(kind.kd_word), WIDTH_KIND);
	if (coloured)
		fputs(COLOUR_OFF, stdout);
}

static int
is_word(const char *s)
{
	if (*s == '\0')
		return 0;
	while (*s > ' ' && *s < 0x7f && *s != '"')
		s++;
	return *s == '\0';
}

static void
put_value(const cJSON *value)
{
	if (!cJSON_IsString(value)) {
		json_put(stdout, value);
	} else if (!is_word(value->valuestring)) {
		putchar('"');
		visible_put(stdout, value->valuestring, VISIBLE_QUOTED);
		putchar('"');
	} else
		put_word(value->valuestring);
}

static void
put_field(const char *label, const cJSON *object, const char *name)
{
	const cJSON	*value = json_get(object, name);

	if (value == NULL)
		return;
	putchar(' ');
	put_word(label);
	putchar('=');
	put_value(value);
}

static int
is_default_port(const char *scheme, double port)
{
	return (strcmp(scheme, "https") == 0 && port == 443) ||
	    (strcmp(scheme, "http") == 0 && port == 80);
}

/* Returns the columns taken. */
static size_t
put_host(const char *host)
{
	size_t	columns = 2;

	if (host == NULL || strchr(host, ':') == NULL)
		return put_word(host);
	putchar('[');
	columns += put_word(host);
	putchar(']');
	return columns;
}

/* A URL; host and port only of what never became a request. */
static size_t
put_url(const cJSON *request)
{
	const cJSON	*port = json_get(request, "port");
	const char	*scheme = json_string(request, "scheme");
	const char	*path = json_string(request, "path");
	size_t		 columns = 0;

	if (scheme != NULL)
		columns += put_word(scheme) + (size_t)printf("://");
	columns += put_host(json_string(request, "host"));
	if (cJSON_IsNumber(port) && (scheme == NULL ||
	    !is_default_port(scheme, port->valuedouble))) {
		putchar(':');
		columns += 1 + json_put(stdout, port);
	}
	if (path != NULL)
		columns += put_word(path);
	return columns;
}

/* A count of bytes, rounded, unless it is 0; the JSON has the exact one. */
static void
put_bytes(const char *label, const cJSON *count)
{
	static const char	 units[] = "kMGTP";
	const char		*unit = units;
	double			 n;

	if (!cJSON_IsNumber(count) || (n = count->valuedouble) <= 0)
		return;
	printf(" %s=", label);
	if (n < EXACT_BELOW) {
		json_put(stdout, count);
		return;
	}
	for (n /= 1000; n >= 999.95 && unit[1] != '\0'; n /= 1000)
		unit++;
	printf("%.1f%c", n, *unit);
}

/* Milliseconds since the epoch, of a time as the recorder writes it; or -1. */
static int64_t
parse_time(const char *s)
{
	struct tm	 tm = { 0 };
	const char	*rest = NULL;

	if (s != NULL)
		rest = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	if (rest == NULL || *rest != '.' || strlen(rest) != strlen(".678Z"))
		return -1;
	return (int64_t)timegm(&tm) * 1000 + strtol(rest + 1, NULL, 10);
}

static void
put_duration(const cJSON *request)
{
	int64_t	from = parse_time(json_string(request, "started_at"));
	int64_t	to = parse_time(json_string(request, "finished_at"));

	if (from == -1 || to <= from)
		return;
	if (to - from < 10000)
		printf(" %dms", (int)(to - from));
	else
		printf(" %.1fs", (double)(to - from) / 1000);
}

/* How a request ended: only its last record has response_status. */
static void
put_end(const cJSON *record, const cJSON *request)
{
	const cJSON	*status;

	status = cJSON_GetObjectItemCaseSensitive(request, "response_status");
	if (status != NULL) {
		putchar(' ');
		put_space(cJSON_IsNumber(status) ? json_put(stdout, status) :
		    put_word(cJSON_GetStringValue(status)), WIDTH_STATUS);
	}
	put_bytes("in", json_get(record, "bytes_in"));
	put_bytes("out", json_get(record, "bytes_out"));
	put_duration(request);
}

/* The URL is padded if anything stands after it. */
static void
put_request(const cJSON *record, const cJSON *request)
{
	const char	*method = json_string(request, "method");
	size_t		 columns;

	if (method == NULL && json_string(request, "scheme") == NULL)
		method = json_string(request, "protocol");
	putchar(' ');
	put_space(put_word(method), WIDTH_METHOD);
	putchar(' ');
	columns = put_url(request);
	if (cJSON_HasObjectItem(request, "response_status") ||
	    json_get(record, "reason") != NULL ||
	    json_get(record, "matched_rule") != NULL)
		put_space(columns, WIDTH_URL);
	put_end(record, request);
}

/*
 * What is wrong with a request depends on how it was spoken.  Without a scheme
 * the protocol stands in the place of the method.
 */
static void
put_reason(const cJSON *record, const cJSON *request)
{
	const char	*reason = json_string(record, "reason");

	put_field("reason", record, "reason");
	if (reason != NULL && strcmp(reason, "bad_request") == 0 &&
	    json_string(request, "scheme") != NULL)
		put_field("protocol", request, "protocol");
}

static void
put_rule(const cJSON *rule)
{
	if (!cJSON_IsObject(rule))
		return;
	fputs(" rule=", stdout);
	put_value(json_get(rule, "index"));
	putchar('/');
	put_value(json_get(rule, "kind"));
}

/* Whether the fixed part of the line shows the field, or leaves it out. */
static int
is_placed(const char *name, int has_request)
{
	static const char *const	always[] = { "seq", "kind", "at",
	    "session_id", "prev", "reason", "matched_rule" };
	static const char *const	request[] = { "request", "bytes_in",
	    "bytes_out" };
	size_t				i;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (strcmp(name, always[i]) == 0)
			return 1;
	for (i = 0; has_request && i < sizeof(request) / sizeof(request[0]);
	    i++)
		if (strcmp(name, request[i]) == 0)
			return 1;
	return 0;
}

/*
 * Any field of any kind is shown, if plainly, so that a newer daemon's
 * records are not silently shortened.
 */
void
record_put(const cJSON *record)
{
	const cJSON	*seq = json_get(record, "seq");
	const cJSON	*request = json_get(record, "request"), *field;
	int		 has_request = cJSON_IsObject(request);

	put_column(record, "at", WIDTH_AT);
	fputs("  ", stdout);
	put_space(json_put(NULL, seq), WIDTH_SEQ);
	json_put(stdout, seq);
	fputs("  ", stdout);
	put_column(record, "session_id", WIDTH_SESSION);
	fputs("  ", stdout);
	put_kind(record);
	putchar(' ');
	if (has_request)
		put_request(record, request);
	put_reason(record, request);
	put_rule(json_get(record, "matched_rule"));
	cJSON_ArrayForEach(field, record)
		if (!is_placed(field->string, has_request))
			put_field(field->string, record, field->string);
	putchar('\n');
}
