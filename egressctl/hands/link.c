/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a connection that carries frames, to box in a sandbox.  Box is
 * hostile: a frame that is not in order ends the link, and neither what waits
 * to be read nor what waits to be sent grows beyond a limit.
 */

#include <sys/socket.h>

#include <endian.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "show.h"

/* ---- how it ends --------------------------------------------------------- */

static void
fail(struct link *lk, const char *before, const char *fmt, va_list ap)
{
	char	text[sizeof(lk->lk_error)];

	/* The first error is the cause of the others. */
	if (lk->lk_error[0] != '\0')
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	strlcpy(lk->lk_error, before, sizeof(lk->lk_error));
	strlcat(lk->lk_error, text, sizeof(lk->lk_error));
}

/* Ends the link; link_handle() tells the calls. */
void
link_fail(struct link *lk, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	fail(lk, "", fmt, ap);
	va_end(ap);
}

/* The same for what box must not do. */
void
link_broken(struct link *lk, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	fail(lk, "the sandbox does not keep to the protocol: ", fmt, ap);
	va_end(ap);
}

const char *
link_error(const struct link *lk)
{
	return lk->lk_error[0] != '\0' ? lk->lk_error : NULL;
}

/* ---- sending ------------------------------------------------------------- */

/* Room for so much more to be sent; -1 ends the link. */
static int
out_room(struct link *lk, size_t len)
{
	size_t	 size = lk->lk_out_size;
	char	*buf;

	if (lk->lk_out_at > 0) {
		lk->lk_out_len -= lk->lk_out_at;
		memmove(lk->lk_out, lk->lk_out + lk->lk_out_at,
		    lk->lk_out_len);
		lk->lk_out_at = 0;
	}
	if (len <= size - lk->lk_out_len)
		return 0;
	while (size - lk->lk_out_len < len)
		size = size == 0 ? FRAME_BODY_MAX : size * 2;
	if (size > LINK_OUT_MAX) {
		link_broken(lk, "it does not read what it is sent");
		return -1;
	}
	if ((buf = realloc(lk->lk_out, size)) == NULL) {
		link_fail(lk, "out of memory");
		return -1;
	}
	lk->lk_out = buf;
	lk->lk_out_size = size;
	return 0;
}

/* Queues a frame. */
void
link_put(struct link *lk, uint32_t id, uint8_t kind, const char *body,
    size_t len)
{
	uint32_t	 be;
	char		*p;

	if (lk->lk_deaf || lk->lk_error[0] != '\0' ||
	    out_room(lk, FRAME_HEAD_LEN + len) == -1)
		return;
	p = lk->lk_out + lk->lk_out_len;
	memset(p, 0, FRAME_HEAD_LEN);
	be = htobe32((uint32_t)len);
	memcpy(p, &be, sizeof(be));
	be = htobe32(id);
	memcpy(p + 4, &be, sizeof(be));
	p[8] = (char)kind;
	if (len > 0)
		memcpy(p + FRAME_HEAD_LEN, body, len);
	lk->lk_out_len += FRAME_HEAD_LEN + len;
}

static void
link_flush(struct link *lk)
{
	ssize_t	n;

	while (lk->lk_out_at < lk->lk_out_len) {
		n = send(lk->lk_fd, lk->lk_out + lk->lk_out_at,
		    lk->lk_out_len - lk->lk_out_at,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n == -1) {
			/* Why it hung up, box may have said before. */
			lk->lk_deaf = 1;
			lk->lk_out_at = lk->lk_out_len = 0;
			return;
		}
		lk->lk_out_at += (size_t)n;
	}
}

/* ---- receiving ----------------------------------------------------------- */

static void
take_limits(struct link *lk, const cJSON *limits)
{
	uint64_t	n;

	if (body_number(limits, "requests", &n) == 0 && n > 0 &&
	    n < CALLS_MAX)
		lk->lk_limit = (size_t)n;
	if (body_number(limits, "credit", &n) == 0 && n > 0 &&
	    n < FRAME_CREDIT)
		lk->lk_credit = (size_t)n;
}

/* The first frame of all. */
static void
take_hello(struct link *lk, cJSON *hello)
{
	uint64_t	version;

	if (body_number(hello, "protocol", &version) == -1)
		link_broken(lk, "its greeting names no version");
	else if (version != PROTOCOL_VERSION)
		link_fail(lk, "the sandbox speaks version %llu of the "
		    "protocol, egressctl version %d",
		    (unsigned long long)version, PROTOCOL_VERSION);
	else if (json_string(hello, "cwd") == NULL ||
	    !cJSON_IsArray(json_get(hello, "operations")))
		link_broken(lk, "its greeting lacks cwd or operations");
	take_limits(lk, json_get(hello, "limits"));
	lk->lk_hello = hello;
}

/* A frame that is about the connection itself. */
static void
take_own(struct link *lk, const struct frame *fm)
{
	const char	*code, *message;
	cJSON		*json;

	if (fm->fm_kind != FRAME_ERROR && (fm->fm_kind != FRAME_RESULT ||
	    lk->lk_hello != NULL)) {
		link_broken(lk, "a frame of kind %u without a request",
		    fm->fm_kind);
		return;
	}
	if ((json = body_parse(fm->fm_body, fm->fm_len)) == NULL) {
		link_broken(lk, "not a JSON object where one has to be");
		return;
	}
	if (fm->fm_kind == FRAME_RESULT) {
		take_hello(lk, json);
		return;
	}
	code = json_string(json, "code");
	message = json_string(json, "message");
	link_fail(lk, "the sandbox hung up: %s (%s)",
	    message != NULL ? message : "no message",
	    code != NULL ? code : "no code");
	cJSON_Delete(json);
}

