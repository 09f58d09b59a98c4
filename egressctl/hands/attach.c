/* SPDX-License-Identifier: ISC */

/*
 * egressctl: from the control socket to box.  The daemon, which is believed,
 * hands the connection on to the sandbox, which is not.
 */

#include "client.h"
#include "clock.h"
#include "link.h"
#include "show.h"

/* Waits for the greeting; 0, or -1 after saying what came instead. */
static int
await_hello(struct link *lk)
{
	uint64_t	end = clock_ms() + ANSWER_TIMEOUT_MS, now;

	while (link_hello(lk) == NULL && link_error(lk) == NULL) {
		now = clock_ms();
		if (now >= end || link_wait(lk, (int)(end - now)) == 0)
			link_fail(lk, "the sandbox does not greet");
	}
	if (link_error(lk) == NULL)
		return 0;
	fputs("egressctl: ", stderr);
	visible_put(stderr, link_error(lk), VISIBLE_TEXT);
	fputc('\n', stderr);
	return -1;
}

/* What was read behind the answer's newline is the first of the frames. */
static struct link *
link_from(struct client *cl)
{
	struct link	*lk;

	lk = link_new(cl->cl_fd, cl->cl_buf + cl->cl_used,
	    cl->cl_len - cl->cl_used);
	cl->cl_fd = -1;
	if (await_hello(lk) == 0)
		return lk;
	link_close(lk);
	return NULL;
}

/* The client has no connection any more, unless it was refused. */
struct link *
link_of(const struct invocation *in, struct client *cl, const char *session,
    int *status)
{
	struct link	*lk = NULL;
	cJSON		*answer, *request;
	char		*line;

	*status = EXIT_NO_DAEMON;
	request = exchange_request("session.attach");
	cJSON_AddStringToObject(request, "session_id", session);
	if ((answer = exchange_ask(cl, request, -1, &line)) == NULL)
		return NULL;
	if (json_get(answer, "error") != NULL) {
		in->in_output->ou_refusal(in->in_command, line, answer);
		*status = EXIT_REFUSED;
	} else
		lk = link_from(cl);
	cJSON_Delete(answer);
	return lk;
}

struct link *
link_open(const struct invocation *in, const char *session, int *status)
{
	struct link	*lk = NULL;
	struct client	 cl;

	*status = EXIT_NO_DAEMON;
	if (client_open(&cl, in->in_socket) == 0)
		lk = link_of(in, &cl, session, status);
	client_close(&cl);
	return lk;
}
