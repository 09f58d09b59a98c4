/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the channels of an exec are told apart.  What comes is of a
 * program in a pod, by way of a server that is a stranger too.
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "stream.h"

void
stream_init(struct stream *sm)
{
	memset(sm, 0, sizeof(*sm));
	sm->sm_channel = -1;
}

void
stream_free(struct stream *sm)
{
	free(sm->sm_text);
	sm->sm_text = NULL;
}

/* The last bytes of what was written to stderr. */
static void
take_tail(struct stream *sm, const char *data, size_t len)
{
	size_t	 over;

	if (len > STREAM_TAIL_LEN) {
		data += len - STREAM_TAIL_LEN;
		len = STREAM_TAIL_LEN;
	}
	over = sm->sm_tail_len + len;
	over = over > STREAM_TAIL_LEN ? over - STREAM_TAIL_LEN : 0;
	memmove(sm->sm_tail, sm->sm_tail + over, sm->sm_tail_len - over);
	sm->sm_tail_len -= over;
	memcpy(sm->sm_tail + sm->sm_tail_len, data, len);
	sm->sm_tail_len += len;
}

/* In one message, or in several, but only one. */
static const char *
take_status(struct stream *sm, const char *data, size_t len, bool last)
{
	char	*p;

	if (len > 0 && sm->sm_ended)
		return "a second Status";
	if (len > STATUS_LEN - sm->sm_text_len)
		return "a Status that is too long";
	if (len > 0) {
		p = realloc(sm->sm_text, sm->sm_text_len + len);
		if (p == NULL)
			fatal("%s", __func__);
		memcpy(p + sm->sm_text_len, data, len);
		sm->sm_text = p;
		sm->sm_text_len += len;
	}
	if (last && sm->sm_text_len > 0 && !sm->sm_ended)
		sm->sm_ended = status_parse(sm->sm_text, sm->sm_text_len,
		    &sm->sm_status) == 0;
	return NULL;
}

const char *
stream_take(struct stream *sm, const struct https_ws_piece *wp,
    const char **out, size_t *outlen)
{
	const char	*data = wp->wp_data;
	size_t		 len = wp->wp_len;
	int		 channel;

	*outlen = 0;
	if (wp->wp_first)
		sm->sm_channel = -1;
	if (sm->sm_channel == -1 && len > 0) {
		sm->sm_channel = (unsigned char)*data++;
		len--;
	}
	channel = sm->sm_channel;
	if (channel == CHANNEL_ERROR)
		return take_status(sm, data, len, wp->wp_last);
	if (channel != -1 && channel != CHANNEL_STDOUT &&
	    channel != CHANNEL_STDERR)
		return "a channel that is not the server's to write to";
	if (len > 0)
		sm->sm_spoke = true;
	if (channel == CHANNEL_STDERR)
		take_tail(sm, data, len);
	else if (channel == CHANNEL_STDOUT) {
		*out = data;
		*outlen = len;
	}
	return NULL;
}
