/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: heads in records, redacted.  Engines chose every
 * byte of them.
 */

#include <string.h>

#include "recorder.h"

#define HEAD_LEN	2048	/* of a head that we remember */

/* Static: clearing this on the stack would cost more than the record. */
static struct redact_line	 fields[FIELDS_MAX];
static char			 joined[6 * FIELDS_LEN];

/*
 * The last head of a request and of an answer, and what was written of it:
 * the next one often is the same.
 */
static struct head {
	uint32_t	 hd_engine;	/* its instance */
	uint32_t	 hd_version;	/* of redaction */
	enum redact_media hd_media;	/* of the body that follows */
	size_t		 hd_len;
	size_t		 hd_textlen;
	char		 hd_lines[HEAD_LEN];
	char		 hd_text[2 * HEAD_LEN];
} heads[2];

static bool
same_field(const struct redact_line *a, const struct redact_line *b)
{
	return a->rl_nlen == b->rl_nlen &&
	    strncasecmp(a->rl_name, b->rl_name, a->rl_nlen) == 0;
}

/* Whether the i-th name has been seen before, or comes again. */
static bool
is_repeated(size_t i, size_t from, size_t to)
{
	for (; from < to; from++)
		if (same_field(&fields[i], &fields[from]))
			return true;
	return false;
}

/* All values of the i-th name, as one, in the order in which they came. */
static void
put_joined(struct jsonw *w, const struct redact *rd, size_t i, size_t n)
{
	struct redact_out	 ro = { joined, sizeof(joined), 0, 0 };
	struct redacted		 re;
	size_t			 j;

	for (j = i; j < n; j++) {
		if (!same_field(&fields[i], &fields[j]))
			continue;
		if (j != i)
			redact_put(&ro, ", ", 2);
		re = redact_value(rd, fields[j].rl_value, fields[j].rl_vlen);
		redact_put(&ro, re.re_text, re.re_len);
	}
	jsonw_string(w, joined, ro.ro_len);
}

/*
 * Every name is one member; a field that comes twice has its values joined.
 * Returns what the body is.
 */
static enum redact_media
put_fields(struct jsonw *w, const struct redact *rd, const char *p,
    size_t left)
{
	const struct redact_line	*rl;
	enum redact_media		 media = MEDIA_UNKNOWN;
	struct redacted			 re;
	size_t				 i, n = 0;

	while (n < FIELDS_MAX && redact_next(&p, &left, &fields[n]))
		media = redact_media(media, &fields[n++]);
	for (i = 0; i < n; i++) {
		rl = &fields[i];
		if (is_repeated(i, 0, i))
			continue;
		jsonw_keyn(w, rl->rl_name, rl->rl_nlen);
		if (redact_hides(rd, REDACT_HEADER, rl->rl_name, rl->rl_nlen))
			jsonw_str(w, REDACTED);
		else if (is_repeated(i, i + 1, n))
			put_joined(w, rd, i, n);
		else {
			re = redact_value(rd, rl->rl_value, rl->rl_vlen);
			jsonw_string(w, re.re_text, re.re_len);
		}
	}
	return media;
}

static void
head_keep(struct head *hd, const struct engine *en, enum redact_media media,
    const char *lines, size_t len, const char *text, size_t textlen)
{
	if (len > sizeof(hd->hd_lines) || textlen > sizeof(hd->hd_text))
		return;
	hd->hd_engine = en->en_instance;
	hd->hd_version = redact_version();
	hd->hd_media = media;
	hd->hd_len = len;
	hd->hd_textlen = textlen;
	memcpy(hd->hd_lines, lines, len);
	memcpy(hd->hd_text, text, textlen);
}

/* The media type of a cut head, as put_fields() would find it. */
static enum redact_media
media_of(const char *p, size_t left)
{
	struct redact_line	 rl;
	enum redact_media	 media = MEDIA_UNKNOWN;

	while (redact_next(&p, &left, &rl))
		media = redact_media(media, &rl);
	return media;
}

/*
 * The head of a request or of an answer, up to max bytes of it.  A line that
 * the cut goes through keeps its name whole, or is not there.  Returns what the
 * body is by the whole head.
 */
enum redact_media
record_head(struct jsonw *w, const struct engine *en, int of_answer,
    const char *lines, size_t whole, size_t max)
{
	struct head		*hd = &heads[of_answer];
	const char		*text;
	enum redact_media	 media = MEDIA_UNKNOWN;
	size_t			 from, len, textlen;

	len = whole < max ? whole : max;
	jsonw_object(w);
	if (hd->hd_engine == en->en_instance &&
	    hd->hd_version == redact_version() && hd->hd_len == len &&
	    memcmp(hd->hd_lines, lines, len) == 0) {
		jsonw_members(w, hd->hd_text, hd->hd_textlen);
		media = hd->hd_media;
	} else if (len > 0) {
		from = jsonw_len(w);
		media = put_fields(w, redact_of(en->en_session,
		    en->en_policy), lines, len);
		if ((text = jsonw_since(w, from, &textlen)) != NULL)
			head_keep(hd, en, media, lines, len, text, textlen);
	}
	jsonw_end(w);
	return len < whole ? media_of(lines, whole) : media;
}
