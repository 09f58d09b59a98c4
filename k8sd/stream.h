/* SPDX-License-Identifier: ISC */

/*
 * What comes from an exec in a pod (v4.channel.k8s.io and v5): messages whose
 * first byte is the channel.  Output is handed on as it comes, of errors the
 * end is kept, and the Status is put together.
 */

#ifndef STREAM_H
#define STREAM_H

#include "https/ws.h"
#include "status.h"

enum {
	CHANNEL_STDIN = 0,
	CHANNEL_STDOUT = 1,
	CHANNEL_STDERR = 2,
	CHANNEL_ERROR = 3,
	CHANNEL_CLOSE = 255	/* v5: the next byte's channel ends */
};

#define STREAM_TAIL_LEN	1024

struct stream {
	int		 sm_channel;	/* of this message; -1: not known */
	char		*sm_text;	/* of the Status */
	size_t		 sm_text_len;
	bool		 sm_ended;	/* sm_status is what it says */
	struct status	 sm_status;
	bool		 sm_spoke;	/* something came on stdout or stderr */
	char		 sm_tail[STREAM_TAIL_LEN + 1];
	size_t		 sm_tail_len;
};

void	 stream_init(struct stream *);
void	 stream_free(struct stream *);

/*
 * Of a piece, what is output: *len bytes from *out on, perhaps none.  NULL, or
 * what is wrong with it.
 */
const char	*stream_take(struct stream *, const struct https_ws_piece *,
		    const char **out, size_t *len);

#endif /* STREAM_H */
