/* SPDX-License-Identifier: ISC */

/*
 * controld: the bodies of answers to control clients.  One is made at a time
 * and may go to several clients; the id that makes it somebody's answer is
 * put in front by client_send().
 */

#include "controld.h"

static struct jsonw	 writer;

static struct jsonw *
answer_begin(void)
{
	if (writer.jw_max == 0)
		jsonw_init(&writer, ANSWER_LEN);
	jsonw_reset(&writer);
	jsonw_object(&writer);
	return &writer;
}

/* The caller adds what else there is to say. */
struct jsonw *
answer_ok(void)
{
	struct jsonw	*w = answer_begin();

	jsonw_key(w, "ok");
	jsonw_bool(w, 1);
	return w;
}

/* The caller may add to the error object, which is left open. */
struct jsonw *
answer_error(const char *code, const char *message, size_t len)
{
	struct jsonw	*w = answer_begin();

	jsonw_key(w, "error");
	jsonw_object(w);
	jsonw_key(w, "code");
	jsonw_str(w, code);
	jsonw_key(w, "message");
	jsonw_string(w, message, len);
	return w;
}

/* No answer yet: a line on the way to it. */
void
answer_progress(const char *text)
{
	struct jsonw	*w = answer_begin();

	jsonw_key(w, "progress");
	jsonw_str(w, text);
}

/* The whole body, valid until the next one is begun. */
const char *
answer_end(size_t *len)
{
	static const char	 internal[] = "{\"error\":{\"code\":\""
	    CODE_INTERNAL "\",\"message\":\"the answer cannot be written\"}}";
	const char		*body;

	while (writer.jw_depth > 0 && jsonw_error(&writer) == NULL)
		jsonw_end(&writer);
	if ((body = jsonw_finish(&writer, len)) != NULL)
		return body;
	log_warnx("answer: %s", jsonw_error(&writer));
	*len = sizeof(internal) - 1;
	return internal;
}
