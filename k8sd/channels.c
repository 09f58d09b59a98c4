/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the channels of an exec are told apart.  What comes is of a
 * program in a pod, by way of a server that is a stranger too.
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "channels.h"

void
channels_init(struct channels *cn)
{
	memset(cn, 0, sizeof(*cn));
	cn->cn_channel = -1;
}

void
channels_free(struct channels *cn)
{
	free(cn->cn_text);
	cn->cn_text = NULL;
}

/* The last bytes of what was written to stderr. */
static void
take_tail(struct channels *cn, const char *data, size_t len)
{
	size_t	 over;

	if (len > TAIL_LEN) {
		data += len - TAIL_LEN;
		len = TAIL_LEN;
	}
	over = cn->cn_tail_len + len;
	over = over > TAIL_LEN ? over - TAIL_LEN : 0;
	memmove(cn->cn_tail, cn->cn_tail + over, cn->cn_tail_len - over);
	cn->cn_tail_len -= over;
	memcpy(cn->cn_tail + cn->cn_tail_len, data, len);
	cn->cn_tail_len += len;
}

/* In one message, or in several, but only one. */
static const char *
take_status(struct channels *cn, const char *data, size_t len, bool last)
{
	char	*p;

	if (len > 0 && cn->cn_ended)
		return "a second Status";
	if (len > STATUS_LEN - cn->cn_text_len)
		return "a Status that is too long";
	if (len > 0) {
		p = realloc(cn->cn_text, cn->cn_text_len + len);
		if (p == NULL)
			fatal("%s", __func__);
		memcpy(p + cn->cn_text_len, data, len);
		cn->cn_text = p;
		cn->cn_text_len += len;
	}
	if (last && cn->cn_text_len > 0 && !cn->cn_ended)
		cn->cn_ended = status_parse(cn->cn_text, cn->cn_text_len,
		    &cn->cn_status) == 0;
	return NULL;
}

const char *
channels_take(struct channels *cn, const struct https_ws_piece *wp,
    const char **out, size_t *outlen)
{
	const char	*data = wp->wp_data;
	size_t		 len = wp->wp_len;
	int		 channel;

	*outlen = 0;
	if (wp->wp_first)
		cn->cn_channel = -1;
	if (cn->cn_channel == -1 && len > 0) {
		cn->cn_channel = (unsigned char)*data++;
		len--;
	}
	channel = cn->cn_channel;
	if (channel == CHANNEL_ERROR)
		return take_status(cn, data, len, wp->wp_last);
	if (channel != -1 && channel != CHANNEL_STDOUT &&
	    channel != CHANNEL_STDERR)
		return "a channel that is not the server's to write to";
	if (len > 0)
		cn->cn_spoke = true;
	if (channel == CHANNEL_STDERR)
		take_tail(cn, data, len);
	else if (channel == CHANNEL_STDOUT) {
		*out = data;
		*outlen = len;
	}
	return NULL;
}
