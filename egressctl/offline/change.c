/* SPDX-License-Identifier: ISC */

/*
 * egressctl: distinct requests of a replay.  A sandbox can make as many as it
 * likes, so the table has a bound; what does not fit is counted and said.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "offline.h"
#include "records/records.h"
#include "show.h"

#define CHANGES_BYTES_MAX	(16 * 1024 * 1024)

static int	change_compare(const struct change *, const struct change *);

RB_PROTOTYPE(change_tree, change, ch_node, change_compare);
RB_GENERATE(change_tree, change, ch_node, change_compare);

static int
compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int
verdict_compare(const struct replay_verdict *a, const struct replay_verdict *b)
{
	int	d;

	if ((d = compare(a->rv_says, b->rv_says)) != 0 ||
	    (d = compare(a->rv_rule, b->rv_rule)) != 0)
		return d;
	return compare((uint64_t)a->rv_asked, (uint64_t)b->rv_asked);
}

static int
change_compare(const struct change *a, const struct change *b)
{
	int	d;

	if ((d = strcmp(a->ch_host, b->ch_host)) != 0 ||
	    (d = strcmp(a->ch_path, b->ch_path)) != 0 ||
	    (d = strcmp(a->ch_method, b->ch_method)) != 0 ||
	    (d = compare(a->ch_port, b->ch_port)) != 0 ||
	    (d = compare(a->ch_scheme, b->ch_scheme)) != 0 ||
	    (d = verdict_compare(&a->ch_was, &b->ch_was)) != 0)
		return d;
	return verdict_compare(&a->ch_now, &b->ch_now);
}

void
changes_init(struct changes *cs)
{
	RB_INIT(&cs->cs_tree);
	TAILQ_INIT(&cs->cs_list);
	cs->cs_bytes = 0;
	cs->cs_dropped = 0;
}

static const char *
place(char **at, const char *s)
{
	char	*start = *at;

	*at += strlen(s) + 1;
	return memcpy(start, s, strlen(s) + 1);
}

/* Copies a change, its strings into ch_text. */
static void
keep(struct changes *cs, const struct change *key)
{
	struct change	*ch;
	size_t		 size;
	char		*at;

	size = sizeof(*ch) + strlen(key->ch_method) + strlen(key->ch_host) +
	    strlen(key->ch_path) + 3;
	if (size > CHANGES_BYTES_MAX - cs->cs_bytes) {
		cs->cs_dropped++;
		return;
	}
	if ((ch = malloc(size)) == NULL)
		err(EXIT_USAGE, NULL);
	*ch = *key;
	at = ch->ch_text;
	ch->ch_method = place(&at, key->ch_method);
	ch->ch_host = place(&at, key->ch_host);
	ch->ch_path = place(&at, key->ch_path);
	cs->cs_bytes += size;
	RB_INSERT(change_tree, &cs->cs_tree, ch);
	TAILQ_INSERT_TAIL(&cs->cs_list, ch, ch_entry);
}

/* Counts a change, as a new one or one more of its kind. */
void
changes_add(struct changes *cs, const struct change *like, const char *method,
    const struct url *ur)
{
	struct change	 key = *like, *ch;

	key.ch_scheme = ur->ur_scheme;
	key.ch_port = ur->ur_port;
	key.ch_method = method;
	key.ch_host = ur->ur_host;
	key.ch_path = ur->ur_path;
	if ((ch = RB_FIND(change_tree, &cs->cs_tree, &key)) != NULL)
		ch->ch_count++;
	else
		keep(cs, &key);
}

void
changes_free(struct changes *cs)
{
	struct change	*ch;

	while ((ch = TAILQ_FIRST(&cs->cs_list)) != NULL) {
		TAILQ_REMOVE(&cs->cs_list, ch, ch_entry);
		free(ch);
	}
	changes_init(cs);
}

