/* SPDX-License-Identifier: ISC */

/*
 * Drives k8sd's pods without a daemon: a JSON object on each line of standard
 * input says what to do, and what is told comes as lines on standard output.
 * The cluster is the one of the first line, and stands in for what k8sd has of
 * its configuration; exec runs box here, where there is no pod.
 *
 * Run by regress/k8sd/pods.py, against a stand-in or a real API server.
 */

#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/https/https.h"
#include "k8sd/cluster.h"
#include "k8sd/exec.h"
#include "k8sd/gate.h"
#include "k8sd/kjson.h"
#include "k8sd/names.h"
#include "k8sd/pod.h"

#define LINE_LEN	65536
#define PODS_MAX	4096

/* ---- the configuration ---- */

struct cluster {
	struct https_server	*server;
	char			*namespace;
	char			*authorization;
};

static struct cluster	 cluster;
static struct pod_conf	 conf;
static char		*prefix;	/* of all paths */
static char		*box;		/* program, or NULL: no exec */

static char *
slurp(const char *path, size_t *len)
{
	char	*text = calloc(1, 1 << 20);
	int	 fd = open(path, O_RDONLY);
	ssize_t	 n = fd == -1 ? -1 : read(fd, text, (1 << 20) - 1);

	if (n == -1)
		err(1, "%s", path);
	close(fd);
	*len = (size_t)n;
	return text;
}

struct cluster *
cluster_find(const char *name)
{
	return strcmp(name, "") == 0 ? &cluster : NULL;
}

struct cluster *
cluster_ref(struct cluster *cl)
{
	return cl;
}

void
cluster_unref(struct cluster *cl)
{
	(void)cl;
}

const char *
cluster_name(const struct cluster *cl)
{
	(void)cl;
	return "";
}

struct https_server *
cluster_server(struct cluster *cl)
{
	return cl->server;
}

const char *
cluster_path(const struct cluster *cl)
{
	(void)cl;
	return prefix;
}

const char *
cluster_namespace(const struct cluster *cl)
{
	return cl->namespace;
}

const char *
cluster_authorization(struct cluster *cl)
{
	return cl->authorization;
}

void
cluster_wait(struct cluster *cl, cluster_ready *ready, void *arg)
{
	(void)cl, (void)ready, (void)arg;
}

void
cluster_wait_cancel(struct cluster *cl, cluster_ready *ready, void *arg)
{
	(void)cl, (void)ready, (void)arg;
}

void
cluster_refused(struct cluster *cl)
{
	(void)cl;
}

const struct pod_conf *
pod_conf_find(const char *sandbox)
{
	return strcmp(sandbox, conf.pc_name) == 0 ? &conf : NULL;
}

const struct pod_conf *
pod_conf_first(void)
{
	return &conf;
}

const struct pod_conf *
pod_conf_next(const struct pod_conf *pc)
{
	(void)pc;
	return NULL;
}

static char *
text_of(const cJSON *json, const char *key, const char *preset)
{
	const cJSON	*v = cJSON_GetObjectItemCaseSensitive(json, key);

	return strdup(cJSON_IsString(v) ? v->valuestring : preset);
}

static uint64_t
number_of(const cJSON *json, const char *key, uint64_t preset)
{
	const cJSON	*v = cJSON_GetObjectItemCaseSensitive(json, key);

	return cJSON_IsNumber(v) ? (uint64_t)v->valuedouble : preset;
}

