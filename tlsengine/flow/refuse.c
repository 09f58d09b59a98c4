/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: refusals that people and programs can read.  A status
 * with a phrase, two fields and a small body say what was refused, by which
 * rule and under which name it is in the records; or, if the policy wants it
 * so, the connection is reset without a word.  The body is JSON, or text for
 * who would show that to people.
 */

#include <stdio.h>
#include <string.h>
#include <vis.h>

#include "flow.h"
#include "http/h1_field.h"
#include "jsonw.h"
#include "policy.h"
#include "tlsengine.h"

static bool
contains(const struct h1_field *hf, const char *word)
{
	return memmem(hf->hf_value, hf->hf_vlen, word, strlen(word)) != NULL;
}

/*
 * git shows a refusal if it is text.  Others that accept neither JSON nor
 * everything have no use for it either.
 */
bool
refuse_as_text(const struct h1_head *hd)
{
	const struct h1_field	*hf;

	for (hf = hd->hd_fields; hf < hd->hd_fields + hd->hd_nfields; hf++) {
		if (h1_equal(hf->hf_name, hf->hf_nlen, "user-agent") &&
		    hf->hf_vlen > 4 && memcmp(hf->hf_value, "git/", 4) == 0)
			return true;
		if (h1_equal(hf->hf_name, hf->hf_nlen, "accept") &&
		    !contains(hf, "json") && !contains(hf, "*/*") &&
		    !contains(hf, "application/*"))
			return true;
	}
	return false;
}

static bool
has_rule(const struct exchange *ex)
{
	return ex->ex_ruling.rl_verdict == VERDICT_DENY &&
	    ex->ex_ruling.rl_rule != RULE_NONE;
}

static const char *
refuse_subject(int status)
{
	return status == 403 ? "Denied by egress policy" : "Egress gate";
}

/* A reason may quote an origin: escaped here and below. */
static size_t
refuse_text(const struct exchange *ex, int status, const char *reason,
    const char *id, char *out, size_t size)
{
	char	 safe[4 * sizeof(ex->ex_ruling.rl_reason)], rule[32] = "";
	int	 len;

	strvisx(safe, reason, strlen(reason), VIS_NL | VIS_TAB | VIS_CSTYLE);
	if (has_rule(ex))
		snprintf(rule, sizeof(rule), "rule %u, ",
		    ex->ex_ruling.rl_rule);
	len = snprintf(out, size, "%s: %s (host %s, %srequest %s)\n",
	    refuse_subject(status), safe, ex->ex_place.pc_host, rule, id);
	return (size_t)len < size ? (size_t)len : size - 1;
}

static size_t
refuse_json(const struct exchange *ex, const char *reason, const char *id,
    char *out, size_t size)
{
	struct jsonw	 w;
	const char	*text;
	size_t		 len = 0;

	jsonw_init(&w, size - 1);
	jsonw_object(&w);
	jsonw_key(&w, "error");
	jsonw_str(&w, "egress_refused");
	jsonw_key(&w, "reason");
	jsonw_str(&w, reason);
	jsonw_key(&w, "host");
	jsonw_str(&w, ex->ex_place.pc_host);
	jsonw_key(&w, "rule");
	if (has_rule(ex))
		jsonw_uint(&w, ex->ex_ruling.rl_rule);
	else
		jsonw_null(&w);
	jsonw_key(&w, "session_id");
	jsonw_str(&w, child_session);
	jsonw_key(&w, "request_id");
	jsonw_str(&w, id);
	jsonw_end(&w);
	if ((text = jsonw_finish(&w, &len)) != NULL) {
		memcpy(out, text, len);
		out[len++] = '\n';
	}
	jsonw_free(&w);
	return len;
}

/* The reason as a field value: its stable part. */
static struct h1_field
refuse_field(const char *reason, char *buf, size_t size)
{
	size_t	 len = strcspn(reason, ":");

	snprintf(buf, size, "refuse, %.*s", (int)len, reason);
	return (struct h1_field){ "Egress-Decision", 15, buf, strlen(buf),
	    0, 0 };
}

static int
refuse_answer(struct exchange *ex, int status, const char *reason)
{
	struct h1_field		 extra[3];
	struct h1_out_response	 os = { .os_status = status };
	char			 body[4096], decision[96], phrase[160];
	char			 id[REQUEST_PREFIX_LEN + JSONW_DIGITS + 1];
	const char		*type = ex->ex_text ? "text/plain" :
	    "application/json";
	size_t			 len, room;
	void			*p;

	snprintf(id, sizeof(id), "%s%llu", request_prefix,
	    (unsigned long long)ex->ex_id);
	len = ex->ex_text ?
	    refuse_text(ex, status, reason, id, body, sizeof(body)) :
	    refuse_json(ex, reason, id, body, sizeof(body));
	os.os_reason.s = phrase;
	os.os_reason.len = (size_t)snprintf(phrase, sizeof(phrase), "%s: %.*s",
	    refuse_subject(status), (int)strcspn(reason, ":"), reason);
	extra[0] = refuse_field(reason, decision, sizeof(decision));
	extra[1] = (struct h1_field){ "Egress-Request", 14, id, strlen(id),
	    0, 0 };
	extra[2] = (struct h1_field){ "Content-Type", 12, type, strlen(type),
	    0, 0 };
	os.os_extra = extra;
	os.os_nextra = 3;
	os.os_framing = H1_LENGTH;
	os.os_length = len;
	if (ex->ex_client->answer(ex, &os) == -1)
		return -1;
	if (ex->ex_request.hd_method == H1_HEAD)
		return 0;
	if ((p = ex->ex_client->reserve(ex, &room)) == NULL || room < len)
		return -1;
	memcpy(p, body, len);
	ex->ex_client->commit(ex, len);
	return 0;
}

/*
 * The end of an exchange that was not answered yet.  Before the verdict this
 * is a denial, after it a failure.
 */
bool
refuse_end(struct exchange *ex, int status, const char *reason)
{
	bool	 allowed = ex->ex_state == FLOW_CONNECT ||
	    ex->ex_state == FLOW_FORWARD;
	char	 why[sizeof(ex->ex_ruling.rl_reason)];

	strlcpy(why, reason, sizeof(why));
	ex->ex_status = status;
	if (allowed)
		report_closed(ex, why);
	else
		flow_deny(&ex->ex_flow, status, why);
	exchange_leave(ex, false);
	if ((settings.st_options.po_refuse == REFUSE_403 || allowed) &&
	    refuse_answer(ex, status, why) == 0)
		ex->ex_client->finish(ex, NULL);
	else
		ex->ex_client->cut(ex);
	exchange_free(ex);
	return false;
}