static void
add_verdict(cJSON *json, const char *name, const struct replay_verdict *rv)
{
	static const char *const	 words[] = {
		[REPLAY_ALLOW] = "allow", [REPLAY_DENY] = "deny",
		[REPLAY_ASK] = "ask",
	};
	cJSON				*object;

	object = cJSON_AddObjectToObject(json, name);
	cJSON_AddStringToObject(object, "verdict", words[rv->rv_says]);
	if (rv->rv_rule == NO_RULE)
		cJSON_AddNullToObject(object, "rule");
	else
		cJSON_AddNumberToObject(object, "rule", rv->rv_rule);
	cJSON_AddBoolToObject(object, "asked", rv->rv_asked);
}

cJSON *
change_json(const struct change *ch)
{
	cJSON	*json, *request;

	if ((json = cJSON_CreateObject()) == NULL)
		err(EXIT_USAGE, NULL);
	cJSON_AddBoolToObject(json, "changed", ch->ch_differs);
	cJSON_AddNumberToObject(json, "count", (double)ch->ch_count);
	add_verdict(json, "was", &ch->ch_was);
	add_verdict(json, "now", &ch->ch_now);
	request = cJSON_AddObjectToObject(json, "request");
	cJSON_AddStringToObject(request, "scheme",
	    url_scheme_name(ch->ch_scheme));
	cJSON_AddStringToObject(request, "host", ch->ch_host);
	cJSON_AddNumberToObject(request, "port", ch->ch_port);
	if (ch->ch_scheme == URL_TCP)
		return json;
	cJSON_AddStringToObject(request, "method", ch->ch_method);
	cJSON_AddStringToObject(request, "path", ch->ch_path);
	return json;
}

/* ---- as text ------------------------------------------------------------- */

static void
put_verdict(const cJSON *verdict)
{
	const cJSON	*rule = json_get(verdict, "rule");

	json_put(stdout, json_get(verdict, "verdict"));
	if (rule == NULL)
		fputs(" default", stdout);
	else {
		fputs(" rule ", stdout);
		json_put(stdout, rule);
	}
	if (cJSON_IsTrue(json_get(verdict, "asked")) &&
	    strcmp(json_string(verdict, "verdict"), "ask") != 0)
		fputs(" (asked)", stdout);
}

static void
put_change(const cJSON *json)
{
	int	differs = cJSON_IsTrue(json_get(json, "changed"));

	fputs(differs ? "was " : "still ", stdout);
	put_verdict(json_get(json, "was"));
	fputs(differs ? " -> now " : " -> ", stdout);
	put_verdict(json_get(json, "now"));
	fputs(", ", stdout);
	json_put(stdout, json_get(json, "count"));
	fputs("x ", stdout);
	request_put(stdout, json_get(json, "request"));
	putchar('\n');
}

static void
put_count(const cJSON *json, const char *name, const char *text)
{
	const cJSON	*n = json_get(json, name);

	if (cJSON_IsNumber(n) && n->valuedouble > 0) {
		fputs(", ", stdout);
		json_put(stdout, n);
		printf(" %s", text);
	}
}

static int
is_one(const cJSON *json, const char *name)
{
	return cJSON_GetNumberValue(json_get(json, name)) == 1;
}

void
replay_put(const cJSON *json)
{
	if (json_get(json, "finding") != NULL) {
		finding_put(json);
		return;
	}
	if (json_get(json, "request") != NULL) {
		put_change(json);
		return;
	}
	json_put(stdout, json_get(json, "requests"));
	printf(" request%s, ", is_one(json, "requests") ? "" : "s");
	json_put(stdout, json_get(json, "changed"));
	fputs(" would change", stdout);
	put_count(json, "not_listed", "not listed for lack of room");
	put_count(json, "not_policy", "not decided by a policy");
	put_count(json, "bad_lines", is_one(json, "bad_lines") ? "bad line" :
	    "bad lines");
	putchar('\n');
}