static void
conf_set(const cJSON *json)
{
	conf.pc_name = text_of(json, "name", "pods");
	conf.pc_cluster = text_of(json, "cluster", "");
	conf.pc_namespace = text_of(json, "namespace", "");
	conf.pc_image = text_of(json, "image", "debian:bookworm-slim");
	conf.pc_box_image = text_of(json, "box_image", "");
	conf.pc_cwd = text_of(json, "cwd", "/workspace");
	conf.pc_id = text_of(json, "id", "");
	conf.pc_policy = text_of(json, "policy", "coding");
	conf.pc_workspace_size = text_of(json, "size", "");
	conf.pc_claim = text_of(json, "claim", "");
	conf.pc_git = text_of(json, "git", "");
	conf.pc_git_ref = text_of(json, "ref", "");
	conf.pc_git_timeout_ms = number_of(json, "git_timeout_ms", 300000);
	conf.pc_service_account = text_of(json, "service_account", "");
	conf.pc_pull_policy = text_of(json, "pull_policy", "");
	conf.pc_runtime_class = text_of(json, "runtime_class", "");
	conf.pc_deadline_ms = number_of(json, "deadline_ms", 28800000);
	conf.pc_heartbeat_ms = number_of(json, "heartbeat_ms", 60000);
	conf.pc_ready_timeout_ms = number_of(json, "ready_ms", 120000);
	conf.pc_on_stale = number_of(json, "recreate", 0) ?
	    POD_STALE_RECREATE : POD_STALE_ERROR;
	conf.pc_run_as_user = conf.pc_run_as_group = conf.pc_fs_group = -1;
	TAILQ_INIT(&conf.pc_env);
	TAILQ_INIT(&conf.pc_labels);
	TAILQ_INIT(&conf.pc_annotations);
	TAILQ_INIT(&conf.pc_requests);
	TAILQ_INIT(&conf.pc_limits);
	TAILQ_INIT(&conf.pc_node_selector);
	TAILQ_INIT(&conf.pc_pull_secrets);
	TAILQ_INIT(&conf.pc_tolerations);
	TAILQ_INIT(&conf.pc_gate_requests);
	TAILQ_INIT(&conf.pc_gate_limits);
	conf.pc_ungated = !number_of(json, "gated", 0);
	conf.pc_network_policy = number_of(json, "network", 1);
}

static void
cluster_set(const cJSON *json)
{
	char	*ca = text_of(json, "ca", ""), *cert, *key, *text, *more;
	size_t	 len, key_len;

	cluster.server = https_server_new(text_of(json, "server", ""));
	if (cluster.server == NULL)
		errx(1, "server");
	cluster.namespace = text_of(json, "default_namespace", "default");
	prefix = text_of(json, "prefix", "");
	cluster.authorization = text_of(json, "authorization", "");
	box = cJSON_HasObjectItem(json, "box") ? text_of(json, "box", "") :
	    NULL;
	pods_installation(text_of(json, "installation", "egressd"));
	if (ca[0] != '\0') {
		text = slurp(ca, &len);
		https_server_trust(cluster.server,
		    https_trust_new(text, len));
	}
	cert = text_of(json, "certificate", "");
	key = text_of(json, "key", "");
	if (cert[0] != '\0') {
		text = slurp(cert, &len);
		more = slurp(key, &key_len);
		if (https_server_certificate(cluster.server, text, len, more,
		    key_len) == -1)
			errx(1, "certificate");
	}
}

static void	 say(const char *, size_t, const char *, const char *,
		    const char *);

/* ---- exec, by a box of this machine ---- */

struct exec {
	struct event	*ex_event;
	pid_t		 ex_pid;
	exec_ended	*ex_ended;
	void		*ex_arg;
};

static void
exec_over(evutil_socket_t fd, short what, void *arg)
{
	struct exec	*ex = arg;
	struct exec_end	 ee = {
		.how = EXEC_LOST,
		.why = "there is no exec here",
		.stderr_tail = "",
	};

	(void)fd, (void)what;
	ex->ex_ended(ex->ex_arg, &ee);
	event_free(ex->ex_event);
	free(ex);
}

struct exec *
exec_begin(struct cluster *cl, const struct exec_request *er,
    exec_ended *ended, void *arg)
{
	static const struct timeval	 now;
	struct exec			*ex = calloc(1, sizeof(*ex));

	(void)cl;
	ex->ex_ended = ended;
	ex->ex_arg = arg;
	ex->ex_event = event_new(child_base, -1, 0, exec_over, ex);
	if (strcmp(er->container, "gate") == 0)
		say("exec", 0, er->command[1], er->pod, er->command[0]);
	if (box == NULL) {
		event_add(ex->ex_event, &now);
		close(er->fd);
		return ex;
	}
	(void)fcntl(er->fd, F_SETFL, 0);
	if ((ex->ex_pid = fork()) == -1)
		err(1, "fork");
	if (ex->ex_pid == 0) {
		dup2(er->fd, 0);
		dup2(er->fd, 1);
		execl(box, box, "hands", "-d", er->command[4], (char *)NULL);
		err(1, "%s", box);
	}
	close(er->fd);
	return ex;
}

