/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: the questions of policyd, each with its deadline.
 * policyd is believed about what to ask, not about how much of it: beyond a
 * bound the answer is an error at once, which denies.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "deciderd.h"

#define WARN_MS		10000	/* between logged failures of a decider */
#define TIMEOUT_MAX_MS	(24 * 3600 * 1000)

static int
question_cmp(const struct question *a, const struct question *b)
{
	return a->qu_id < b->qu_id ? -1 : a->qu_id > b->qu_id;
}

static RB_HEAD(question_tree, question)	 questions;
static unsigned int			 count;
static struct ipc			*policyd;

RB_PROTOTYPE(question_tree, question, qu_entry, question_cmp);
RB_GENERATE(question_tree, question, qu_entry, question_cmp);

void
questions_open(struct ipc *ip)
{
	policyd = ip;
}

/* Who is to answer has come: policyd need not think that all will fail. */
void
questions_served(void)
{
	if (policyd != NULL)
		ipc_send(policyd, -1, SERVED, empty);
}

static struct question *
question_find(uint32_t id)
{
	struct question	 key = { .qu_id = id };

	return RB_FIND(question_tree, &questions, &key);
}

/* The asker has a copy of the document, or has sent it. */
void
question_drop_document(struct question *qu)
{
	free(qu->qu_document.tx_data);
	qu->qu_document.tx_data = NULL;
}

static void
question_free(struct question *qu)
{
	if (qu->qu_asker != NULL)
		qu->qu_asker->as_forget(qu);
	RB_REMOVE(question_tree, &questions, qu);
	count--;
	event_del(&qu->qu_deadline);
	question_drop_document(qu);
	decider_unref(qu->qu_decider);
	free(qu);
}

/*
 * A failure denies somebody something.  The log tells the first and how many
 * have followed: an agent can make as many as it likes.
 */
static void
question_warn(struct decider *de, const char *reason)
{
	uint64_t	 now = clock_ms();

	if (de->de_warned_ms != 0 && now - de->de_warned_ms < WARN_MS) {
		de->de_unsaid++;
		log_debug("decider \"%s\": %s", de->de_name, reason);
		return;
	}
	if (de->de_unsaid > 0)
		log_warnx("decider \"%s\": %s, and %u failures before it",
		    de->de_name, reason, de->de_unsaid);
	else
		log_warnx("decider \"%s\": %s", de->de_name, reason);
	de->de_warned_ms = now;
	de->de_unsaid = 0;
}

static void
question_end(struct question *qu, enum answer_result result, bool keep,
    const char *reason)
{
	ipc_send(policyd, -1, ANSWER, answer, .id = qu->qu_id,
	    .result = result, .keep = keep, .reason = reason);
	if (result >= ANSWER_TIMEOUT)
		question_warn(qu->qu_decider, reason);
	question_free(qu);
}

/* Without an answer. */
void
question_finish(struct question *qu, enum answer_result result,
    const char *fmt, ...)
{
	char	 reason[REASON_LEN + 1];
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	question_end(qu, result, false, reason);
}

void
question_reply(struct question *qu, const struct reply *rp)
{
	question_end(qu, rp->rp_result, rp->rp_keep, rp->rp_reason);
}

void
question_late(struct question *qu)
{
	question_finish(qu, ANSWER_TIMEOUT, "no answer within %llu ms",
	    (unsigned long long)qu->qu_timeout_ms);
}

static void
question_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct question	*qu = arg;

	(void)fd, (void)what;
	if (qu->qu_asker->as_late != NULL)
		qu->qu_asker->as_late(qu);
	question_late(qu);
}

static const struct asker *
asker_of(const struct decider *de)
{
	switch (de->de_kind) {
	case DECIDER_AGENT:
	case DECIDER_WEBHOOK:
		return &http_asker;
	case DECIDER_EXEC:
		return de->de_options.do_persistent ? &stream_asker :
		    &program_asker;
	case DECIDER_SOCKET:
		return &stream_asker;
	case DECIDER_CONTROL:
		return &serve_asker;
	default:
		return NULL;
	}
}

static void
question_refuse(uint32_t id, const char *why)
{
	ipc_send(policyd, -1, ANSWER, answer, .id = id,
	    .result = ANSWER_ERROR, .reason = why);
}

static struct question *
question_new(const struct msg_question *mq, struct decider *de)
{
	struct question	*qu;
	struct timeval	 tv;

	if ((qu = calloc(1, sizeof(*qu))) == NULL ||
	    (qu->qu_document.tx_data = malloc(mq->document.len)) == NULL)
		fatal("%s", __func__);
	memcpy(qu->qu_document.tx_data, mq->document.data, mq->document.len);
	qu->qu_document.tx_len = mq->document.len;
	qu->qu_id = mq->id;
	qu->qu_timeout_ms = mq->timeout_ms;
	qu->qu_until_ms = clock_ms() + mq->timeout_ms;
	qu->qu_rule = mq->rule;
	qu->qu_decider = decider_ref(de);
	qu->qu_asker = asker_of(de);
	tv.tv_sec = mq->timeout_ms / 1000;
	tv.tv_usec = mq->timeout_ms % 1000 * 1000;
	event_assign(&qu->qu_deadline, child_base, -1, 0,
	    question_on_deadline, qu);
	if (!qu->qu_asker->as_keeps_time &&
	    event_add(&qu->qu_deadline, &tv) == -1)
		fatalx("%s: event_add", __func__);
	RB_INSERT(question_tree, &questions, qu);
	count++;
	return qu;
}

/* Programs are fed with lines: a line break would begin another question. */
static bool
is_one_line(const struct msg_bytes *mb)
{
	const unsigned char	*p = mb->data;
	size_t			 i;

	for (i = 0; i < mb->len; i++)
		if (p[i] < ' ')
			return false;
	return mb->len > 1 && p[0] == '{' && p[mb->len - 1] == '}';
}

int
deciderd_policyd_question(struct ipc *ip, const union msg *m)
{
	const struct msg_question	*mq = &m->question;
	struct decider			*de;
	struct question			*qu;

	if (question_find(mq->id) != NULL)
		return ipc_bad(ip, "question %u is being asked", mq->id);
	if (mq->timeout_ms == 0 || mq->timeout_ms > TIMEOUT_MAX_MS)
		return ipc_bad(ip, "timeout of %llu ms",
		    (unsigned long long)mq->timeout_ms);
	if (!is_one_line(&mq->document))
		return ipc_bad(ip, "the document is no object on one line");
	/* A reload may have removed the decider since policyd asked. */
	de = decider_find(mq->decider);
	if (de == NULL || asker_of(de) == NULL) {
		question_refuse(mq->id, "it is not in the configuration");
		return 0;
	}
	if (de->de_kind == DECIDER_CONTROL && mq->rule == RULE_NONE) {
		question_refuse(mq->id, "only rules ask it");
		return 0;
	}
	if (count >= QUESTIONS_MAX) {
		question_refuse(mq->id, "too many questions at a time");
		return 0;
	}
	qu = question_new(mq, de);
	qu->qu_asker->as_begin(qu);
	return 0;
}

/* policyd no longer waits; the answer may have crossed this message. */
int
deciderd_policyd_question_drop(struct ipc *ip, const union msg *m)
{
	struct question	*qu;

	(void)ip;
	if ((qu = question_find(m->cookie.cookie)) != NULL)
		question_free(qu);
	return 0;
}
