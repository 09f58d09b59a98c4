/* SPDX-License-Identifier: ISC */

/*
 * Children with a WebSocket run this: frames (RFC 6455, 5).  wslay takes them
 * apart and puts them together, mask and all; what a frame may be in its place
 * is seen to here, since wslay's own queue would keep whole messages, and does
 * not mind a server that masks.
 */

#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "https/ws_private.h"
#include "log.h"

#define PIECES_MAX	64	/* in one turn of the event loop */
#define MESSAGE_MAX	(32 * 1024 * 1024)

/* ---- wslay's callbacks ---- */

/* wslay takes any failure for "not now"; ws_broken and ws_dry tell more. */
static ssize_t
on_recv(uint8_t *buf, size_t len, int flags, void *arg)
{
	ssize_t	 n = ws_read(arg, buf, len);

	(void)flags;
	return n > 0 ? n : -1;
}

/* There is room: who makes a frame has looked. */
static ssize_t
on_send(const uint8_t *data, size_t len, int flags, void *arg)
{
	(void)flags;
	return ws_put(arg, data, len) == 0 ? (ssize_t)len : -1;
}

static int
on_mask(uint8_t *buf, size_t len, void *arg)
{
	(void)arg;
	arc4random_buf(buf, len);
	return 0;
}

void
ws_frames_new(struct https_ws *ws)
{
	static const struct wslay_frame_callbacks	 callbacks = {
		.send_callback = on_send,
		.recv_callback = on_recv,
		.genmask_callback = on_mask
	};

	if (wslay_frame_context_init(&ws->ws_frames, &callbacks, ws) != 0)
		fatalx("%s: no memory", __func__);
}

/* ---- out ---- */

void
ws_put_frame(struct https_ws *ws, uint8_t opcode, const void *data, size_t len)
{
	struct wslay_frame_iocb	 io = {
		.fin = 1,
		.opcode = opcode,
		.mask = 1,
		.payload_length = len,
		.data = data,
		.data_length = len
	};

	if (wslay_frame_send(ws->ws_frames, &io) != (ssize_t)len)
		fatalx("%s: a frame of %zu bytes", __func__, len);
}

void
ws_put_close(struct https_ws *ws, unsigned int code)
{
	uint8_t	 bytes[2] = { (uint8_t)(code >> 8), (uint8_t)code };

	ws_put_frame(ws, WSLAY_CONNECTION_CLOSE, bytes, code != 0 ? 2 : 0);
}

/* ---- in ---- */

/* RFC 6455, 7.4: what may stand in a frame. */
static bool
is_code(unsigned int code)
{
	return (code >= 1000 && code <= 1003) ||
	    (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static void
take_close(struct https_ws *ws)
{
	const unsigned char	*p = (const unsigned char *)ws->ws_control;
	unsigned int		 code = 0;

	if (ws->ws_control_len >= 2)
		code = (unsigned int)p[0] << 8 | p[1];
	if (ws->ws_control_len == 1 || (code != 0 && !is_code(code)) ||
	    (code == 0 && ws->ws_control_len >= 2)) {
		ws_bad(ws, 1002, "a close without a proper code");
		return;
	}
	ws->ws_code = code;
	ws_closed(ws);
}

static void
take_control(struct https_ws *ws, const struct wslay_frame_iocb *io)
{
	memcpy(ws->ws_control + ws->ws_control_len, io->data,
	    io->data_length);
	ws->ws_control_len += io->data_length;
	if (ws->ws_left > 0)
		return;
	if (io->opcode == WSLAY_CONNECTION_CLOSE)
		take_close(ws);
	/* Who asks and asks and reads no answer need not have all of them. */
	else if (io->opcode == WSLAY_PING && ws->ws_state == WS_OPEN &&
	    ws_has_room(ws))
		ws_put_frame(ws, WSLAY_PONG, ws->ws_control,
		    ws->ws_control_len);
}

static void
take_data(struct https_ws *ws, const struct wslay_frame_iocb *io)
{
	struct https_ws_piece	 wp = {
		.wp_data = (const char *)io->data,
		.wp_len = io->data_length,
		.wp_first = ws->ws_first,
		.wp_last = io->fin && ws->ws_left == 0
	};

	ws->ws_first = false;
	if (wp.wp_last)
		ws->ws_within = false;
	if (ws->ws_state == WS_OPEN)
		ws->ws_calls->wc_piece(ws->ws_arg, &wp);
}

/* NULL, or what is wrong with a frame that begins. */
static const char *
frame_fault(struct https_ws *ws, const struct wslay_frame_iocb *io)
{
	bool	 more = io->opcode == WSLAY_CONTINUATION_FRAME;

	if (io->rsv != 0)
		return "reserved bits are set";
	if (io->mask)
		return "a server that masks";
	switch (io->opcode) {
	case WSLAY_CONNECTION_CLOSE:
	case WSLAY_PING:
	case WSLAY_PONG:
		ws->ws_control_len = 0;
		return io->fin && io->payload_length <= WS_CONTROL_LEN ?
		    NULL : "a control frame that is long or in parts";
	case WSLAY_CONTINUATION_FRAME:
	case WSLAY_BINARY_FRAME:
		break;
	default:
		return "a kind of frame that is not spoken here";
	}
	if (ws->ws_within != more)
		return "a message in the wrong order";
	if (!more) {
		ws->ws_within = ws->ws_first = true;
		ws->ws_message = 0;
	}
	if (io->payload_length > MESSAGE_MAX - ws->ws_message)
		return "a message of more than 32 MiB";
	ws->ws_message += io->payload_length;
	return NULL;
}

/* The rest of the frame is known by what is left of it. */
static void
take_piece(struct https_ws *ws, const struct wslay_frame_iocb *io)
{
	const char	*why;

	if (ws->ws_left == 0) {
		if ((why = frame_fault(ws, io)) != NULL) {
			ws_bad(ws, 1002, why);
			return;
		}
		ws->ws_left = io->payload_length;
	}
	ws->ws_left -= io->data_length;
	if (wslay_is_ctrl_frame(io->opcode))
		take_control(ws, io);
	else
		take_data(ws, io);
}

/* Who has closed need not wait for an answer. */
static void
ws_broke(struct https_ws *ws)
{
	ws->ws_control_len = 0;
	if (ws->ws_state == WS_CLOSING)
		ws_closed(ws);
	else
		ws_fail(ws, "%s", ws->ws_broken);
}

/*
 * Until there is no more, or it is held, or others want their turn.  TLS may
 * have bytes for us that the socket does not show, so that it is asked until
 * it says that there are none.
 */
void
ws_read_frames(struct https_ws *ws, const bool *gone)
{
	struct wslay_frame_iocb	 io;
	unsigned int		 n;
	ssize_t			 rv;

	for (n = 0; n < PIECES_MAX && !ws->ws_held; n++) {
		memset(&io, 0, sizeof(io));
		ws->ws_dry = false;
		rv = wslay_frame_recv(ws->ws_frames, &io);
		if (rv >= 0)
			take_piece(ws, &io);
		else if (rv != WSLAY_ERR_WANT_READ)
			ws_bad(ws, 1002, "a frame with a bad length");
		else if (ws->ws_broken != NULL)
			ws_broke(ws);
		else if (ws->ws_dry)
			return;
		if (*gone || ws->ws_state == WS_CLOSED)
			return;
	}
	if (!ws->ws_held)
		event_active(&ws->ws_readable, EV_READ, 0);
}
