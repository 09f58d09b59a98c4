/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: hands in a pod that do something for us.  Whoever is in the
 * pod may answer in their place, so that a frame is taken for what its header
 * says and nothing more; what is broken ends the connection.
 */

#include <sys/socket.h>

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "child.h"
#include "exec.h"
#include "hand.h"
#include "kjson.h"
#include "log.h"
#include "manifest.h"

#define HEADER_LEN	12
#define BODY_MAX	65536
#define TAIL_LEN	400
#define SLACK_MS	15000	/* until there is a connection, and an answer */

enum { FRAME_CALL = 1, FRAME_RESULT, FRAME_ERROR, FRAME_DATA, FRAME_DATA_ERR,
	FRAME_CREDIT = 7 };

struct hand {
	struct exec	*ha_exec;
	int		 ha_fd;
	struct event	 ha_read;
	struct event	 ha_timer;
	uint32_t	 ha_id;		/* of what runs */
	int		 ha_busy;
	unsigned char	 ha_in[HEADER_LEN + BODY_MAX];
	size_t		 ha_len;
	char		 ha_tail[TAIL_LEN];
	size_t		 ha_tail_len;
	hand_done	*ha_done;
	void		*ha_arg;
};

/* ---- ends ---- */

static void
hand_stop(struct hand *ha)
{
	exec_cancel(ha->ha_exec);
	ha->ha_exec = NULL;
	event_del(&ha->ha_read);
	event_del(&ha->ha_timer);
	if (ha->ha_fd != -1)
		close(ha->ha_fd);
	ha->ha_fd = -1;
}

void
hand_end(struct hand *ha)
{
	if (ha == NULL)
		return;
	hand_stop(ha);
	free(ha);
}

/* Whoever is told may end the hand. */
static void
hand_tell_end(struct hand *ha, int code, const char *text)
{
	if (!ha->ha_busy)
		return;
	ha->ha_busy = 0;
	event_del(&ha->ha_timer);
	ha->ha_done(ha->ha_arg, code, text);
}

static void
hand_exec_ended(void *arg, const struct exec_end *ee)
{
	struct hand	*ha = arg;
	char		 text[TAIL_LEN];

	ha->ha_exec = NULL;
	snprintf(text, sizeof(text), "%s%s%.200s", ee->why != NULL &&
	    ee->why[0] != '\0' ? ee->why : "the connection to the pod ended",
	    ee->stderr_tail != NULL && ee->stderr_tail[0] != '\0' ? ": " : "",
	    ee->stderr_tail != NULL ? ee->stderr_tail : "");
	hand_stop(ha);
	hand_tell_end(ha, HAND_LOST, text);
}

static void
hand_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hand	*ha = arg;

	(void)fd, (void)what;
	if (ha->ha_fd == -1) {
		hand_tell_end(ha, HAND_LOST,
		    "there is no connection to the pod");
		return;
	}
	hand_stop(ha);
	hand_tell_end(ha, HAND_REFUSED, "it did not end in time");
}

/* ---- frames ---- */

