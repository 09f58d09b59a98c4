/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for egressctl's reader of frames.  The input is what a box that
 * was taken over sends: its first byte says in pieces of which size, the
 * second what the calls do meanwhile and whether an honest greeting goes
 * first, the rest is sent.
 */

#include <sys/socket.h>

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../egressctl/hands/hands.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

#define NCALLS		4
#define DO_GREET	0x01
#define DO_CANCEL	0x02	/* a call, when it gets something */
#define DO_DROP		0x04
#define DO_GRANT	0x08
#define DO_SEND		0x10
#define DO_AGAIN	0x20	/* another call, when one is done */

static struct {
	struct link	*link;
	unsigned int	 what;
	size_t		 waits[NCALLS];		/* bytes not granted */
	int		 begun[NCALLS];
	int		 done[NCALLS];
	int		 dropped[NCALLS];
} fz;

static const char hello[] =
    "{\"protocol\":1,\"cwd\":\"/\",\"operations\":[\"read\"]}";

static void	begin(size_t);

static size_t
index_of(const struct call *ca)
{
	const int	*at = call_arg(ca);

	return (size_t)(at - fz.begun);
}

static void
meddle(struct call *ca, size_t i)
{
	REQUIRE(!fz.done[i] && !fz.dropped[i]);
	if (fz.what & DO_SEND && call_room(ca) > 0) {
		call_send(ca, "x", 1);
		call_end(ca);
	}
	if (fz.what & DO_CANCEL)
		call_cancel(ca);
	if (fz.what & DO_DROP) {
		call_drop(ca);
		fz.dropped[i] = 1;
	}
}

static void
take_data(struct call *ca, const char *data, size_t len)
{
	size_t	i = index_of(ca);

	REQUIRE(len > 0 && len <= FRAME_BODY_MAX);
	REQUIRE(memchr(data, data[len - 1], len) != NULL);
	fz.waits[i] += len;
	REQUIRE(i != 1 || fz.waits[i] <= FRAME_CREDIT);
	if (i == 1 && fz.what & DO_GRANT) {
		call_grant(ca, fz.waits[i]);
		fz.waits[i] = 0;
	}
	meddle(ca, i);
}

static void
take_end(struct call *ca)
{
	meddle(ca, index_of(ca));
}

static void
take_item(struct call *ca, const cJSON *json, const char *text)
{
	REQUIRE(cJSON_IsObject(json));
	REQUIRE(strlen(text) <= FRAME_BODY_MAX && strchr(text, '\n') == NULL);
	meddle(ca, index_of(ca));
}

static void
take_done(struct call *ca, const struct outcome *oc)
{
	size_t	i = index_of(ca);

	REQUIRE(!fz.done[i] && !fz.dropped[i]);
	REQUIRE((oc->oc_code == NULL) == (oc->oc_message == NULL));
	REQUIRE(oc->oc_code != NULL || cJSON_IsObject(oc->oc_body));
	REQUIRE(oc->oc_text != NULL || strcmp(oc->oc_code, "gone") == 0);
	REQUIRE(call_room(ca) == 0);
	fz.done[i] = 1;
	if (fz.what & DO_AGAIN)
		begin(i);
}

/* Like read, a forwarded stream, glob, and stat. */
static const struct call_ops ops[NCALLS] = {
	{ .op_data = take_data, .op_end = take_end, .op_done = take_done },
	{ .op_data = take_data, .op_errors = take_data, .op_end = take_end,
	    .op_done = take_done, .op_slow = 1 },
	{ .op_item = take_item, .op_done = take_done },
	{ .op_done = take_done },
};

static void
begin(size_t i)
{
	const char	*why = NULL;
	struct jsonw	 w;

	call_op(&w, "x");
	if (link_call(fz.link, &w, &ops[i], &fz.begun[i], &why) == NULL) {
		REQUIRE(why != NULL);
		return;
	}
	fz.begun[i] = 1;
	fz.done[i] = fz.dropped[i] = 0;
	fz.waits[i] = 0;
}

static void
put_hello(int fd)
{
	unsigned char	head[FRAME_HEAD_LEN] = { 0 };

	head[3] = sizeof(hello) - 1;
	head[8] = FRAME_RESULT;
	REQUIRE(write(fd, head, sizeof(head)) == sizeof(head));
	REQUIRE(write(fd, hello, sizeof(hello) - 1) == sizeof(hello) - 1);
}

/* Feeds it all, until the link is over. */
static void
feed(int fd, const uint8_t *data, size_t size, size_t step)
{
	char	drain[65536];
	size_t	n;

	for (; size > 0; data += n, size -= n) {
		n = size < step ? size : step;
		REQUIRE(write(fd, data, n) == (ssize_t)n);
		if (link_handle(fz.link, POLLIN) == -1)
			return;
		while (recv(fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
			;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t	i;
	int	fds[2];

	if (size < 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == -1)
		return 0;
	memset(&fz, 0, sizeof(fz));
	fz.what = data[1];
	fz.link = link_new(fds[0], NULL, 0);
	if (fz.what & DO_GREET)
		put_hello(fds[1]);
	for (i = 0; i < NCALLS; i++)
		begin(i);
	feed(fds[1], data + 2, size - 2, ((size_t)data[0] + 1) * 16);
	/* Without a word of box's the link ends, and every call with it. */
	fz.what &= ~DO_AGAIN;
	shutdown(fds[1], SHUT_RDWR);
	for (i = 0; link_handle(fz.link, POLLIN) == 0; i++)
		REQUIRE(i < 10);
	REQUIRE(link_error(fz.link) != NULL);
	for (i = 0; i < NCALLS; i++)
		REQUIRE(!fz.begun[i] || fz.done[i] || fz.dropped[i]);
	link_close(fz.link);
	close(fds[1]);
	return 0;
}
