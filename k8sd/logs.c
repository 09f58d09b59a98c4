/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the log of a container, for a client's descriptor.  The
 * last of it, bounded, is kept until the API server is done, as the client may
 * be slow and the server cannot be held up.
 */

#include <errno.h>
#include <fcntl.h>
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

static int
logs_data(void *arg, const char *data, size_t len)
{
	struct pods_job	*pj = arg;
	char		*p;

	if (len > LOG_LEN - pj->pj_log_len)
		len = LOG_LEN - pj->pj_log_len;
	if (len == 0)
		return -1;
	if ((p = realloc(pj->pj_log, pj->pj_log_len + len)) == NULL)
		fatal("%s", __func__);
	memcpy(p + pj->pj_log_len, data, len);
	pj->pj_log = p;
	pj->pj_log_len += len;
	return 0;
}

static void
logs_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct pods_job	*pj = arg;
	struct timeval	 tv = { CLIENT_S, 0 };
	ssize_t		 n;

	if (what & EV_TIMEOUT || pj->pj_log_done == pj->pj_log_len) {
		job_over(pj, NULL, "");
		return;
	}
	n = write(fd, pj->pj_log + pj->pj_log_done,
	    pj->pj_log_len - pj->pj_log_done);
	if (n == -1 && errno != EAGAIN && errno != EINTR) {
		job_over(pj, NULL, "");
		return;
	}
	if (n > 0)
		pj->pj_log_done += (size_t)n;
	if (event_add(&pj->pj_event, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
logs_done(void *arg, const struct api_answer *aa)
{
	struct pods_job	*pj = arg;

	pj->pj_call = NULL;
	if (aa->aa_result != API_OK) {
		job_failed(pj, aa);
		return;
	}
	event_del(&pj->pj_event);
	event_assign(&pj->pj_event, child_base, pj->pj_fd, EV_WRITE,
	    logs_on_write, pj);
	event_active(&pj->pj_event, 0, 0);
}

struct pods_job *
pods_logs(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg)
{
	char			 path[API_PATH_LEN], tail[300], name[200];
	char			 lines[32] = "";
	struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = path,
		.ar_verb = "get",
		.ar_resource = "pods/log",
		.ar_data = logs_data,
		.ar_idle_ms = API_TIMEOUT_MS,
		.ar_text = 1,
	};
	struct pods_job		*pj;
	int			 go;

	pj = job_new(pa, item, done, arg, &go);
	pj->pj_fd = pa->pa_fd;
	if (!go)
		return pj;
	(void)fcntl(pj->pj_fd, F_SETFL,
	    fcntl(pj->pj_fd, F_GETFL) | O_NONBLOCK);
	if (!names_escape(pa->pa_container[0] != '\0' ? pa->pa_container :
	    WORKSPACE, name, sizeof(name)))
		strlcpy(name, WORKSPACE, sizeof(name));
	if (pa->pa_tail != 0)
		snprintf(lines, sizeof(lines), "&tailLines=%u", pa->pa_tail);
	snprintf(tail, sizeof(tail), "/log?container=%s&limitBytes=%d%s", name,
	    LOG_LEN, lines);
	kpod_path(pj->pj_namespace, pj->pj_name, tail, path, sizeof(path));
	ar.ar_data_arg = pj;
	pj->pj_call = api_begin(pj->pj_cluster, &ar, logs_done, pj);
	return pj;
}