static void
take_frame(struct link *lk, const struct frame *fm)
{
	if (fm->fm_id == 0)
		take_own(lk, fm);
	else if (lk->lk_hello == NULL)
		link_broken(lk, "it does not begin with a greeting");
	else
		call_take(lk, fm);
}

/* The head at p: 0, or -1 if no frame begins so. */
static int
read_head(struct link *lk, const char *p, struct frame *fm)
{
	uint32_t	len, id;

	memcpy(&len, p, sizeof(len));
	memcpy(&id, p + 4, sizeof(id));
	fm->fm_len = be32toh(len);
	fm->fm_id = be32toh(id);
	fm->fm_kind = (uint8_t)p[8];
	fm->fm_body = p + FRAME_HEAD_LEN;
	if (fm->fm_len > FRAME_BODY_MAX)
		link_broken(lk, "a frame of %zu bytes (at most %d)",
		    fm->fm_len, FRAME_BODY_MAX);
	else if (p[9] != 0 || p[10] != 0 || p[11] != 0)
		link_broken(lk, "a frame whose reserved bytes are not zero");
	else if (fm->fm_kind < FRAME_CALL || fm->fm_kind > FRAME_ITEM)
		link_broken(lk, "a frame of the unknown kind %u",
		    fm->fm_kind);
	else
		return 0;
	return -1;
}

/* Takes all frames that are whole.  JSON wants a NUL behind it. */
static void
take_frames(struct link *lk)
{
	struct frame	fm;
	size_t		at = 0;
	char		behind, *end;

	while (lk->lk_error[0] == '\0' &&
	    lk->lk_in_len - at >= FRAME_HEAD_LEN) {
		if (read_head(lk, lk->lk_in + at, &fm) == -1 ||
		    lk->lk_in_len - at - FRAME_HEAD_LEN < fm.fm_len)
			break;
		end = lk->lk_in + at + FRAME_HEAD_LEN + fm.fm_len;
		behind = *end;
		*end = '\0';
		take_frame(lk, &fm);
		*end = behind;
		at += FRAME_HEAD_LEN + fm.fm_len;
	}
	lk->lk_in_len -= at;
	memmove(lk->lk_in, lk->lk_in + at, lk->lk_in_len);
}

static void
link_read(struct link *lk)
{
	ssize_t	n;

	n = recv(lk->lk_fd, lk->lk_in + lk->lk_in_len,
	    lk->lk_in_size - lk->lk_in_len, MSG_DONTWAIT);
	if (n > 0) {
		lk->lk_in_len += (size_t)n;
		take_frames(lk);
	} else if (n == 0 || errno == ECONNRESET)
		link_fail(lk, lk->lk_in_len > 0 ?
		    "the sandbox hung up in the middle of a frame" :
		    lk->lk_hello == NULL ? "the sandbox hung up before it "
		    "said anything: it ends, could not serve, or serves 32 "
		    "clients already" :
		    "the sandbox hung up: it has ended or was stopped, or "
		    "the connection to its pod is lost");
	else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
		link_fail(lk, "receive: %s", strerror(errno));
}

/* ---- the link ------------------------------------------------------------ */

/* Takes the descriptor; the bytes are those that were read of it already. */
struct link *
link_new(int fd, const char *bytes, size_t len)
{
	struct link	*lk;

	if ((lk = calloc(1, sizeof(*lk))) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	lk->lk_fd = fd;
	lk->lk_limit = CALLS_MAX;
	lk->lk_credit = FRAME_CREDIT;
	lk->lk_in_size = LINK_IN_LEN + len;
	/* One more, for the NUL behind a frame. */
	if ((lk->lk_in = malloc(lk->lk_in_size + 1)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	if (len > 0)
		memcpy(lk->lk_in, bytes, len);
	lk->lk_in_len = len;
	take_frames(lk);
	return lk;
}

void
link_close(struct link *lk)
{
	if (lk == NULL)
		return;
	while (lk->lk_ncalls > 0)
		free(lk->lk_calls[--lk->lk_ncalls]);
	close(lk->lk_fd);
	cJSON_Delete(lk->lk_hello);
	free(lk->lk_in);
	free(lk->lk_out);
	free(lk);
}

int
link_fd(const struct link *lk)
{
	return lk->lk_fd;
}

short
link_events(const struct link *lk)
{
	return lk->lk_out_at < lk->lk_out_len ? POLLIN | POLLOUT : POLLIN;
}

/* After poll(2).  -1 if the link is over; its calls have been told. */
int
link_handle(struct link *lk, short revents)
{
	if (lk->lk_error[0] == '\0' && revents & ~POLLOUT)
		link_read(lk);
	if (lk->lk_error[0] == '\0')
		link_flush(lk);
	if (lk->lk_error[0] == '\0')
		return 0;
	calls_gone(lk);
	return -1;
}

/* 1: something was handled; 0: nothing came in time; -1: it is over. */
int
link_wait(struct link *lk, int timeout_ms)
{
	struct pollfd	pfd;
	int		n;

	if (link_handle(lk, 0) == -1)
		return -1;
	pfd.fd = lk->lk_fd;
	pfd.events = link_events(lk);
	if ((n = poll(&pfd, 1, timeout_ms)) == -1 && errno != EINTR)
		link_fail(lk, "poll: %s", strerror(errno));
	if (n == 0)
		return 0;
	return link_handle(lk, n > 0 ? pfd.revents : 0) == -1 ? -1 : 1;
}

const cJSON *
link_hello(const struct link *lk)
{
	return lk->lk_hello;
}

int
link_can(const struct link *lk, const char *op)
{
	const cJSON	*item;

	cJSON_ArrayForEach(item, json_get(lk->lk_hello, "operations"))
		if (cJSON_IsString(item) && strcmp(item->valuestring, op) == 0)
			return 1;
	return 0;
}
