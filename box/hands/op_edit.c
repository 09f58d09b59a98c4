/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operation edit.  The file is in memory from its
 * reading to its writing, neither of which waits for the client, and one edit
 * does so at a time: so there never is more than one file in memory.
 */

#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "op.h"

#define EDIT_MAX	(16 * 1024 * 1024)

enum edit_phase { EDIT_WAIT, EDIT_READ, EDIT_WRITE, EDIT_COPY, EDIT_SEND };

struct op_edit {
	const char	*ed_path;
	const char	*ed_old;
	const char	*ed_new;
	enum edit_phase	 ed_phase;
	int		 ed_fd;
	char		*ed_text;
	size_t		 ed_len;
	size_t		 ed_match;	/* where old is */
	size_t		 ed_done;	/* bytes of text that are written */
	off_t		 ed_sent;
	struct replace	 ed_file;
	int		 ed_begun;
};

static const struct member edit_members[] = {
	MUST_STRING(op_edit, "path", ed_path),
	MUST_STRING(op_edit, "old", ed_old),
	MUST_STRING(op_edit, "new", ed_new),
	MEMBERS_END
};

static const struct request	*edit_reader;	/* who has a file in memory */

static void
edit_start(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;
	struct stat	 st;

	ed->ed_fd = -1;
	if (*ed->ed_old == '\0') {
		request_error(rq, "bad_request", "old: empty");
		return;
	}
	if ((ed->ed_fd = file_open(ed->ed_path, &st)) == -1)
		request_failed(rq, errno, ed->ed_path);
	else if (st.st_size > EDIT_MAX)
		request_failed(rq, EFBIG, ed->ed_path);
	else
		rq->rq_busy = 1;
}

static void
edit_release(const struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;

	if (edit_reader == rq)
		edit_reader = NULL;
	free(ed->ed_text);
	ed->ed_text = NULL;
}

/* How often old is there, without overlap; the first place is kept. */
static uint64_t
edit_count(struct op_edit *ed)
{
	size_t	 oldlen = strlen(ed->ed_old), left = ed->ed_len;
	char	*at = ed->ed_text, *found;
	uint64_t count = 0;

	while (left >= oldlen && (found = memmem(at, left, ed->ed_old,
	    oldlen)) != NULL) {
		if (count++ == 0)
			ed->ed_match = (size_t)(found - ed->ed_text);
		left -= (size_t)(found + oldlen - at);
		at = found + oldlen;
	}
	return count;
}

static void
edit_wait(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;

	if (edit_reader != NULL)
		return;
	if ((ed->ed_text = malloc(EDIT_MAX + 1)) == NULL) {
		request_failed(rq, errno, ed->ed_path);
		return;
	}
	edit_reader = rq;
	ed->ed_phase = EDIT_READ;
}

/* All is read: is there exactly one? */
static void
edit_judge(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;
	uint64_t	 count = edit_count(ed);

	if (count != 1) {
		request_error_with(rq, "not_unique", "occurrences", count,
		    "%s: old is there %llu times, not once", ed->ed_path,
		    (unsigned long long)count);
		return;
	}
	ed->ed_begun = 1;
	if (replace_begin(&ed->ed_file, ed->ed_path, REPLACE_MODE) == -1)
		request_failed(rq, errno, ed->ed_path);
	ed->ed_phase = EDIT_WRITE;
}

static void
edit_read(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;
	size_t		 want = EDIT_MAX + 1 - ed->ed_len;
	ssize_t		 n;

	n = read(ed->ed_fd, ed->ed_text + ed->ed_len,
	    want > SLICE ? SLICE : want);
	if (n == -1 && errno == EINTR)
		return;
	if (n == -1) {
		request_failed(rq, errno, ed->ed_path);
		return;
	}
	ed->ed_len += (size_t)n;
	if (ed->ed_len > EDIT_MAX)
		request_failed(rq, EFBIG, ed->ed_path);
	else if (n == 0)
		edit_judge(rq);
}

static void
edit_settle(struct request *rq, int more)
{
	struct op_edit	*ed = rq->rq_state;

	if (more == -1)
		request_failed(rq, errno, ed->ed_path);
	else
		ed->ed_phase = more ? EDIT_COPY : EDIT_SEND;
}

/* Up to old, new instead of it, and the rest. */
static void
edit_write(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;
	size_t		 end, n;
	int		 error = 0;

	if (ed->ed_done == ed->ed_match) {
		error = replace_write(&ed->ed_file, ed->ed_new,
		    strlen(ed->ed_new));
		ed->ed_done += strlen(ed->ed_old);
	} else if (ed->ed_done < ed->ed_len) {
		end = ed->ed_done < ed->ed_match ? ed->ed_match : ed->ed_len;
		n = end - ed->ed_done > SLICE ? SLICE : end - ed->ed_done;
		error = replace_write(&ed->ed_file, ed->ed_text + ed->ed_done,
		    n);
		ed->ed_done += n;
	} else {
		edit_release(rq);
		edit_settle(rq, replace_commit(&ed->ed_file));
		return;
	}
	if (error == -1)
		request_failed(rq, errno, ed->ed_path);
}

static void
edit_done(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;
	struct jsonw	*w = request_writer();

	jsonw_object(w);
	jsonw_lit(w, "occurrences");
	jsonw_int(w, 1);
	jsonw_lit(w, "bytes");
	jsonw_int(w, ed->ed_file.rp_len);
	jsonw_end(w);
	request_result(rq, w);
}

/* From the file that was written: whoever changes it now is not seen. */
static void
edit_send(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;
	off_t		 left = ed->ed_file.rp_len - ed->ed_sent;
	ssize_t		 n = 0;

	if (left > 0)
		n = request_pread(rq, ed->ed_file.rp_fd, (size_t)left,
		    ed->ed_sent);
	if (n > 0)
		ed->ed_sent += n;
	else if (n == 0 || errno != EINTR)
		edit_done(rq);
}

static void
edit_step(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;

	switch (ed->ed_phase) {
	case EDIT_WAIT:
		edit_wait(rq);
		break;
	case EDIT_READ:
		edit_read(rq);
		break;
	case EDIT_WRITE:
		edit_write(rq);
		break;
	case EDIT_COPY:
		edit_settle(rq, replace_copy(&ed->ed_file));
		break;
	case EDIT_SEND:
		edit_send(rq);
		break;
	}
}

/* The file is changed already: then that is the answer. */
static void
edit_cancel(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;

	if (ed->ed_phase < EDIT_COPY)
		request_error(rq, "cancelled", "cancelled by the client");
	else if (ed->ed_phase == EDIT_SEND)
		edit_done(rq);
}

static void
edit_free(struct request *rq)
{
	struct op_edit	*ed = rq->rq_state;

	edit_release(rq);
	if (ed->ed_begun)
		replace_free(&ed->ed_file);
	if (ed->ed_fd != -1)
		(void)close(ed->ed_fd);
}

const struct op op_edit = {
	.op_name = "edit", .op_members = edit_members,
	.op_size = sizeof(struct op_edit),
	.op_start = edit_start, .op_step = edit_step,
	.op_cancel = edit_cancel, .op_free = edit_free,
};
