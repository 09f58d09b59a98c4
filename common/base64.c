/* SPDX-License-Identifier: ISC */

/*
 * Whoever reads or writes certificates, keys and passwords in other people's
 * formats runs this; the text may be anything.
 */

#include <stdint.h>
#include <string.h>

#include "base64.h"

static const char	alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(const void *bytes, size_t len, char *text)
{
	const uint8_t	*in = bytes;
	uint32_t	 v;

	for (; len > 0; in += 3, len -= len < 3 ? len : 3) {
		v = (uint32_t)in[0] << 16;
		v |= len > 1 ? (uint32_t)in[1] << 8 : 0;
		v |= len > 2 ? in[2] : 0;
		*text++ = alphabet[v >> 18];
		*text++ = alphabet[v >> 12 & 63];
		*text++ = len > 1 ? alphabet[v >> 6 & 63] : '=';
		*text++ = len > 2 ? alphabet[v & 63] : '=';
	}
	*text = '\0';
}

long
base64_decode(const char *text, size_t len, void *bytes)
{
	uint8_t		*out = bytes;
	const char	*at;
	uint32_t	 v = 0;
	size_t		 i, n = 0, pad = 0;

	for (i = 0; i < len; i++) {
		if (text[i] == '\r' || text[i] == '\n')
			continue;
		at = text[i] == '\0' ? NULL : strchr(alphabet, text[i]);
		if ((at == NULL) != (text[i] == '=') || (pad > 0 && at != NULL))
			return -1;
		pad += at == NULL;
		v = v << 6 | (at == NULL ? 0 : (uint32_t)(at - alphabet));
		if (++n % 4 != 0)
			continue;
		*out++ = (uint8_t)(v >> 16);
		*out++ = (uint8_t)(v >> 8);
		*out++ = (uint8_t)v;
	}
	if (n % 4 != 0 || pad > 2 || (pad > 0 && (v & (pad == 2 ? 0xffff :
	    0xff)) != 0))
		return -1;
	return (long)(n / 4 * 3 - pad);
}
