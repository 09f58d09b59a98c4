/* SPDX-License-Identifier: ISC */

/*
 * controld: what clients want to have mounted in sandboxes that the daemon
 * makes, when one starts or while it runs.  Here are names only: what may be
 * mounted is the parent's to say, and it has the source opened with the rights
 * of the client, whose connection goes along.
 */

#include <string.h>
#include <unistd.h>

#include "controld.h"

static int
check_path(struct request *rq, const char *field, const char *path)
{
	if (strlen(path) >= PATH_LEN)
		return request_fail(rq, CODE_BAD_REQUEST, "%s: longer than %d "
		    "bytes", field, PATH_LEN - 1);
	if (*path != '/')
		return request_fail(rq, CODE_BAD_REQUEST, "%s: wanted an "
		    "absolute path, not \"%.64s\"", field, path);
	return 0;
}

/* ---- with a start -------------------------------------------------------- */

/* One member of a mount; NULL and the request says so if it is unsound. */
static const cJSON *
member(struct request *rq, const cJSON *mount, const char *name, int must)
{
	const cJSON	*v = cJSON_GetObjectItemCaseSensitive(mount, name);

	if (v == NULL && must)
		request_fail(rq, CODE_BAD_REQUEST, "mounts: one has no %s",
		    name);
	return v;
}

/* source, target and perhaps write, each once. */
static int
check_mount(struct request *rq, const cJSON *mount)
{
	const cJSON	*source, *target, *write;

	if ((source = member(rq, mount, "source", 1)) == NULL ||
	    (target = member(rq, mount, "target", 1)) == NULL)
		return -1;
	write = member(rq, mount, "write", 0);
	if (!cJSON_IsString(source) || !cJSON_IsString(target) ||
	    (write != NULL && !cJSON_IsBool(write)) ||
	    cJSON_GetArraySize(mount) != 2 + (write != NULL))
		return request_fail(rq, CODE_BAD_REQUEST, "mounts: wanted the "
		    "strings source and target, perhaps the boolean write, "
		    "and nothing else");
	if (check_path(rq, "source", source->valuestring) == -1 ||
	    check_path(rq, "target", target->valuestring) == -1)
		return -1;
	return 0;
}

static size_t
add_word(char *to, const char *text)
{
	size_t	 len = strlen(text) + 1;

	memcpy(to, text, len);
	return len;
}

/* The mounts of session.start, as SANDBOX_ASK has them. */
int
mounting_take(struct request *rq, char *list, size_t size, size_t *len)
{
	const cJSON	*mount;
	const char	*source, *target;

	*len = 0;
	cJSON_ArrayForEach(mount, request_field(rq, "mounts")) {
		if (check_mount(rq, mount) == -1)
			return -1;
		source = member(rq, mount, "source", 1)->valuestring;
		target = member(rq, mount, "target", 1)->valuestring;
		if (strlen(source) + strlen(target) + 3 > size - *len)
			return request_fail(rq, CODE_BAD_REQUEST, "mounts: "
			    "more than %zu bytes in all", size);
		list[(*len)++] = cJSON_IsTrue(member(rq, mount, "write", 0)) ?
		    'w' : 'r';
		*len += add_word(list + *len, source);
		*len += add_word(list + *len, target);
	}
	if (cJSON_GetArraySize(request_field(rq, "mounts")) > MOUNTS_MAX)
		return request_fail(rq, CODE_BAD_REQUEST, "mounts: more than "
		    "%d", MOUNTS_MAX);
	return 0;
}

/* Whether a sandbox takes any. */
int
mounting_check(struct request *rq, enum sandbox_kind kind, int mountable)
{
	if (kind != SANDBOX_VIRTUAL)
		return request_fail(rq, CODE_NOT_SUPPORTED, "a %s sandbox "
		    "takes no mounts", sandbox_kind_name(kind));
	if (!mountable)
		return request_fail(rq, CODE_NOT_PERMITTED,
		    "its sandbox block has no \"mount below\", or systemd "
		    "starts it");
	return 0;
}

/* ---- later --------------------------------------------------------------- */

static int
op_session_mount(struct client *cl, struct request *rq)
{
	const char	*source = request_text(rq, "source");
	const char	*target = request_text(rq, "target");
	struct session	*se;
	struct waiter	*wt;
	int		 fd;

	if ((se = boxed_owned(cl, rq)) == NULL ||
	    mounting_check(rq, se->se_boxed.bx_kind,
	    se->se_boxed.bx_conf.mountable) == -1 ||
	    check_path(rq, "source", source) == -1 ||
	    check_path(rq, "target", target) == -1)
		return -1;
	if ((fd = dup(cl->cl_fd)) == -1)
		return request_fail(rq, CODE_BUSY, "no free descriptor");
	if ((wt = waiter_new(cl, WAIT_MOUNT, &rq->rq_id)) == NULL) {
		close(fd);
		return 0;
	}
	ipc_send(child_parent, fd, SESSION_MOUNT, session_mount,
	    .cookie = wt->wt_cookie, .number = se->se_number,
	    .source = source, .target = target,
	    .write = request_is(rq, "write"));
	return 0;
}

int
controld_parent_session_mounted(struct ipc *ip, const union msg *m)
{
	static const char *const		 codes[MOUNT_RESULT_MAX] = {
		[MOUNT_FAILED] = CODE_MOUNT_FAILED,
		[MOUNT_DENIED] = CODE_NOT_PERMITTED,
		[MOUNT_BUSY] = CODE_BUSY,
	};
	const struct msg_session_mounted	*mm = &m->session_mounted;
	struct waiter				*wt;

	if (mm->result >= MOUNT_RESULT_MAX)
		return ipc_bad(ip, "mount result %u", mm->result);
	if ((wt = waiter_find(mm->cookie, WAIT_MOUNT)) == NULL)
		return 0;
	if (mm->result == MOUNT_DONE) {
		answer_ok();
		waiter_finish(wt);
	} else
		waiter_error(wt, codes[mm->result], "%s", mm->text);
	return 0;
}

static const struct field mount_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ "source", FIELD_STRING, MUST },
	{ "target", FIELD_STRING, MUST },
	{ "write", FIELD_BOOLEAN, MAY },
	{ NULL, 0, 0 }
};

const struct op mounting_ops[] = {
	{ "session.mount", 0, op_session_mount, mount_fields },
	{ NULL, 0, NULL, NULL }
};
