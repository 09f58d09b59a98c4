/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: calls to API servers, whose every answer is a stranger's.
 *
 *	begin -> its turn -> credential -> sent -> answered
 *	            ^                        |
 *	            `------ a rest <---------'  429; 5xx and loss, if repeating
 *	                                        the call does no harm
 *
 * Rests have jitter: clients that a server has lost together do not return
 * together.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "api.h"
#include "api_meter.h"
#include "child.h"
#include "clock.h"
#include "log.h"

#define ANSWER_MAX	(8 * 1024 * 1024)
#define ATTEMPTS_MAX	6
#define ATTEMPT_MS	10000	/* a mute connection is given up then */
#define REST_FIRST_MS	250
#define REST_MAX_MS	8000
#define RETRY_AFTER_MAX_S 60

struct api_call {
	struct meter_entry	 ac_entry;	/* its turn */
	struct cluster		*ac_cluster;
	struct meter		*ac_meter;
	struct https_call	*ac_https;
	struct event		 ac_timer;
	struct api_request	 ac_request;
	char			*ac_path;
	char			*ac_body;
	char			*ac_line;	/* the credential: wiped */
	char			 ac_type[64];
	const char		*ac_headers[4];
	unsigned int		 ac_attempts;
	int			 ac_waits;	/* for a credential */
	int			 ac_resting;
	int			 ac_refused;	/* once already, with 401 */
	uint64_t		 ac_until_ms;
	api_done		*ac_done;
	void			*ac_arg;
};

static void	 call_authorize(struct api_call *);
static void	 call_done(void *, const struct https_answer *);

/* ---- the end of a call ---- */

static void
call_hush(struct api_call *ac)
{
	if (ac->ac_line != NULL)
		freezero(ac->ac_line, strlen(ac->ac_line));
	ac->ac_line = NULL;
}

static void	call_authorized(void *, const char *);

void
api_cancel(struct api_call *ac)
{
	if (ac == NULL)
		return;
	meter_leave(ac->ac_meter, &ac->ac_entry);
	if (ac->ac_waits)
		cluster_wait_cancel(ac->ac_cluster, call_authorized, ac);
	https_cancel(ac->ac_https);
	event_del(&ac->ac_timer);
	call_hush(ac);
	free(ac->ac_path);
	free(ac->ac_body);
	cluster_unref(ac->ac_cluster);
	free(ac);
}

/* Who began the call may forget it, and must not cancel it, from now on. */
static void
call_end(struct api_call *ac, const struct api_answer *aa)
{
	ac->ac_done(ac->ac_arg, aa);
	api_cancel(ac);
}

static void
call_fail(struct api_call *ac, enum api_result result, const char *why)
{
	struct api_answer	 aa = {
		.aa_result = result,
		.aa_reason = "",
		.aa_why = why,
	};

	call_end(ac, &aa);
}

/* ---- attempts ---- */

static void
timer_set(struct api_call *ac, uint64_t ms)
{
	struct timeval	 tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)
	};

	if (event_add(&ac->ac_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static uint64_t
time_left(const struct api_call *ac)
{
	uint64_t	 now = clock_ms();

	return now < ac->ac_until_ms ? ac->ac_until_ms - now : 0;
}

/* Wait for a turn; the timer is for the whole time that the call has. */
static void
call_queue(struct api_call *ac)
{
	ac->ac_resting = 0;
	if (ac->ac_until_ms != 0)
		timer_set(ac, time_left(ac));
	meter_enter(ac->ac_meter, &ac->ac_entry, ac->ac_request.ar_urgent);
}

static void
call_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct api_call	*ac = arg;

	(void)fd, (void)what;
	if (ac->ac_resting && time_left(ac) > 0)
		call_queue(ac);
	else if (ac->ac_waits)
		call_fail(ac, API_LATE, "no credential came in time");
	else
		call_fail(ac, API_LATE, "the API server was not asked in time");
}

/* 1 if the call is to be made again, after a rest that the time permits. */
static int
call_again(struct api_call *ac, const struct https_answer *ha)
{
	uint64_t	 ms = REST_FIRST_MS, wait;

	if (ac->ac_attempts >= ATTEMPTS_MAX || ac->ac_request.ar_data != NULL)
		return 0;
	ms <<= ac->ac_attempts - 1;
	if (ms > REST_MAX_MS)
		ms = REST_MAX_MS;
	ms = ms / 2 + arc4random_uniform((uint32_t)(ms / 2) + 1);
	if (ha->ha_retry_after_s > 0) {
		wait = ha->ha_retry_after_s < RETRY_AFTER_MAX_S ?
		    (uint64_t)ha->ha_retry_after_s : RETRY_AFTER_MAX_S;
		ms += wait * 1000;
	}
	if (ms >= time_left(ac))
		return 0;
	ac->ac_resting = 1;
	timer_set(ac, ms);
	return 1;
}

/*
 * A second POST might make a second thing.  What makes something by a name of
 * its own looks for it instead.
 */
static int
repeatable(const struct api_call *ac)
{
	return strcmp(ac->ac_request.ar_method, "POST") != 0;
}

static int
call_retries(struct api_call *ac, const struct https_answer *ha)
{
	switch (ha->ha_result) {
	case HTTPS_ANSWERED:
		/* What is too much for a server it has not begun to do. */
		if (ha->ha_status == 429 || (ha->ha_status >= 500 &&
		    ha->ha_status != 501 && (repeatable(ac) ||
		    ha->ha_retry_after_s > 0)))
			return call_again(ac, ha);
		return 0;
	case HTTPS_FAILED:
	case HTTPS_LATE:
		return repeatable(ac) && call_again(ac, ha);
	case HTTPS_HUGE:
		break;
	}
	return 0;
}

/* ---- what comes back ---- */

static void
call_refused(struct api_call *ac, const struct https_answer *ha, cJSON *json)
{
	char			 why[API_WHY_LEN];
	struct api_answer	 aa = {
		.aa_result = API_REFUSED,
		.aa_status = ha->ha_status,
		.aa_json = json,
		.aa_reason = kj_string(json, "reason"),
		.aa_why = why,
	};

	api_explain(&ac->ac_request, ha, json, why, sizeof(why));
	call_end(ac, &aa);
}

static void
call_answered(struct api_call *ac, const struct https_answer *ha)
{
	struct api_answer	 aa = {
		.aa_result = API_OK,
		.aa_status = ha->ha_status,
		.aa_reason = "",
		.aa_why = "",
	};
	cJSON			*json = NULL;

	if (ha->ha_body_len > 0)
		json = kj_parse(ha->ha_body, ha->ha_body_len);
	if (ha->ha_status < 200 || ha->ha_status > 299)
		call_refused(ac, ha, json);
	else if (json == NULL && ac->ac_request.ar_data == NULL)
		call_fail(ac, API_BAD, "the API server sent no JSON object");
	else {
		aa.aa_json = json;
		call_end(ac, &aa);
	}
	cJSON_Delete(json);
}

static void
call_done(void *arg, const struct https_answer *ha)
{
	struct api_call	*ac = arg;
	char		 why[API_WHY_LEN];

	ac->ac_https = NULL;
	call_hush(ac);
	if (ha->ha_result == HTTPS_ANSWERED && ha->ha_status != 0)
		meter_clock(ac->ac_meter, ha->ha_date_s);
	if (ha->ha_result == HTTPS_ANSWERED && ha->ha_status == 401 &&
	    !ac->ac_refused) {
		ac->ac_refused = 1;
		cluster_refused(ac->ac_cluster);
		call_queue(ac);
		return;
	}
	if (call_retries(ac, ha))
		return;
	switch (ha->ha_result) {
	case HTTPS_ANSWERED:
		call_answered(ac, ha);
		break;
	case HTTPS_HUGE:
		call_fail(ac, API_BAD, "the API server sent too much");
		break;
	case HTTPS_LATE:
		call_fail(ac, API_LATE, "the API server is silent");
		break;
	case HTTPS_FAILED:
		kj_tame(ha->ha_why, strlen(ha->ha_why), why, sizeof(why));
		call_fail(ac, API_LOST, why);
		break;
	}
}

/* ---- what goes out ---- */

static void
call_headers(struct api_call *ac, const char *line)
{
	size_t	 n = 0;

	if (line[0] != '\0') {
		if ((ac->ac_line = strdup(line)) == NULL)
			fatal("%s", __func__);
		ac->ac_headers[n++] = ac->ac_line;
	}
	ac->ac_headers[n++] = ac->ac_request.ar_text ? "Accept: */*" :
	    "Accept: application/json";
	if (ac->ac_request.ar_body != NULL)
		ac->ac_headers[n++] = ac->ac_type;
	ac->ac_headers[n] = NULL;
}

static void
call_send(struct api_call *ac, const char *line)
{
	const struct api_request	*ar = &ac->ac_request;
	struct https_request		 hr = {
		.hr_method = ar->ar_method,
		.hr_path = ar->ar_path,
		.hr_headers = ac->ac_headers,
		.hr_body = ar->ar_body,
		.hr_body_len = ar->ar_body != NULL ? strlen(ar->ar_body) : 0,
		.hr_answer_max = ANSWER_MAX,
		.hr_timeout_ms = time_left(ac),
		.hr_idle_ms = ar->ar_idle_ms,
		.hr_data = ar->ar_data,
		.hr_arg = ar->ar_data_arg,
	};

	event_del(&ac->ac_timer);
	call_headers(ac, line);
	ac->ac_attempts++;
	if (ar->ar_data != NULL)
		hr.hr_timeout_ms = HTTPS_NO_LIMIT;
	else if (repeatable(ac) && hr.hr_timeout_ms > ATTEMPT_MS)
		hr.hr_timeout_ms = ATTEMPT_MS;
	ac->ac_https = https_begin(cluster_server(ac->ac_cluster), &hr,
	    call_done, ac);
}

static void
call_authorized(void *arg, const char *why)
{
	struct api_call	*ac = arg;
	char		 text[API_WHY_LEN];

	ac->ac_waits = 0;
	if (why == NULL) {
		call_authorize(ac);
		return;
	}
	snprintf(text, sizeof(text), "no credential: %s", why);
	call_fail(ac, API_LOST, text);
}

static void
call_authorize(struct api_call *ac)
{
	const char	*line = cluster_authorization(ac->ac_cluster);

	if (line != NULL) {
		call_send(ac, line);
		return;
	}
	ac->ac_waits = 1;
	cluster_wait(ac->ac_cluster, call_authorized, ac);
}

/* The time begins with the first turn: there may be thousands of calls. */
static void
call_turn(void *arg)
{
	struct api_call	*ac = arg;

	if (ac->ac_until_ms == 0) {
		ac->ac_until_ms = clock_ms() +
		    (ac->ac_request.ar_timeout_ms != 0 ?
		    ac->ac_request.ar_timeout_ms : API_TIMEOUT_MS);
		timer_set(ac, time_left(ac));
	}
	call_authorize(ac);
}

/* ---- how a call begins ---- */

static char *
copy(const char *text)
{
	char	*p;

	if (text == NULL)
		return NULL;
	if ((p = strdup(text)) == NULL)
		fatal("%s", __func__);
	return p;
}

struct api_call *
api_begin(struct cluster *cl, const struct api_request *ar, api_done *done,
    void *arg)
{
	struct api_call	*ac;

	if ((ac = calloc(1, sizeof(*ac))) == NULL)
		fatal("%s", __func__);
	ac->ac_cluster = cluster_ref(cl);
	ac->ac_meter = meter_find(cluster_name(cl));
	ac->ac_request = *ar;
	if (asprintf(&ac->ac_path, "%s%s", cluster_path(cl), ar->ar_path) ==
	    -1)
		fatal("%s", __func__);
	ac->ac_request.ar_path = ac->ac_path;
	ac->ac_request.ar_body = ac->ac_body = copy(ar->ar_body);
	snprintf(ac->ac_type, sizeof(ac->ac_type), "Content-Type: %s",
	    ar->ar_type != NULL ? ar->ar_type : "application/json");
	ac->ac_entry.me_turn = call_turn;
	ac->ac_entry.me_arg = ac;
	ac->ac_done = done;
	ac->ac_arg = arg;
	event_assign(&ac->ac_timer, child_base, -1, 0, call_on_timer, ac);
	call_queue(ac);
	return ac;
}

int64_t
api_now(struct cluster *cl)
{
	return meter_now(meter_find(cluster_name(cl)));
}

const char *
api_version(struct cluster *cl)
{
	return meter_find(cluster_name(cl))->mt_version;
}

void
api_version_set(struct cluster *cl, const char *version)
{
	struct meter	*mt = meter_find(cluster_name(cl));

	kj_tame(version, strlen(version), mt->mt_version,
	    sizeof(mt->mt_version));
}

/* A reload may have given the cluster other credentials. */
void
api_renew(struct cluster **cl)
{
	struct cluster	*now = cluster_find(cluster_name(*cl));

	if (now == NULL || now == *cl)
		return;
	cluster_ref(now);
	cluster_unref(*cl);
	*cl = now;
}
