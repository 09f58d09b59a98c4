/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operation list.
 */

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "op.h"

#define LOOKS	64		/* at names, in a turn */

struct op_list {
	const char	*li_path;
	int64_t		 li_limit;
	struct names	*li_names;
	int		 li_read;	/* all of them */
	int		 li_fd;
	int64_t		 li_count;
};

static const struct member list_members[] = {
	MAY_STRING(op_list, "path", li_path),
	MAY_INTEGER(op_list, "limit", li_limit, 0, JSONR_INTEGER_MAX, 100000),
	MEMBERS_END
};

static void
list_start(struct request *rq)
{
	struct op_list	*li = rq->rq_state;

	if (li->li_path == NULL)
		li->li_path = ".";
	li->li_names = names_new();
	if ((li->li_fd = open(li->li_path, O_PATH | O_DIRECTORY |
	    O_CLOEXEC)) == -1 ||
	    names_open(li->li_names, li->li_fd, "", 0) == -1)
		request_failed(rq, errno, li->li_path);
	rq->rq_busy = 1;
}

static void
list_done(struct request *rq, int truncated)
{
	struct op_list	*li = rq->rq_state;
	struct jsonw	*w = request_writer();

	jsonw_object(w);
	jsonw_lit(w, "count");
	jsonw_int(w, li->li_count);
	jsonw_lit(w, "truncated");
	jsonw_bool(w, truncated);
	jsonw_end(w);
	request_result(rq, w);
}

/* A name that has gone since is left out. */
static void
list_item(struct request *rq, const char *name)
{
	struct op_list	*li = rq->rq_state;
	struct stat	 st;
	struct jsonw	*w;

	if (fstatat(li->li_fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return;
	if (li->li_count == li->li_limit) {
		list_done(rq, 1);
		return;
	}
	li->li_count++;
	w = request_writer();
	jsonw_object(w);
	jsonw_lit(w, "name");
	jsonw_str(w, name);
	file_members(w, &st);
	jsonw_end(w);
	request_item(rq, w);
}

static void
list_step(struct request *rq)
{
	struct op_list	*li = rq->rq_state;
	const char	*name;
	unsigned char	 type;
	int		 i, more;

	if (!li->li_read) {
		if ((more = names_read(li->li_names)) == -1)
			request_failed(rq, errno, li->li_path);
		li->li_read = more == 0;
		if (more != 0)
			return;
	}
	for (i = 0; i < LOOKS && !rq->rq_over && rq->rq_item == NULL; i++) {
		if ((name = names_next(li->li_names, &type)) == NULL)
			list_done(rq, 0);
		else
			list_item(rq, name);
	}
}

static void
list_free(struct request *rq)
{
	struct op_list	*li = rq->rq_state;

	names_free(li->li_names);
	if (li->li_fd != -1)
		(void)close(li->li_fd);
}

const struct op op_list = {
	.op_name = "list", .op_members = list_members,
	.op_size = sizeof(struct op_list),
	.op_start = list_start, .op_step = list_step, .op_free = list_free,
};
