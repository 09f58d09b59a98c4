/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: questions that a control client answers, which came here
 * through controld and the parent.  It is the host from which a pod is run.
 * There is one at a time, and if it goes the questions wait for the next until
 * their time is up.  What it says is believed as any decider is; a line that is
 * no answer at all ends its connection.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "clock.h"
#include "codes.h"
#include "deciderd.h"

#define OUTPUT_MAX	(1024 * 1024)	/* bytes unread; what is more waits */

static struct {
	struct bufferevent	*sv_bev;	/* NULL: nobody serves */
	uint64_t		 sv_term;	/* the highest seen */
	uint64_t		 sv_number;	/* of the last question */
	struct question		*sv_answered;	/* the one that ends now */
	struct questions	 sv_questions;
} server = {
	.sv_questions = TAILQ_HEAD_INITIALIZER(server.sv_questions),
};

/* ---- lines out ---- */

/* False if the server has to read first. */
static bool
serve_write(struct question *qu)
{
	struct evbuffer		*out = bufferevent_get_output(server.sv_bev);
	const struct text	*doc = &qu->qu_document;
	uint64_t		 now = clock_ms();

	if (evbuffer_get_length(out) > OUTPUT_MAX)
		return false;
	qu->qu_written = true;
	/* A decider's name is of letters, digits and a few others. */
	if (evbuffer_add_printf(out, "{\"id\":%llu,\"decider\":\"%s\","
	    "\"rule\":%u,\"timeout_ms\":%llu,\"question\":",
	    (unsigned long long)qu->qu_number, qu->qu_decider->de_name,
	    qu->qu_rule, (unsigned long long)(qu->qu_until_ms > now ?
	    qu->qu_until_ms - now : 1)) == -1 ||
	    evbuffer_add(out, doc->tx_data, doc->tx_len) == -1 ||
	    evbuffer_add(out, "}\n", 2) == -1)
		fatalx("%s: no memory", __func__);
	return true;
}

/* The server has read: put what it could not take before. */
static void
serve_more(struct bufferevent *bev, void *arg)
{
	struct question	*qu;

	(void)bev, (void)arg;
	TAILQ_FOREACH(qu, &server.sv_questions, qu_stream)
		if (!qu->qu_written && !serve_write(qu))
			return;
}

static void
serve_begin(struct question *qu)
{
	qu->qu_number = ++server.sv_number;
	TAILQ_INSERT_TAIL(&server.sv_questions, qu, qu_stream);
	if (server.sv_bev != NULL)
		serve_more(server.sv_bev, NULL);
}

/* Unless it has just answered, the server need not think any longer. */
static void
serve_forget(struct question *qu)
{
	TAILQ_REMOVE(&server.sv_questions, qu, qu_stream);
	if (server.sv_bev == NULL || !qu->qu_written ||
	    qu == server.sv_answered)
		return;
	if (evbuffer_add_printf(bufferevent_get_output(server.sv_bev),
	    "{\"id\":%llu,\"drop\":true}\n",
	    (unsigned long long)qu->qu_number) == -1)
		fatalx("%s: no memory", __func__);
}

/* ---- lines in ---- */

/* The questions stay, for the next server. */
static void
serve_close(const char *why)
{
	struct question	*qu;

	log_info("questions are not served any more: %s", why);
	bufferevent_free(server.sv_bev);
	server.sv_bev = NULL;
	TAILQ_FOREACH(qu, &server.sv_questions, qu_stream)
		qu->qu_written = false;
}

static struct question *
serve_find(uint64_t number)
{
	struct question	*qu;

	TAILQ_FOREACH(qu, &server.sv_questions, qu_stream)
		if (qu->qu_written && qu->qu_number == number)
			return qu;
	return NULL;
}

/*
 * {"id":7,"error":"why"}: the server has not got an answer.  False if it is
 * not that; an error with more beside it is left where no answer may have it.
 */
static bool
take_error(cJSON *json, struct reply *rp)
{
	cJSON	*error = cJSON_GetObjectItemCaseSensitive(json, "error");

	if (!cJSON_IsString(error) || cJSON_GetArraySize(json) != 2)
		return false;
	cJSON_DetachItemViaPointer(json, error);
	if (!cJSON_AddItemToObject(json, "reason", error) ||
	    cJSON_AddStringToObject(json, "decision", "deny") == NULL)
		fatalx("%s: no memory", __func__);
	reply_object(json, true, rp);
	rp->rp_keep = false;
	if (rp->rp_result != ANSWER_BAD_RETURN)
		rp->rp_result = ANSWER_ERROR;
	return true;
}