void
exec_cancel(struct exec *ex)
{
	if (ex == NULL)
		return;
	if (ex->ex_pid > 0) {
		kill(ex->ex_pid, SIGKILL);
		waitpid(ex->ex_pid, NULL, 0);
	}
	event_free(ex->ex_event);
	free(ex);
}

/* ---- what is told ---- */

static struct pod	*pods[PODS_MAX];

static void
say(const char *event, size_t number, const char *code, const char *pod,
    const char *text)
{
	cJSON	*json = cJSON_CreateObject();
	char	*line;

	cJSON_AddStringToObject(json, "event", event);
	cJSON_AddNumberToObject(json, "number", (double)number);
	if (code != NULL)
		cJSON_AddStringToObject(json, "code", code);
	if (pod != NULL)
		cJSON_AddStringToObject(json, "pod", pod);
	cJSON_AddStringToObject(json, "text", text);
	line = cJSON_PrintUnformatted(json);
	printf("%s\n", line);
	fflush(stdout);
	cJSON_free(line);
	cJSON_Delete(json);
}

static void
on_progress(void *arg, const char *text)
{
	say("progress", (size_t)(uintptr_t)arg, NULL, NULL, text);
}

static void
on_done(void *arg, const char *code, const char *pod, const char *text)
{
	say(code == NULL ? "ready" : "failed", (size_t)(uintptr_t)arg, code,
	    pod, text);
	if (code != NULL)
		pods[(uintptr_t)arg] = NULL;
}

static void
on_ended(void *arg, enum session_cause cause, const char *text)
{
	say("ended", (size_t)(uintptr_t)arg, session_cause_name(cause), NULL,
	    text);
	pods[(uintptr_t)arg] = NULL;
}

static void
on_channel_ended(void *arg, uint32_t channel, const char *text)
{
	(void)arg;
	say("channel_ended", channel, NULL, NULL, text);
}

static void
on_item(void *arg, const struct pods_item *pi)
{
	char	 text[2048];

	snprintf(text, sizeof(text), "%s|%s|%llu|%s", pi->pi_session,
	    pi->pi_state, (unsigned long long)pi->pi_age_s, pi->pi_text);
	say("item", (size_t)(uintptr_t)arg, NULL, pi->pi_pod, text);
}

static void
on_over(void *arg, const char *code, const char *text)
{
	say("over", (size_t)(uintptr_t)arg, code, NULL, text);
}

/* ---- what is asked ---- */

/* In place of what the parent has rendered. */
static struct gate *
gate_of(const cJSON *json)
{
	char	*text = text_of(json, "gate", "policy"), *trust = strdup("T\n");
	char	 hash[DIGEST_LEN + 1];

	names_digest(text, hash);
	return gate_new(hash, text, strlen(text), trust, 2,
	    (int)number_of(json, "private", 0), "10.0.0.3 fd00::3");
}

static void
do_start(const cJSON *json, size_t number)
{
	static const struct pod_callbacks	 callbacks = {
		.pc_progress = on_progress,
		.pc_done = on_done,
		.pc_ended = on_ended,
		.pc_channel_ended = on_channel_ended,
	};
	char		*session = text_of(json, "session", "s");
	struct pod_wish	 pw = {
		.pw_session = session,
		.pw_sandbox = "pods",
		.pw_owner = (uint32_t)number_of(json, "owner", 1000),
		.pw_named = (int)number_of(json, "named", 1),
		.pw_cwd = "",
	};

	if (!conf.pc_ungated && !number_of(json, "late", 0))
		pw.pw_gate = gate_of(json);
	pods[number] = pod_start(&pw, &callbacks, (void *)(uintptr_t)number);
	free(session);
}

/* ---- a client's end ---- */

static void
on_heard(evutil_socket_t fd, short what, void *arg)
{
	char	 text[4096];
	ssize_t	 n = read(fd, text, sizeof(text) - 1), i;

	(void)what;
	if (n <= 0) {
		say("closed", (size_t)(uintptr_t)arg, "", "", "");
		close(fd);
		return;
	}
	for (i = 0; i < n; i++)
		if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
			text[i] = '.';
	text[n] = '\0';
	say("heard", (size_t)(uintptr_t)arg, "", "", text);
	event_base_once(child_base, fd, EV_READ, on_heard, arg, NULL);
}

/* The other end, for pods; what comes out of this one is told. */
static int
client_end(size_t number)
{
	int	 fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == -1)
		err(1, "socketpair");
	event_base_once(child_base, fds[0], EV_READ, on_heard,
	    (void *)(uintptr_t)number, NULL);
	return fds[1];
}

