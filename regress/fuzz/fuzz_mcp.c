/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for the lines that a client sends to egressctl mcp.  The input's
 * first byte says in pieces of which size, the second what goes before; the
 * rest is standard input.  Whatever it is, each answer is one line of JSON-RPC,
 * and no request is left when the sandbox is gone.
 */

#include <sys/socket.h>

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../egressctl/list.h"
#include "../../egressctl/mcp/mcp.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

#define INPUT_MAX	65536		/* what a pipe takes at once */
#define DO_INITIALIZE	0x01
#define DO_BATCHES	0x02		/* of the version that has them */
#define DO_MOUNTS	0x04

static const char hello[] = "{\"protocol\":1,\"cwd\":\"/work\",\"operations\":["
    "\"read\",\"write\",\"edit\",\"exec\",\"glob\",\"grep\",\"list\",\"stat\","
    "\"mkdir\",\"remove\",\"mount\"]}";

/* Standard input is a pipe, of which this is the other end. */
static int
input(void)
{
	static int	fds[2] = { -1, -1 };

	if (fds[1] == -1) {
		REQUIRE(pipe(fds) == 0);
		REQUIRE(dup2(fds[0], STDIN_FILENO) == STDIN_FILENO);
	}
	return fds[1];
}

static void
drain(int fd)
{
	char	buf[65536];

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

static void
say(struct server *sv, int box, const uint8_t *data, size_t size, size_t step)
{
	size_t	n;

	for (; size > 0 && !sv->sv_eof; data += n, size -= n) {
		n = size < step ? size : step;
		REQUIRE(write(input(), data, n) == (ssize_t)n);
		stdio_read(sv);
		work_turn(sv);
		(void)link_handle(sv->sv_link, POLLOUT);
		drain(box);
	}
}

static void
initialize(struct server *sv, int box, const char *version)
{
	char	line[256];
	int	len;

	len = snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":0,"
	    "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%s\","
	    "\"capabilities\":{},\"clientInfo\":{\"name\":\"x\","
	    "\"version\":\"1\"}}}\n", version);
	say(sv, box, (const uint8_t *)line, (size_t)len, (size_t)len);
	REQUIRE(sv->sv_version != VERSION_NONE && stdio_waits(sv));
}

static void
check_answer(const char *line, size_t len)
{
	cJSON		*json = cJSON_ParseWithLength(line, len);
	const cJSON	*one = cJSON_IsArray(json) ? json->child : json;

	REQUIRE(json != NULL && one != NULL);
	for (; one != NULL; one = one->next)
		REQUIRE(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(one,
		    "jsonrpc")), "2.0") == 0);
	cJSON_Delete(json);
}

static void
check_answers(const struct server *sv)
{
	const char	*newline;
	size_t		 at, len;

	for (at = 0; at < sv->sv_out_len; at += len + 1) {
		newline = memchr(sv->sv_out + at, '\n', sv->sv_out_len - at);
		REQUIRE(newline != NULL);
		len = (size_t)(newline - (sv->sv_out + at));
		check_answer(sv->sv_out + at, len);
	}
}

static struct link *
box_new(int *box)
{
	char	head[FRAME_HEAD_LEN + sizeof(hello)] = { 0 };
	int	fds[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	head[3] = (char)(sizeof(hello) - 1);
	head[8] = FRAME_RESULT;
	memcpy(head + FRAME_HEAD_LEN, hello, sizeof(hello) - 1);
	*box = fds[1];
	return link_new(fds[0], head, FRAME_HEAD_LEN + sizeof(hello) - 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char	*directory = "/srv";
	struct list		 mounts = { 0 };
	struct server		 sv = { .sv_mounts = &mounts };
	int			 box;

	if (size < 2 || size - 2 > INPUT_MAX)
		return 0;
	TAILQ_INIT(&sv.sv_jobs);
	sv.sv_session = "s";
	sv.sv_control.cl_fd = -1;
	sv.sv_link = box_new(&box);
	REQUIRE(link_hello(sv.sv_link) != NULL);
	if (data[1] & DO_MOUNTS)
		list_add(&mounts, directory);
	if (data[1] & (DO_INITIALIZE | DO_BATCHES))
		initialize(&sv, box, data[1] & DO_BATCHES ? "2025-03-26" :
		    "2025-11-25");
	say(&sv, box, data + 2, size - 2, ((size_t)data[0] + 1) * 64);
	jobs_lost(&sv, "over");
	REQUIRE(TAILQ_EMPTY(&sv.sv_jobs));
	check_answers(&sv);
	link_close(sv.sv_link);
	close(box);
	free(mounts.li_words);
	free(sv.sv_in);
	free(sv.sv_out);
	free(sv.sv_reason);
	return 0;
}
