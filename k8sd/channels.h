/* SPDX-License-Identifier: ISC */

/*
 * What comes from an exec in a pod (v4.channel.k8s.io and v5): messages whose
 * first byte is the channel.  Output is handed on as it comes, of errors the
 * end is kept, and the Status is put together.
 */

#ifndef CHANNELS_H
#define CHANNELS_H

#include "https/ws.h"
#include "status.h"

enum {
	CHANNEL_STDIN = 0,
	CHANNEL_STDOUT = 1,
	CHANNEL_STDERR = 2,
	CHANNEL_ERROR = 3,
	CHANNEL_CLOSE = 255	/* v5: the next byte's channel ends */
};

#define TAIL_LEN	1024

struct channels {
	int		 cn_channel;	/* of this message; -1: not known */
	char		*cn_text;	/* of the Status */
	size_t		 cn_text_len;
	bool		 cn_ended;	/* cn_status is what it says */
	struct status	 cn_status;
	bool		 cn_spoke;	/* something came on stdout or stderr */
	char		 cn_tail[TAIL_LEN + 1];
	size_t		 cn_tail_len;
};

void	 channels_init(struct channels *);
void	 channels_free(struct channels *);

/*
 * Of a piece, what is output: *len bytes from *out on, perhaps none.  NULL, or
 * what is wrong with it.
 */
const char	*channels_take(struct channels *, const struct https_ws_piece *,
		    const char **out, size_t *len);

#endif /* CHANNELS_H */
