/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operations stat, mkdir and mount, which are over at
 * once.
 */

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "op.h"

struct op_stat {
	const char	*st_path;
	int		 st_follow;
};

static const struct member stat_members[] = {
	MUST_STRING(op_stat, "path", st_path),
	MAY_BOOL(op_stat, "follow", st_follow, 1),
	MEMBERS_END
};

static void
stat_start(struct request *rq)
{
	struct op_stat	*os = rq->rq_state;
	struct stat	 st;
	struct jsonw	*w;
	char		 target[PATH_MAX];
	ssize_t		 n;

	if ((os->st_follow ? stat(os->st_path, &st) :
	    lstat(os->st_path, &st)) == -1) {
		request_failed(rq, errno, os->st_path);
		return;
	}
	w = request_writer();
	jsonw_object(w);
	file_members(w, &st);
	jsonw_lit(w, "uid");
	jsonw_uint(w, st.st_uid);
	jsonw_lit(w, "gid");
	jsonw_uint(w, st.st_gid);
	if (S_ISLNK(st.st_mode) && (n = readlink(os->st_path, target,
	    sizeof(target))) > 0) {
		jsonw_lit(w, "target");
		jsonw_string(w, target, (size_t)n);
	}
	jsonw_end(w);
	request_result(rq, w);
}

const struct op op_stat = {
	.op_name = "stat", .op_members = stat_members,
	.op_size = sizeof(struct op_stat), .op_start = stat_start,
};

struct op_mkdir {
	const char	*mk_path;
	int64_t		 mk_mode;
};

static const struct member mkdir_members[] = {
	MUST_STRING(op_mkdir, "path", mk_path),
	MAY_INTEGER(op_mkdir, "mode", mk_mode, 0, 07777, -1),
	MEMBERS_END
};

static void
mkdir_start(struct request *rq)
{
	struct op_mkdir	*mk = rq->rq_state;
	struct jsonw	*w;
	int		 created;

	/* A mode that was given is that mode, whatever the umask. */
	if (file_mkdirs(mk->mk_path, 0755, &created) == -1 ||
	    (created && mk->mk_mode != -1 &&
	    chmod(mk->mk_path, (mode_t)mk->mk_mode) == -1)) {
		request_failed(rq, errno, mk->mk_path);
		return;
	}
	w = request_writer();
	jsonw_object(w);
	jsonw_lit(w, "created");
	jsonw_bool(w, created);
	jsonw_end(w);
	request_result(rq, w);
}

const struct op op_mkdir = {
	.op_name = "mkdir", .op_members = mkdir_members,
	.op_size = sizeof(struct op_mkdir), .op_start = mkdir_start,
};

struct op_mount {
	const char	*mo_source;
	const char	*mo_path;
	int		 mo_write;
};

static const struct member mount_members[] = {
	MUST_STRING(op_mount, "source", mo_source),
	MUST_STRING(op_mount, "path", mo_path),
	MAY_BOOL(op_mount, "write", mo_write, 0),
	MEMBERS_END
};

static void
mount_start(struct request *rq)
{
	request_error(rq, "not_supported", "only a virtual "
	    "sandbox takes mounts, and the daemon makes them");
}

const struct op op_mount = {
	.op_name = "mount", .op_members = mount_members,
	.op_size = sizeof(struct op_mount), .op_start = mount_start,
};
