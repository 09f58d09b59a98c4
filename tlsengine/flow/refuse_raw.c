/* SPDX-License-Identifier: ISC */

/* tlsengine runs this; see refuse_raw.h. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "refuse_raw.h"

#define SPOKEN_LEN	8	/* bytes that tell all of them */
#define TEXT_MAX	512
#define SSH_BLOCK	8	/* before keys there are, RFC 4253, 6 */
#define SSH_PADDING	4	/* at least */
#define SSH_DISCONNECT	1
#define SSH_BY_APPLICATION	11

#define PG_VERSION_3	0x00030000
#define PG_SSL		0x04d2162f
#define PG_GSS		0x04d21630

/* The longest is SSH's: version, packet, empty language tag, padding. */
_Static_assert(TEXT_MAX + 64 <= REFUSE_RAW_MAX &&
    POSTGRES_TLS_LEN >= SPOKEN_LEN, "a refusal has its room");

static uint32_t
get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	    (uint32_t)p[2] << 8 | p[3];
}

static unsigned char *
put_u32(unsigned char *p, size_t n)
{
	*p++ = (unsigned char)(n >> 24);
	*p++ = (unsigned char)(n >> 16);
	*p++ = (unsigned char)(n >> 8);
	*p++ = (unsigned char)n;
	return p;
}

/* Text with its terminating NUL. */
static unsigned char *
put_text(unsigned char *p, const char *text, size_t len)
{
	memcpy(p, text, len);
	p[len] = '\0';
	return p + len + 1;
}

static int
is_hex(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static int
begins(const unsigned char *p, size_t len, const char *word)
{
	return memcmp(p, word, len < strlen(word) ? len : strlen(word)) == 0;
}

/* A pkt-line: git sends its length and what follows it apart. */
static int
is_git(const unsigned char *p, size_t len)
{
	size_t	 i;

	for (i = 0; i < len && i < 4; i++)
		if (!is_hex(p[i]))
			return 0;
	return len <= 4 || begins(p + 4, len - 4, "git-");
}

static enum spoken
spoken_postgres(const unsigned char *p)
{
	if (get_u32(p) == POSTGRES_TLS_LEN &&
	    (get_u32(p + 4) == PG_SSL || get_u32(p + 4) == PG_GSS))
		return SPOKEN_POSTGRES_TLS;
	return get_u32(p + 4) >> 16 == PG_VERSION_3 >> 16 ? SPOKEN_POSTGRES :
	    SPOKEN_UNKNOWN;
}

enum spoken
spoken_of(const unsigned char *p, size_t len)
{
	int	 git = is_git(p, len), ssh = begins(p, len, "SSH-");
	int	 postgres = len == 0 || (p[0] == 0 && (len == 1 || p[1] == 0));

	if (!git && !ssh && !postgres)
		return SPOKEN_UNKNOWN;
	if (len < SPOKEN_LEN)
		return SPOKEN_MORE;
	return git ? SPOKEN_GIT : ssh ? SPOKEN_SSH : spoken_postgres(p);
}

/* git prints it behind "fatal: remote error: ". */
static size_t
refuse_git(const char *text, size_t len, unsigned char *out)
{
	return (size_t)snprintf((char *)out, REFUSE_RAW_MAX, "%04zxERR %.*s",
	    4 + 4 + len, (int)len, text);
}

/* RFC 4253, 11.1, in a packet without a key. */
static size_t
refuse_ssh(const char *text, size_t len, unsigned char *out)
{
	static const char	 version[] = "SSH-2.0-egressd\r\n";
	size_t			 payload, padding;
	unsigned char		*p = out;

	payload = 1 + 4 + 4 + len + 4;
	padding = SSH_BLOCK - (4 + 1 + payload) % SSH_BLOCK;
	if (padding < SSH_PADDING)
		padding += SSH_BLOCK;
	memcpy(p, version, strlen(version));
	p = put_u32(p + strlen(version), 1 + payload + padding);
	*p++ = (unsigned char)padding;
	*p++ = SSH_DISCONNECT;
	p = put_u32(p, SSH_BY_APPLICATION);
	p = put_u32(p, len);
	memcpy(p, text, len);
	p = put_u32(p + len, 0);
	memset(p, 0, padding);
	return (size_t)(p + padding - out);
}

/* ErrorResponse; 28000 is invalid_authorization_specification. */
static size_t
refuse_postgres(const char *text, size_t len, unsigned char *out)
{
	unsigned char	*p = out + 1 + 4;

	out[0] = 'E';
	p = put_text(p, "SFATAL", 6);
	p = put_text(p, "VFATAL", 6);
	p = put_text(p, "C28000", 6);
	*p++ = 'M';
	p = put_text(p, text, len);
	*p++ = '\0';
	put_u32(out + 1, (size_t)(p - out) - 1);
	return (size_t)(p - out);
}

size_t
refuse_raw(enum spoken spoken, const char *text,
    unsigned char out[REFUSE_RAW_MAX])
{
	size_t	 len = strnlen(text, TEXT_MAX);

	switch (spoken) {
	case SPOKEN_GIT:
		return refuse_git(text, len, out);
	case SPOKEN_SSH:
		return refuse_ssh(text, len, out);
	case SPOKEN_POSTGRES:
		return refuse_postgres(text, len, out);
	default:
		return 0;
	}
}