/* What we send is short, and nothing was sent before that waits. */
static int
frame_send(int fd, uint32_t number, int kind, const void *body, size_t len)
{
	unsigned char	 out[HEADER_LEN + 8192];
	uint32_t	 n = htobe32((uint32_t)len), id = htobe32(number);

	if (len > sizeof(out) - HEADER_LEN)
		return -1;
	memset(out, 0, HEADER_LEN);
	memcpy(out, &n, sizeof(n));
	memcpy(out + 4, &id, sizeof(id));
	out[8] = (unsigned char)kind;
	memcpy(out + HEADER_LEN, body, len);
	return send(fd, out, HEADER_LEN + len, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	    (ssize_t)(HEADER_LEN + len) ? 0 : -1;
}

void
hand_refuse(int fd, const char *message)
{
	cJSON		*error = kj_object(NULL, NULL);
	char		*body;

	kj_put(error, "code", "gone");
	kj_put(error, "message", message);
	body = kj_print(error);
	(void)frame_send(fd, 0, FRAME_ERROR, body, strlen(body));
	cJSON_free(body);
	cJSON_Delete(error);
}

static void
tail_add(struct hand *ha, const char *data, size_t len)
{
	size_t	 keep;

	if (len >= sizeof(ha->ha_tail)) {
		data += len - (sizeof(ha->ha_tail) - 1);
		len = sizeof(ha->ha_tail) - 1;
	}
	keep = sizeof(ha->ha_tail) - 1 - len;
	if (ha->ha_tail_len > keep) {
		memmove(ha->ha_tail, ha->ha_tail + ha->ha_tail_len - keep,
		    keep);
		ha->ha_tail_len = keep;
	}
	memcpy(ha->ha_tail + ha->ha_tail_len, data, len);
	ha->ha_tail_len += len;
}

static void
frame_over_end(struct hand *ha, int kind, const char *body, size_t len)
{
	cJSON		*json = kj_parse(body, len);
	const cJSON	*code = kj_at(json, "exit_code");
	char		 text[TAIL_LEN];
	int		 status = HAND_REFUSED;

	if (kind == FRAME_ERROR) {
		kj_tame(kj_string(json, "message"), SIZE_MAX, text,
		    sizeof(text));
		if (text[0] == '\0')
			kj_tame(kj_string(json, "code"), SIZE_MAX, text,
			    sizeof(text));
	} else {
		if (cJSON_IsNumber(code) && code->valuedouble >= 0 &&
		    code->valuedouble <= 255)
			status = (int)code->valuedouble;
		kj_tame(ha->ha_tail, ha->ha_tail_len, text, sizeof(text));
	}
	cJSON_Delete(json);
	hand_tell_end(ha, status, text);
}

static void
frame_take_end(struct hand *ha, uint32_t id, int kind, const char *body,
    size_t len)
{
	uint32_t	 credit = htobe32((uint32_t)len);

	if (id != ha->ha_id || !ha->ha_busy)
		return;
	if (kind == FRAME_DATA || kind == FRAME_DATA_ERR) {
		tail_add(ha, body, len);
		frame_send(ha->ha_fd, id, FRAME_CREDIT, &credit,
		    sizeof(credit));
	} else if (kind == FRAME_RESULT || kind == FRAME_ERROR)
		frame_over_end(ha, kind, body, len);
}

/* One frame in each turn: whoever hears of it may end us. */
static void
hand_frame_end(struct hand *ha)
{
	uint32_t	 len, id;
	int		 kind;
	char		*body;

	memcpy(&len, ha->ha_in, sizeof(len));
	memcpy(&id, ha->ha_in + 4, sizeof(id));
	len = be32toh(len);
	if (len > BODY_MAX) {
		hand_stop(ha);
		hand_tell_end(ha, HAND_LOST, "the hands talk nonsense");
		return;
	}
	if (ha->ha_len < HEADER_LEN + len)
		return;
	kind = ha->ha_in[8];
	if ((body = malloc(len + 1)) == NULL)
		fatal("%s", __func__);
	memcpy(body, ha->ha_in + HEADER_LEN, len);
	ha->ha_len -= HEADER_LEN + len;
	memmove(ha->ha_in, ha->ha_in + HEADER_LEN + len, ha->ha_len);
	if (ha->ha_len >= HEADER_LEN)
		event_active(&ha->ha_read, 0, 0);
	frame_take_end(ha, be32toh(id), kind, body, len);
	free(body);
}

static void
hand_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct hand	*ha = arg;
	ssize_t		 n;

	if (what & EV_READ) {
		n = read(fd, ha->ha_in + ha->ha_len,
		    sizeof(ha->ha_in) - ha->ha_len);
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			/* exec_ended() has the reason. */
			event_del(&ha->ha_read);
			return;
		}
		ha->ha_len += (size_t)n;
	}
	if (ha->ha_len >= HEADER_LEN)
		hand_frame_end(ha);
}

/* ---- begin ---- */

struct hand *
hand_begin(struct cluster *cl, const char *namespace, const char *pod,
    const char *cwd, int gated, hand_done *done, void *arg)
{
	const char *const	 command[] = {
		BOX_PROGRAM, "hands", "-k", "-d", cwd, gated ? NULL : "-u",
		NULL
	};
	struct exec_request	 er = {
		.namespace = namespace,
		.pod = pod,
		.container = WORKSPACE,
		.command = command,
	};
	struct hand		*ha;
	int			 fds[2];

	if ((ha = calloc(1, sizeof(*ha))) == NULL)
		fatal("%s", __func__);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
	    fds) == -1)
		fatal("%s: socketpair", __func__);
	ha->ha_fd = fds[0];
	er.fd = fds[1];
	ha->ha_done = done;
	ha->ha_arg = arg;
	event_assign(&ha->ha_read, child_base, ha->ha_fd,
	    EV_READ | EV_PERSIST, hand_on_read, ha);
	event_assign(&ha->ha_timer, child_base, -1, 0, hand_on_timer, ha);
	if (event_add(&ha->ha_read, NULL) == -1)
		fatalx("%s: event_add", __func__);
	ha->ha_exec = exec_begin(cl, &er, hand_exec_ended, ha);
	return ha;
}

void
hand_run(struct hand *ha, const char *const *argv, uint64_t timeout_ms)
{
	cJSON		*call = kj_object(NULL, NULL), *list;
	struct timeval	 tv;
	char		*body;

	kj_put(call, "op", "exec");
	list = kj_array(call, "argv");
	for (; *argv != NULL; argv++)
		kj_put_item(list, *argv);
	kj_put_number(call, "timeout_ms", (int64_t)timeout_ms);
	kj_put_bool(call, "merge", 1);
	kj_put(kj_object(call, "env"), "GIT_TERMINAL_PROMPT", "0");
	body = kj_print(call);
	ha->ha_id++;
	ha->ha_busy = 1;
	ha->ha_tail_len = 0;
	tv.tv_sec = (time_t)((timeout_ms + SLACK_MS) / 1000);
	tv.tv_usec = 0;
	/* What cannot be sent is not answered; the end of exec says why. */
	if (ha->ha_fd == -1)
		tv.tv_sec = 0;
	else
		(void)frame_send(ha->ha_fd, ha->ha_id, FRAME_CALL, body,
		    strlen(body));
	if (event_add(&ha->ha_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
	cJSON_free(body);
	cJSON_Delete(call);
}
