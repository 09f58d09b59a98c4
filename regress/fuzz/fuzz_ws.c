/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/https/ws_frame.c and k8sd/channels.c: what a server
 * sends after it has agreed to an upgrade, taken apart into frames, messages
 * and the channels of an exec.  The first byte of the input says after how
 * many pieces the reader pauses; that must not change what is read.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "common/child.h"
#include "https/ws_private.h"
#include "k8sd/channels.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static struct {
	struct https_ws	*ws;
	struct channels	 channels;
	size_t		 bytes;		/* of the input, at most */
	size_t		 taken;
	unsigned int	 pause;
	unsigned int	 pieces;
	bool		 within;
	bool		 gone;
	uint64_t	 sum;		/* of the output */
} now;

static void
on_piece(void *arg, const struct https_ws_piece *wp)
{
	const char	*out = NULL;
	size_t		 i, len = 0;

	REQUIRE(arg == &now);
	REQUIRE(wp->wp_first == !now.within);
	now.within = !wp->wp_last;
	now.taken += wp->wp_len;
	REQUIRE(now.taken <= now.bytes);
	if (channels_take(&now.channels, wp, &out, &len) != NULL)
		return;
	REQUIRE(len <= wp->wp_len);
	REQUIRE(now.channels.cn_tail_len <= TAIL_LEN);
	REQUIRE(now.channels.cn_text_len <= STATUS_LEN);
	for (i = 0; i < len; i++)
		now.sum = now.sum * 31 + (unsigned char)out[i];
	if (now.pause != 0 && ++now.pieces % now.pause == 0)
		now.ws->ws_held = true;
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

static void
on_open(void *arg, size_t which)
{
	(void)arg, (void)which;
}

static void
on_end(void *arg, const struct https_answer *ha)
{
	(void)arg, (void)ha;
	now.gone = true;
}

static const struct https_ws_calls	 calls = {
	.wc_open = on_open,
	.wc_piece = on_piece,
	.wc_room = on_nothing,
	.wc_end = on_end
};

static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

/* A socket whose connection has ended after these bytes. */
static struct https_ws *
socket_new(const uint8_t *data, size_t size)
{
	static struct https_server	*server;
	struct https_ws			*ws;
	struct https_call		*ca;

	if (child_base == NULL) {
		child_base = event_base_new();
		server = https_server_new("http://127.0.0.1/");
	}
	if ((ws = calloc(1, sizeof(*ws))) == NULL ||
	    (ca = calloc(1, sizeof(*ca))) == NULL ||
	    (ws->ws_in = malloc(size + 1)) == NULL ||
	    (ca->ca_easy = curl_easy_init()) == NULL)
		abort();
	server->sv_refs++;
	ca->ca_server = server;
	ca->ca_done = on_end;
	event_assign(&ca->ca_event, child_base, -1, 0, on_event, NULL);
	event_assign(&ws->ws_readable, child_base, -1, 0, on_event, NULL);
	event_assign(&ws->ws_writable, child_base, -1, 0, on_event, NULL);
	event_assign(&ws->ws_timer, child_base, -1, 0, on_event, NULL);
	memcpy(ws->ws_in, data, size);
	ws->ws_in_len = size;
	ws->ws_call = ca;
	ws->ws_calls = &calls;
	ws->ws_arg = &now;
	ws->ws_state = WS_OPEN;
	ws_frames_new(ws);
	return ws;
}

/* The sum of the output, however often the reader pauses. */
static uint64_t
read_all(const uint8_t *data, size_t size, unsigned int pause)
{
	struct https_ws	*ws = socket_new(data, size);
	size_t		 turns;

	memset(&now, 0, sizeof(now));
	now.ws = ws;
	now.bytes = size;
	now.pause = pause;
	channels_init(&now.channels);
	for (turns = 0; !now.gone && ws->ws_state == WS_OPEN; turns++) {
		REQUIRE(turns <= size + 2);
		ws->ws_held = false;
		ws_read_frames(ws, &now.gone);
		/* Nobody takes what we say; it stays bounded. */
		REQUIRE(ws->ws_out_len <= 64 * 1024);
	}
	if (!now.gone) {
		event_del(&ws->ws_timer);
		https_cancel(ws->ws_call);
	}
	event_del(&ws->ws_readable);
	wslay_frame_context_free(ws->ws_frames);
	channels_free(&now.channels);
	free(ws->ws_out);
	free(ws->ws_in);
	free(ws);
	return now.sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int	 pause = size > 0 ? data[0] % 5 + 1 : 1;

	if (size == 0)
		return 0;
	REQUIRE(read_all(data + 1, size - 1, 0) ==
	    read_all(data + 1, size - 1, pause));
	return 0;
}
