/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what becomes of pods, as API servers tell it.
 *
 *	list, page by page -> watch from there -> its end: watch from the last
 *	   ^                       |                       version seen
 *	   `--- 410, nonsense -----'
 *
 * Nothing is asked twice by the clock.  A server may end a watch at any time,
 * lose it, send a line that does not end or what is no JSON: then there is a
 * rest with jitter, and another attempt.
 */

#include <sys/queue.h>
#include <sys/tree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "api.h"
#include "child.h"
#include "clock.h"
#include "log.h"
#include "names.h"
#include "watch.h"

#define LINE_MAX_LEN	(4 * 1024 * 1024)
#define VERSION_LEN	63
#define CONTINUE_LEN	4096
#define REST_FIRST_MS	500
#define REST_MAX_MS	15000
#define LINGER_MS	5000	/* for the next session, nobody being here */
#define SHORT_MS	1000	/* a watch that ends before has not worked */
#define WATCH_S		300	/* and up to a quarter more */
#define IDLE_MS		150000	/* bookmarks come once a minute */

struct watcher {
	RB_ENTRY(watcher)	 wr_entry;
	struct watch		*wr_watch;
	char			 wr_name[POD_NAME_LEN + 1];
	unsigned int		 wr_listed;	/* in which list it was seen */
	watch_heard		*wr_heard;
	void			*wr_arg;
};

RB_HEAD(watchers, watcher);

struct watch {
	LIST_ENTRY(watch)	 wt_entry;
	struct cluster		*wt_cluster;
	char			*wt_namespace;
	struct watchers		 wt_watchers;
	struct api_call		*wt_call;
	struct event		 wt_timer;
	char			 wt_version[VERSION_LEN + 1];	/* or "" */
	char			*wt_continue;	/* of a list, or NULL */
	unsigned int		 wt_list;	/* counts lists */
	unsigned int		 wt_failures;
	uint64_t		 wt_began_ms;
	char			*wt_line;
	size_t			 wt_line_len;
	size_t			 wt_line_size;
	const char		*wt_bad;	/* of a stream that we ended */
};

static LIST_HEAD(, watch)	 watches = LIST_HEAD_INITIALIZER(watches);

static void	 watch_go(struct watch *);

static int
watcher_compare(const struct watcher *a, const struct watcher *b)
{
	return strcmp(a->wr_name, b->wr_name);
}

RB_PROTOTYPE(watchers, watcher, wr_entry, watcher_compare);
RB_GENERATE(watchers, watcher, wr_entry, watcher_compare);

/* ---- rests ---- */

static void
watch_arm(struct watch *wt, uint64_t ms)
{
	struct timeval	 tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)
	};

	if (event_add(&wt->wt_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
watch_rest(struct watch *wt, const char *why)
{
	uint64_t	 ms = REST_FIRST_MS;

	ms <<= wt->wt_failures < 5 ? wt->wt_failures : 5;
	if (ms > REST_MAX_MS)
		ms = REST_MAX_MS;
	if (wt->wt_failures++ == 1)
		log_warnx("cluster %s: pods in %s: %s",
		    cluster_name(wt->wt_cluster), wt->wt_namespace, why);
	watch_arm(wt, ms / 2 + arc4random_uniform((uint32_t)(ms / 2) + 1));
}

static void
watch_forget_list(struct watch *wt)
{
	wt->wt_version[0] = '\0';
	free(wt->wt_continue);
	wt->wt_continue = NULL;
}

/* ---- telling ---- */

static struct watcher *
watcher_find(struct watch *wt, const char *name)
{
	struct watcher	 key;

	if (strlcpy(key.wr_name, name, sizeof(key.wr_name)) >=
	    sizeof(key.wr_name))
		return NULL;
	return RB_FIND(watchers, &wt->wt_watchers, &key);
}

static void
watch_tell(struct watch *wt, enum watch_kind kind, const cJSON *pod)
{
	struct watcher	*wr;

	if ((wr = watcher_find(wt, kj_string(pod, "metadata/name"))) == NULL)
		return;
	wr->wr_listed = wt->wt_list;
	wr->wr_heard(wr->wr_arg, kind, pod, "");
}

/* A watcher that is told may end itself, but no other. */
static void
watch_tell_all(struct watch *wt, const char *why)
{
	struct watcher	*wr, *next;

	RB_FOREACH_SAFE(wr, watchers, &wt->wt_watchers, next)
		wr->wr_heard(wr->wr_arg, WATCH_REFUSED, NULL, why);
}

/* Those that were not in the list are gone, unseen. */
static void
watch_tell_missing(struct watch *wt)
{
	struct watcher	*wr, *next;

	RB_FOREACH_SAFE(wr, watchers, &wt->wt_watchers, next)
		if (wr->wr_listed != wt->wt_list)
			wr->wr_heard(wr->wr_arg, WATCH_GONE, NULL, "");
}

/* ---- the list ---- */

static void
watch_page(struct watch *wt, const cJSON *list)
{
	const cJSON	*items = kj_at(list, "items"), *pod;
	const char	*more = kj_string(list, "metadata/continue");

	cJSON_ArrayForEach(pod, items) {
		watch_tell(wt, WATCH_IS, pod);
	}
	free(wt->wt_continue);
	wt->wt_continue = NULL;
	if (more[0] != '\0' && strlen(more) <= CONTINUE_LEN) {
		if ((wt->wt_continue = strdup(more)) == NULL)
			fatal("%s", __func__);
		return;
	}
	strlcpy(wt->wt_version, kj_string(list, "metadata/resourceVersion"),
	    sizeof(wt->wt_version));
	watch_tell_missing(wt);
}

static void
watch_listed(void *arg, const struct api_answer *aa)
{
	struct watch	*wt = arg;

	wt->wt_call = NULL;
	if (aa->aa_result == API_OK && cJSON_IsArray(kj_at(aa->aa_json,
	    "items"))) {
		wt->wt_failures = 0;
		watch_page(wt, aa->aa_json);
		if (wt->wt_continue != NULL || wt->wt_version[0] != '\0') {
			watch_arm(wt, 0);
			return;
		}
		watch_rest(wt, "a list without a version");
		return;
	}
	/* Also 410: what the next page belongs to has expired. */
	watch_forget_list(wt);
	if (aa->aa_status == 401 || aa->aa_status == 403)
		watch_tell_all(wt, aa->aa_why);
	watch_rest(wt, aa->aa_result == API_OK ? "no list" : aa->aa_why);
}

/* ---- the watch ---- */

static int
watch_line(struct watch *wt, const char *text, size_t len)
{
	const char	*type, *version;
	const cJSON	*pod;
	cJSON		*json;
	int		 rv = 0;

	if ((json = kj_parse(text, len)) == NULL) {
		wt->wt_bad = "a line that is no JSON object";
		return -1;
	}
	type = kj_string(json, "type");
	pod = kj_at(json, "object");
	version = kj_string(pod, "metadata/resourceVersion");
	if (strcmp(type, "ERROR") == 0) {
		wt->wt_bad = kj_number(pod, "code") == 410 ?
		    "the version has expired" : "the server gave an error";
		rv = -1;
	} else if (version[0] == '\0') {
		wt->wt_bad = "an object without a version";
		rv = -1;
	} else {
		wt->wt_failures = 0;
		strlcpy(wt->wt_version, version, sizeof(wt->wt_version));
		if (strcmp(type, "DELETED") == 0)
			watch_tell(wt, WATCH_GONE, pod);
		else if (strcmp(type, "BOOKMARK") != 0)
			watch_tell(wt, WATCH_IS, pod);
	}
	cJSON_Delete(json);
	return rv;
}

static void
line_add(struct watch *wt, const char *data, size_t len)
{
	char	*p;

	if (wt->wt_line_len + len > wt->wt_line_size) {
		wt->wt_line_size = wt->wt_line_len + len + 4096;
		if ((p = realloc(wt->wt_line, wt->wt_line_size)) == NULL)
			fatal("%s", __func__);
		wt->wt_line = p;
	}
	memcpy(wt->wt_line + wt->wt_line_len, data, len);
	wt->wt_line_len += len;
}

static void
line_clear(struct watch *wt)
{
	free(wt->wt_line);
	wt->wt_line = NULL;
	wt->wt_line_len = wt->wt_line_size = 0;
}

static int
watch_data(void *arg, const char *data, size_t len)
{
	struct watch	*wt = arg;
	const char	*end;
	size_t		 n;
	int		 rv;

	while (len > 0) {
		end = memchr(data, '\n', len);
		n = end != NULL ? (size_t)(end - data) : len;
		if (n > LINE_MAX_LEN - wt->wt_line_len) {
			wt->wt_bad = "a line that does not end";
			return -1;
		}
		line_add(wt, data, n);
		if (end == NULL)
			return 0;
		rv = wt->wt_line_len == 0 ? 0 :
		    watch_line(wt, wt->wt_line, wt->wt_line_len);
		line_clear(wt);
		if (rv == -1)
			return -1;
		data += n + 1;
		len -= n + 1;
	}
	return 0;
}

static void
watch_over(void *arg, const struct api_answer *aa)
{
	struct watch	*wt = arg;

	wt->wt_call = NULL;
	line_clear(wt);
	if (wt->wt_bad != NULL || aa->aa_status == 410) {
		/* What is missing now only a list can tell. */
		watch_forget_list(wt);
		watch_rest(wt, wt->wt_bad != NULL ? wt->wt_bad : aa->aa_why);
	} else if (aa->aa_result == API_OK &&
	    clock_ms() - wt->wt_began_ms >= SHORT_MS)
		watch_arm(wt, 0);
	else {
		if (aa->aa_status == 401 || aa->aa_status == 403)
			watch_tell_all(wt, aa->aa_why);
		watch_rest(wt, aa->aa_result == API_OK ?
		    "a watch that ended at once" : aa->aa_why);
	}
}

/* ---- what is asked ---- */

static void
ask_list(struct watch *wt)
{
	char			 path[API_PATH_LEN + 3 * CONTINUE_LEN];
	char			 more[3 * CONTINUE_LEN + 4] = "";
	struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = path,
		.ar_verb = "list",
		.ar_resource = "pods",
	};

	if (wt->wt_continue == NULL)
		wt->wt_list++;
	else
		names_escape(wt->wt_continue, more, sizeof(more));
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods?"
	    "labelSelector=%s&limit=%d%s%s", wt->wt_namespace,
	    names_selector(), API_PAGE, more[0] != '\0' ? "&continue=" : "",
	    more);
	wt->wt_call = api_begin(wt->wt_cluster, &ar, watch_listed, wt);
}

static void
ask_watch(struct watch *wt)
{
	char			 path[API_PATH_LEN];
	char			 version[3 * VERSION_LEN + 4];
	struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = path,
		.ar_verb = "watch",
		.ar_resource = "pods",
		.ar_data = watch_data,
		.ar_data_arg = wt,
		.ar_idle_ms = IDLE_MS,
	};

	names_escape(wt->wt_version, version, sizeof(version));
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods?watch=1&"
	    "allowWatchBookmarks=true&labelSelector=%s&resourceVersion=%s&"
	    "timeoutSeconds=%u", wt->wt_namespace, names_selector(), version,
	    WATCH_S + arc4random_uniform(WATCH_S / 4));
	wt->wt_bad = NULL;
	wt->wt_began_ms = clock_ms();
	wt->wt_call = api_begin(wt->wt_cluster, &ar, watch_over, wt);
}

static void
watch_free(struct watch *wt)
{
	LIST_REMOVE(wt, wt_entry);
	api_cancel(wt->wt_call);
	event_del(&wt->wt_timer);
	watch_forget_list(wt);
	line_clear(wt);
	cluster_unref(wt->wt_cluster);
	free(wt->wt_namespace);
	free(wt);
}

static void
watch_go(struct watch *wt)
{
	api_renew(&wt->wt_cluster);
	if (wt->wt_version[0] != '\0')
		ask_watch(wt);
	else
		ask_list(wt);
}

static void
watch_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct watch	*wt = arg;

	(void)fd, (void)what;
	if (RB_EMPTY(&wt->wt_watchers))
		watch_free(wt);
	else if (wt->wt_call == NULL)
		watch_go(wt);
}

/* ---- who watches ---- */

static struct watch *
watch_find(struct cluster *cl, const char *namespace)
{
	struct watch	*wt;

	LIST_FOREACH(wt, &watches, wt_entry)
		if (strcmp(cluster_name(wt->wt_cluster),
		    cluster_name(cl)) == 0 &&
		    strcmp(wt->wt_namespace, namespace) == 0)
			return wt;
	if ((wt = calloc(1, sizeof(*wt))) == NULL ||
	    (wt->wt_namespace = strdup(namespace)) == NULL)
		fatal("%s", __func__);
	wt->wt_cluster = cluster_ref(cl);
	RB_INIT(&wt->wt_watchers);
	event_assign(&wt->wt_timer, child_base, -1, 0, watch_on_timer, wt);
	LIST_INSERT_HEAD(&watches, wt, wt_entry);
	watch_arm(wt, 0);
	return wt;
}

struct watcher *
watch_begin(struct cluster *cl, const char *namespace, const char *name,
    watch_heard *heard, void *arg)
{
	struct watcher	*wr;

	if ((wr = calloc(1, sizeof(*wr))) == NULL)
		fatal("%s", __func__);
	strlcpy(wr->wr_name, name, sizeof(wr->wr_name));
	wr->wr_watch = watch_find(cl, namespace);
	/* The list that is under way may be older than the caller's pod. */
	wr->wr_listed = wr->wr_watch->wt_list;
	wr->wr_heard = heard;
	wr->wr_arg = arg;
	if (RB_INSERT(watchers, &wr->wr_watch->wt_watchers, wr) != NULL)
		fatalx("%s: %s is watched", __func__, name);
	return wr;
}

/* The watch itself stays a moment, and may be in the middle of a line. */
void
watch_end(struct watcher *wr)
{
	struct watch	*wt;

	if (wr == NULL)
		return;
	wt = wr->wr_watch;
	RB_REMOVE(watchers, &wt->wt_watchers, wr);
	free(wr);
	if (RB_EMPTY(&wt->wt_watchers))
		watch_arm(wt, LINGER_MS);
}
