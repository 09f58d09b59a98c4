/* SPDX-License-Identifier: ISC */

/*
 * podd: a gate's questions on their way to policyd, and the answers back.  How
 * many of them wait at a time is bounded; the time that each has is the
 * gate's own affair, as is what it makes of an answer.
 */

#include <string.h>

#include "jsonput.h"
#include "jsonr.h"
#include "podd.h"

#define ANSWER_LINE	16384

static struct jsonw	 answer;

/* Its place, or the number of them if it is not asked. */
static unsigned int
place_of(const struct gate *ga, uint64_t id)
{
	unsigned int	 i;

	for (i = 0; i < ga->ga_nquestions; i++)
		if (ga->ga_questions[i] == id)
			break;
	return i;
}

static void
forget(struct gate *ga, unsigned int place)
{
	ga->ga_questions[place] = ga->ga_questions[--ga->ga_nquestions];
}

static void
drop(const struct gate *ga, uint64_t id)
{
	ipc_send(podd_policyd, -1, POD_QUESTION_DROP, pod_question_drop,
	    .channel = ga->ga_channel, .id = id, .session = ga->ga_session);
}

void
gate_drop_questions(struct gate *ga)
{
	while (ga->ga_nquestions > 0)
		drop(ga, ga->ga_questions[--ga->ga_nquestions]);
}

/* An answer may have crossed the word that nobody waits for it. */
static void
take_drop(struct gate *ga, uint64_t id)
{
	unsigned int	 place = place_of(ga, id);

	if (place == ga->ga_nquestions)
		return;
	forget(ga, place);
	drop(ga, id);
}

static int
take_question_end(struct gate *ga, struct msg_pod_question *mq)
{
	if (place_of(ga, mq->id) < ga->ga_nquestions)
		return gate_fail_end(ga, PODD_HOSTILE,
		    "a question under a number that it has used");
	if (ga->ga_nquestions == GATE_QUESTIONS)
		return gate_fail_end(ga, PODD_HOSTILE,
		    "more than %d questions at a time", GATE_QUESTIONS);
	ga->ga_questions[ga->ga_nquestions++] = mq->id;
	mq->channel = ga->ga_channel;
	mq->session = ga->ga_session;
	ipc_compose(podd_policyd, MSG_POD_QUESTION, -1,
	    &(const union msg){ .pod_question = *mq });
	return 0;
}

int
gate_question(struct gate *ga, const char *line, size_t len)
{
	struct said_question	 sq;
	const char		*why;
	int			 rv = 0;

	if (said_question(line, len, &sq, &why) == -1)
		return gate_nonsense_end(ga, line, len, why);
	if (sq.sq_drop)
		take_drop(ga, sq.sq_ask.id);
	else
		rv = take_question_end(ga, &sq.sq_ask);
	jsonr_free(sq.sq_json);
	return rv;
}

/* -1: policyd found the question to be none that an honest gate asks. */
int
gate_answer(struct gate *ga, const struct msg_pod_question_answer *ma)
{
	unsigned int	 place = place_of(ga, ma->id);
	const char	*text;
	size_t		 len;

	if (place == ga->ga_nquestions)
		return 0;
	forget(ga, place);
	if (ma->hostile)
		return gate_fail_end(ga, PODD_HOSTILE, "%s", ma->reason);
	if (answer.jw_max == 0)
		jsonw_init(&answer, ANSWER_LINE);
	jsonw_reset(&answer);
	jsonw_object(&answer);
	put_uint(&answer, "id", ma->id);
	if (decision_name(ma->result) != NULL) {
		put_str(&answer, "decision", decision_name(ma->result));
		put_str(&answer, "reason", ma->reason);
		if (!ma->keep)
			put_bool(&answer, "keep", 0);
	} else
		put_str(&answer, "error", *ma->reason != '\0' ? ma->reason :
		    "it was not answered");
	jsonw_end(&answer);
	if ((text = jsonw_finish(&answer, &len)) == NULL)
		fatalx("%s: %s", __func__, jsonw_error(&answer));
	gate_send(ga, 'c', text, len);
	return 0;
}
