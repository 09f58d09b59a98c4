/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the log of a container, for a client's socket.  What the
 * client has not taken yet is kept, up to a bound: the API server cannot be
 * held up, and a client that follows a log and does not read is given up.  The
 * client has other descriptors of what it has passed, and whether that blocks
 * is a flag of them all: so each send says for itself that it does not.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "child.h"
#include "job.h"
#include "log.h"

#define LOG_LEN		(1024 * 1024)
#define CLIENT_S	60	/* for a client that does not read */

static void
logs_end(struct pods_job *pj)
{
	if (pj->pj_log_slow)
		job_over(pj, CODE_TOO_LONG,
		    "the log came faster than it was read");
	else
		job_over(pj, NULL, "");
}

static void
logs_arm(struct pods_job *pj)
{
	struct timeval	 tv = { CLIENT_S, 0 };

	if (event_add(&pj->pj_event, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static int
logs_data(void *arg, const char *data, size_t len)
{
	struct pods_job	*pj = arg;
	size_t		 left = pj->pj_log_len - pj->pj_log_done;

	if (len > LOG_LEN - left) {
		pj->pj_log_slow = 1;
		return -1;
	}
	if (pj->pj_log == NULL && (pj->pj_log = malloc(LOG_LEN)) == NULL)
		fatal("%s", __func__);
	memmove(pj->pj_log, pj->pj_log + pj->pj_log_done, left);
	memcpy(pj->pj_log + left, data, len);
	pj->pj_log_len = left + len;
	pj->pj_log_done = 0;
	logs_arm(pj);
	return 0;
}

static void
logs_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct pods_job	*pj = arg;
	ssize_t		 n = 0;

	if (pj->pj_log_done < pj->pj_log_len && !(what & EV_TIMEOUT))
		n = send(fd, pj->pj_log + pj->pj_log_done,
		    pj->pj_log_len - pj->pj_log_done,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (what & EV_TIMEOUT || (n == -1 && errno != EAGAIN &&
	    errno != EINTR)) {
		job_over(pj, NULL, "");
		return;
	}
	if (n > 0)
		pj->pj_log_done += (size_t)n;
	if (pj->pj_log_done < pj->pj_log_len)
		logs_arm(pj);
	else if (pj->pj_call == NULL)
		logs_end(pj);
}

/* A client sends nothing here: whatever there is to read is its end. */
static void
logs_on_gone(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	job_over(arg, NULL, "");
}

static void
logs_done(void *arg, const struct api_answer *aa)
{
	struct pods_job	*pj = arg;

	pj->pj_call = NULL;
	if (aa->aa_result != API_OK)
		job_failed(pj, aa);
	else
		event_active(&pj->pj_event, EV_WRITE, 0);
}

/* Lines that were there before, only so many as we keep. */
static void
logs_path(const struct pods_job *pj, const struct pods_ask *pa, char *path,
    size_t size)
{
	char	 tail[300], name[200], lines[32] = "";

	if (!names_escape(pa->pa_container[0] != '\0' ? pa->pa_container :
	    WORKSPACE, name, sizeof(name)))
		strlcpy(name, WORKSPACE, sizeof(name));
	if (pa->pa_tail != 0)
		snprintf(lines, sizeof(lines), "&tailLines=%u", pa->pa_tail);
	if (pa->pa_follow)
		snprintf(tail, sizeof(tail), "/log?container=%s&follow=true%s",
		    name, lines);
	else
		snprintf(tail, sizeof(tail),
		    "/log?container=%s&limitBytes=%d%s", name, LOG_LEN, lines);
	kpod_path(pj->pj_namespace, pj->pj_name, tail, path, size);
}

struct pods_job *
pods_logs(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg)
{
	char			 path[API_PATH_LEN];
	struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = path,
		.ar_verb = "get",
		.ar_resource = "pods/log",
		.ar_data = logs_data,
		.ar_idle_ms = pa->pa_follow ? 0 : API_TIMEOUT_MS,
		.ar_text = 1,
	};
	struct pods_job		*pj;
	int			 go;

	pj = job_new(pa, item, done, arg, &go);
	pj->pj_fd = pa->pa_fd;
	if (!go)
		return pj;
	event_del(&pj->pj_event);
	event_assign(&pj->pj_event, child_base, pj->pj_fd, EV_WRITE,
	    logs_on_write, pj);
	event_assign(&pj->pj_gone, child_base, pj->pj_fd, EV_READ,
	    logs_on_gone, pj);
	if (event_add(&pj->pj_gone, NULL) == -1)
		fatalx("%s: event_add", __func__);
	logs_path(pj, pa, path, sizeof(path));
	ar.ar_data_arg = pj;
	pj->pj_call = api_begin(pj->pj_cluster, &ar, logs_done, pj);
	return pj;
}
