/* SPDX-License-Identifier: ISC */

/* Heads that are cut, and what is known of the body that follows. */

#include <stdio.h>

#include "../../recorder/recorder.h"
#include "../../tlsengine/http/h1.h"
#include "test.h"

#define CUT	256

static struct engine	 engine = { .en_instance = 1 };

/* By a head whose first CUT bytes are the same, whatever the type is. */
static enum redact_media
media(const char *type, size_t max)
{
	struct jsonw		 w;
	enum redact_media	 me;
	char			 lines[1024];
	int			 len;

	len = snprintf(lines, sizeof(lines), "X-Long: %0400d\r\n"
	    "Content-Type: %s\r\n", 0, type);
	jsonw_init(&w, 65536);
	me = record_head(&w, &engine, 0, lines, (size_t)len, max);
	jsonw_free(&w);
	return me;
}

/* Redaction of a body goes by it: that of the head before is not enough. */
TEST(type_of_a_cut_head)
{
	static const char	 form[] = "application/x-www-form-urlencoded";

	CHECK_INT(media("text/plain", CUT), MEDIA_OTHER);
	CHECK_INT(media(form, CUT), MEDIA_FORM);
	CHECK_INT(media("application/json", CUT), MEDIA_JSON);
	CHECK_INT(media("text/plain", CUT), MEDIA_OTHER);
}

TEST(type_of_a_remembered_head)
{
	CHECK_INT(media("application/json", SIZE_MAX), MEDIA_JSON);
	CHECK_INT(media("application/json", SIZE_MAX), MEDIA_JSON);
	CHECK_INT(media("text/plain", SIZE_MAX), MEDIA_OTHER);
}

/* An engine lets through no head of which the recorder drops lines. */
TEST(lines_of_any_head)
{
	CHECK_INT(H1_FIELDS_MAX <= FIELDS_MAX, 1);
	CHECK_INT(H1_HEAD_MAX <= FIELDS_LEN, 1);
}

TEST_MAIN("record_head")
