/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operations read and write.
 */

#include <sys/stat.h>

#include <errno.h>
#include <unistd.h>

#include "op.h"

struct op_read {
	const char	*re_path;
	int64_t		 re_offset;
	int64_t		 re_length;
	int		 re_fd;
	uint64_t	 re_sent;
};

static const struct member read_members[] = {
	MUST_STRING(op_read, "path", re_path),
	MAY_INTEGER(op_read, "offset", re_offset, 0, JSONR_INTEGER_MAX, 0),
	MAY_INTEGER(op_read, "length", re_length, 0, JSONR_INTEGER_MAX,
	    JSONR_INTEGER_MAX),
	MEMBERS_END
};

static void
read_start(struct request *rq)
{
	struct op_read	*re = rq->rq_state;
	struct stat	 st;

	if ((re->re_fd = file_open(re->re_path, &st)) == -1) {
		request_failed(rq, errno, re->re_path);
		return;
	}
	rq->rq_busy = 1;
}

static void
read_done(struct request *rq)
{
	struct op_read	*re = rq->rq_state;
	struct jsonw	*w = request_writer();

	jsonw_object(w);
	jsonw_lit(w, "bytes");
	jsonw_uint(w, re->re_sent);
	jsonw_end(w);
	request_result(rq, w);
}

/* Send a slice; 1 if there may be more now. */
static int
read_slice(struct request *rq)
{
	struct op_read	*re = rq->rq_state;
	ssize_t		 n = 0;

	if (re->re_length > 0)
		n = request_pread(rq, re->re_fd, (size_t)re->re_length,
		    re->re_offset);
	if (n == -1) {
		if (errno != EINTR)
			request_failed(rq, errno, re->re_path);
		return 0;
	}
	re->re_offset += n;
	re->re_length -= n;
	re->re_sent += (uint64_t)n;
	if (n == 0)
		read_done(rq);
	return n > 0 && request_room(rq) > 0;
}

/* A file that fits into one slice is read in one turn. */
static void
read_step(struct request *rq)
{
	struct op_read	*re = rq->rq_state;
	uint64_t	 sent = re->re_sent;

	if (read_slice(rq) && re->re_sent - sent < SLICE)
		(void)read_slice(rq);
}

static void
read_free(struct request *rq)
{
	struct op_read	*re = rq->rq_state;

	if (re->re_fd != -1)
		(void)close(re->re_fd);
}

const struct op op_read = {
	.op_name = "read", .op_members = read_members,
	.op_size = sizeof(struct op_read),
	.op_start = read_start, .op_step = read_step, .op_free = read_free,
};

struct op_write {
	const char	*wr_path;
	int64_t		 wr_mode;
	struct replace	 wr_file;
	int		 wr_begun;
};

static const struct member write_members[] = {
	MUST_STRING(op_write, "path", wr_path),
	MAY_INTEGER(op_write, "mode", wr_mode, 0, 07777, REPLACE_MODE),
	MEMBERS_END
};

static void
write_start(struct request *rq)
{
	struct op_write	*wr = rq->rq_state;

	wr->wr_begun = 1;
	if (replace_begin(&wr->wr_file, wr->wr_path,
	    (mode_t)wr->wr_mode) == -1)
		request_failed(rq, errno, wr->wr_path);
}

static void
write_data(struct request *rq, const uint8_t *data, size_t len)
{
	struct op_write	*wr = rq->rq_state;

	if (replace_write(&wr->wr_file, data, len) == -1)
		request_failed(rq, errno, wr->wr_path);
	else
		request_eat(rq, len);
}

/* Go on until the contents are in their place. */
static void
write_settle(struct request *rq, int more)
{
	struct op_write	*wr = rq->rq_state;
	struct jsonw	*w;

	rq->rq_busy = more == 1;
	if (more == -1)
		request_failed(rq, errno, wr->wr_path);
	if (more != 0)
		return;
	w = request_writer();
	jsonw_object(w);
	jsonw_lit(w, "bytes");
	jsonw_int(w, wr->wr_file.rp_len);
	jsonw_lit(w, "created");
	jsonw_bool(w, wr->wr_file.rp_created);
	jsonw_end(w);
	request_result(rq, w);
}

static void
write_end(struct request *rq)
{
	struct op_write	*wr = rq->rq_state;

	write_settle(rq, replace_commit(&wr->wr_file));
}

static void
write_step(struct request *rq)
{
	struct op_write	*wr = rq->rq_state;

	write_settle(rq, replace_copy(&wr->wr_file));
}

/* A file that is written in place can only be finished. */
static void
write_cancel(struct request *rq)
{
	if (!rq->rq_busy)
		request_error(rq, "cancelled", "cancelled by the client");
}

static void
write_free(struct request *rq)
{
	struct op_write	*wr = rq->rq_state;

	if (wr->wr_begun)
		replace_free(&wr->wr_file);
}

const struct op op_write = {
	.op_name = "write", .op_members = write_members,
	.op_size = sizeof(struct op_write),
	.op_start = write_start, .op_step = write_step, .op_data = write_data,
	.op_end = write_end, .op_cancel = write_cancel, .op_free = write_free,
};