/*
 * {"id":7,"decision":"allow","keep":false}: the server asked a person, who has
 * said nothing of other requests.  A second keep, and one that is no boolean,
 * is left where no answer may have it.
 */
static void
take_answer(cJSON *json, struct reply *rp)
{
	cJSON	*keep = cJSON_GetObjectItemCaseSensitive(json, "keep");
	bool	 once = cJSON_IsFalse(keep);

	if (cJSON_IsBool(keep))
		cJSON_Delete(cJSON_DetachItemViaPointer(json, keep));
	reply_object(json, true, rp);
	if (once)
		rp->rp_keep = false;
}

/* NULL, or why the line ends the connection. */
static const char *
serve_line(const char *line, size_t len)
{
	static char	 why[REASON_LEN + 1];
	struct question	*qu;
	struct reply	 rp;
	cJSON		*json;

	if ((json = reply_read(line, len, &rp)) != NULL &&
	    !take_error(json, &rp))
		take_answer(json, &rp);
	cJSON_Delete(json);
	if (rp.rp_id == 0) {
		strlcpy(why, rp.rp_result == ANSWER_BAD_RETURN ?
		    rp.rp_reason : "an answer has no id", sizeof(why));
		return why;
	}
	if ((qu = serve_find(rp.rp_id)) == NULL) {
		/* Its time was up when the answer was on its way. */
		log_debug("an answer to question %llu, which is not open",
		    (unsigned long long)rp.rp_id);
		return NULL;
	}
	server.sv_answered = qu;
	question_reply(qu, &rp);
	server.sv_answered = NULL;
	return NULL;
}

static void
serve_read(struct bufferevent *bev, void *arg)
{
	struct evbuffer	*in = bufferevent_get_input(bev);
	const char	*why = NULL;
	char		*line;
	size_t		 len;

	(void)arg;
	while (why == NULL && (line = evbuffer_readln(in, &len,
	    EVBUFFER_EOL_LF)) != NULL) {
		why = serve_line(line, len);
		free(line);
	}
	if (why == NULL && evbuffer_get_length(in) > REPLY_LEN)
		why = "a line is too long";
	if (why != NULL)
		serve_close(why);
}

static void
serve_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev, (void)what, (void)arg;
	serve_close("the connection has ended");
}

/* ---- how a server comes and goes ---- */

/* Whether or not the line arrives, the end of file does. */
static void
serve_refuse(int fd, const char *why)
{
	char	 line[256];
	int	 len;

	len = snprintf(line, sizeof(line), "{\"error\":{\"code\":\""
	    CODE_TAKEN_OVER "\",\"message\":\"%s\"}}\n", why);
	if (write(fd, line, (size_t)len) == -1)
		log_debug("%s: %s", __func__, strerror(errno));
}

/* A line that was sent in part must not get another one in its middle. */
static void
serve_take_over(void)
{
	if (server.sv_bev == NULL)
		return;
	if (evbuffer_get_length(bufferevent_get_output(server.sv_bev)) == 0)
		serve_refuse(bufferevent_getfd(server.sv_bev),
		    "another client serves questions now");
	serve_close("another client does");
}

static void
serve_open(int fd)
{
	if (evutil_make_socket_nonblocking(fd) == -1 ||
	    (server.sv_bev = bufferevent_socket_new(child_base, fd,
	    BEV_OPT_CLOSE_ON_FREE)) == NULL)
		fatal("%s", __func__);
	bufferevent_setcb(server.sv_bev, serve_read, serve_more, serve_event,
	    NULL);
	bufferevent_setwatermark(server.sv_bev, EV_READ, 0, REPLY_LEN + 1);
	bufferevent_setwatermark(server.sv_bev, EV_WRITE, OUTPUT_MAX / 2, 0);
	if (bufferevent_enable(server.sv_bev, EV_READ | EV_WRITE) == -1)
		fatalx("%s: bufferevent_enable", __func__);
	log_info("questions are served by a control client");
	serve_more(server.sv_bev, NULL);
	questions_served();
}

int
deciderd_parent_serve(struct ipc *ip, const union msg *m)
{
	int	 fd = ipc_take_fd(ip);

	if (fd == -1) {
		log_warnx("who serves questions is lost: no free descriptor");
		return 0;
	}
	if (m->serve.term < server.sv_term) {
		serve_refuse(fd, "a client with a higher term has served");
		close(fd);
		return 0;
	}
	server.sv_term = m->serve.term;
	serve_take_over();
	serve_open(fd);
	return 0;
}

const struct asker serve_asker = {
	.as_begin = serve_begin,
	.as_forget = serve_forget,
};
