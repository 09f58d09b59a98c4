/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for controld's line reader and request parser.  The input is
 * what a control client sends: its first byte says in pieces of which size,
 * the rest is sent.
 */

#include <sys/socket.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../controld/controld.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

/* Whatever the client sent, it is answered with JSON in one line. */
static void
require_answer(const struct request *rq)
{
	const char	*body;
	cJSON		*json;
	size_t		 len;

	REQUIRE(rq->rq_code != NULL && rq->rq_message[0] != '\0');
	answer_error(rq->rq_code, rq->rq_message, strlen(rq->rq_message));
	body = answer_end(&len);
	REQUIRE(memchr(body, '\n', len) == NULL && body[0] == '{');
	REQUIRE((json = cJSON_ParseWithLength(body, len)) != NULL);
	cJSON_Delete(json);
}

static const struct field fields[] = {
	{ "level", FIELD_STRING, MAY },
	{ "session_id", FIELD_STRING, MAY },
	{ "kinds", FIELD_STRINGS_SOME, MAY },
	{ "policy", FIELD_STRING, MAY },
	{ "role", FIELD_STRING, MAY },
	{ "metadata", FIELD_STRING_MAP, MAY },
	{ "port", FIELD_INTEGER, MAY },
	{ NULL, 0, 0 }
};

static int
take_fields(struct request *rq)
{
	const char	*session, *policy, *role;
	uint32_t	 kinds;
	uint8_t		 level;

	if (request_check(rq, fields) == -1)
		return -1;
	if (request_has(rq, "level")) {
		if (request_level(rq, &level) == -1)
			return -1;
		REQUIRE(level < LOG_LVL_MAX);
	}
	if (request_session(rq, &session) == -1 ||
	    request_name(rq, "policy", &policy) == -1 ||
	    request_name(rq, "role", &role) == -1 ||
	    request_kinds(rq, &kinds) == -1)
		return -1;
	REQUIRE(strlen(role) <= NAME_LEN);
	REQUIRE(strlen(session) <= SESSION_LEN && strlen(policy) <= NAME_LEN);
	REQUIRE(kinds != 0 && kinds < 1U << RECORD_KIND_MAX);
	return 0;
}

/* 1 if the connection goes on after this line. */
static int
serve(const char *line, size_t len)
{
	struct request	 rq;
	int		 go_on;

	REQUIRE(len <= LINE_LEN && line[len] == '\0');
	if (request_parse(&rq, line, len) == -1 || take_fields(&rq) == -1)
		require_answer(&rq);
	go_on = !rq.rq_hangup;
	request_free(&rq);
	return go_on;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line	 ln;
	struct passed	 ps;
	char		*line;
	size_t		 len, n, step;
	int		 fds[2], rv = 1;

	if (size < 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == -1)
		return 0;
	step = ((size_t)data[0] + 1) * 16;
	line_init(&ln);
	passed_init(&ps);
	for (data++, size--; size > 0 && rv != -1; data += n, size -= n) {
		n = size < step ? size : step;
		REQUIRE(write(fds[1], data, n) == (ssize_t)n);
		REQUIRE(line_read(&ln, fds[0], &ps) > 0);
		while ((rv = line_next(&ln, &line, &len)) == 1)
			if (!serve(line, len)) {
				rv = -1;
				break;
			}
	}
	line_free(&ln);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