static void
do_channel(const cJSON *json, size_t number)
{
	struct pod_channel	 pn;
	size_t			 channel = number_of(json, "channel", 1);
	char			 text[1024];

	pod_channel(pods[number], (uint32_t)channel, &pn);
	if (pn.pn_fd == -1) {
		say("channel", channel, "none", NULL, "");
		return;
	}
	snprintf(text, sizeof(text), "%s %llu", pn.pn_node,
	    (unsigned long long)pn.pn_term);
	say("channel", channel, NULL, pn.pn_uid, text);
	close(pn.pn_fd);
}

static void
do_job(const cJSON *json, const char *op, size_t number)
{
	static const struct {
		const char	 *op;
		struct pods_job	*(*begin)(const struct pods_ask *,
				    pods_item *, pods_done *, void *);
	} jobs[] = {
		{ "list", pods_list }, { "reap", pods_reap },
		{ "terminate", pods_terminate },
		{ "heartbeat", pods_heartbeat }, { "check", pods_check },
		{ "logs", pods_logs },
	};
	char		*session = text_of(json, "session", "");
	char		*selector = text_of(json, "selector", "");
	struct pods_ask	 pa = {
		.pa_sandbox = "pods",
		.pa_session = session,
		.pa_selector = selector,
		.pa_container = "",
		.pa_age_s = number_of(json, "age_s", PODS_AGE_S),
		.pa_dry_run = (int)number_of(json, "dry_run", 0),
		.pa_follow = (int)number_of(json, "follow", 0),
		.pa_fd = strcmp(op, "logs") == 0 ? client_end(number) : -1,
	};
	size_t		 i;

	for (i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		if (strcmp(jobs[i].op, op) == 0)
			jobs[i].begin(&pa, on_item, on_over,
			    (void *)(uintptr_t)number);
	free(session);
	free(selector);
}

static void
do_line(const char *line)
{
	cJSON		*json = cJSON_Parse(line);
	const char	*op = kj_string(json, "op");
	size_t		 number = number_of(json, "number", 0);

	if (json == NULL || number >= PODS_MAX)
		errx(1, "bad line");
	if (strcmp(op, "conf") == 0) {
		conf_set(json);
		if (cluster.server == NULL)
			cluster_set(json);
	} else if (strcmp(op, "start") == 0)
		do_start(json, number);
	else if (strcmp(op, "gate") == 0 && pods[number] != NULL)
		pod_gate(pods[number], gate_of(json));
	else if (strcmp(op, "channel") == 0 && pods[number] != NULL)
		do_channel(json, number);
	else if (strcmp(op, "stop") == 0 && pods[number] != NULL)
		pod_stop(pods[number], (enum pod_stop)number_of(json, "how",
		    POD_AS_CONFIGURED));
	else if (strcmp(op, "forget") == 0 && pods[number] != NULL) {
		pod_forget(pods[number]);
		pods[number] = NULL;
	} else if (strcmp(op, "attach") == 0 && pods[number] != NULL)
		pod_attach(pods[number], client_end(number));
	else
		do_job(json, op, number);
	cJSON_Delete(json);
}

static void
on_input(evutil_socket_t fd, short what, void *arg)
{
	static char	 in[LINE_LEN];
	static size_t	 len;
	char		*end;
	ssize_t		 n;

	(void)what;
	if ((n = read(fd, in + len, sizeof(in) - len - 1)) <= 0) {
		event_base_loopbreak(arg);
		return;
	}
	len += (size_t)n;
	in[len] = '\0';
	while ((end = strchr(in, '\n')) != NULL) {
		*end = '\0';
		do_line(in);
		len -= (size_t)(end + 1 - in);
		memmove(in, end + 1, len + 1);
	}
}

int
main(void)
{
	struct event	*ev;

	signal(SIGPIPE, SIG_IGN);
	log_init("drive_pods", LOG_LVL_DEBUG, 0);
	if ((child_base = event_base_new()) == NULL)
		errx(1, "libevent");
	https_warm();
	pods_warm();
	ev = event_new(child_base, 0, EV_READ | EV_PERSIST, on_input,
	    child_base);
	event_add(ev, NULL);
	event_base_dispatch(child_base);
	/* As a daemon that is killed: nothing is tidied up. */
	_exit(0);
}
