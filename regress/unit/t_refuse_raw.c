/* SPDX-License-Identifier: ISC */

/* Tests of tlsengine/flow/refuse_raw.c: whom it knows, and what it says. */

#include "test.h"

#include "../../tlsengine/flow/refuse_raw.h"

static unsigned char	 out[REFUSE_RAW_MAX + 1];

/* Until it can be told, it may be; unknown it is as soon as it may not. */
static void
check_spoken(const char *bytes, size_t len, enum spoken want)
{
	enum spoken	 got = SPOKEN_MORE;
	size_t		 i;

	for (i = 0; i <= len; i++) {
		if (got != SPOKEN_MORE)
			CHECK_INT(spoken_of((const unsigned char *)bytes, i),
			    got);
		got = spoken_of((const unsigned char *)bytes, i);
		if (i < 8 && want != SPOKEN_UNKNOWN)
			CHECK_INT(got, SPOKEN_MORE);
	}
	CHECK_INT(got, want);
}

#define SPOKEN(bytes, want)	check_spoken(bytes, sizeof(bytes) - 1, want)

TEST(spoken)
{
	SPOKEN("0032git-upload-pack /x\0host=a\0", SPOKEN_GIT);
	SPOKEN("00AFgit-upload-pack", SPOKEN_UNKNOWN);
	SPOKEN("SSH-2.0-OpenSSH_9.2\r\n", SPOKEN_SSH);
	SPOKEN("\0\0\0\x08\x04\xd2\x16\x2f", SPOKEN_POSTGRES_TLS);
	SPOKEN("\0\0\0\x08\x04\xd2\x16\x30", SPOKEN_POSTGRES_TLS);
	SPOKEN("\0\0\0\x54\0\x03\0\0user\0a\0", SPOKEN_POSTGRES);
	SPOKEN("\0\0\0\x08\x04\xd2\x16\x2e", SPOKEN_UNKNOWN);
	SPOKEN("\0\x01", SPOKEN_UNKNOWN);
	SPOKEN("G", SPOKEN_UNKNOWN);
	SPOKEN("SEARCH / HTTP/1.1\r\n", SPOKEN_UNKNOWN);
	SPOKEN("GET /git-x HTTP/1.1\r\n", SPOKEN_UNKNOWN);
	SPOKEN("\x16\x03\x01\x02\x00\x01\0\0", SPOKEN_UNKNOWN);
	SPOKEN("0000GET / HTTP/1.1", SPOKEN_UNKNOWN);
}

TEST(said_to_git)
{
	size_t	 len = refuse_raw(SPOKEN_GIT, "no", out);

	CHECK_MEM(out, len, "000aERR no", 10);
}

TEST(said_to_postgres)
{
	static const char	 want[] = "E\0\0\0\x1e" "SFATAL\0VFATAL\0"
	    "C28000\0Mno\0";
	size_t			 len = refuse_raw(SPOKEN_POSTGRES, "no", out);

	CHECK_MEM(out, len, want, sizeof(want));
}

/* Whole blocks, with enough padding, whatever the length. */
TEST(said_to_ssh)
{
	static const char	 version[] = "SSH-2.0-egressd\r\n";
	char			 text[128];
	const unsigned char	*p = out + strlen(version);
	size_t			 n, len;

	for (n = 0; n < sizeof(text); n++) {
		memset(text, 'x', n);
		text[n] = '\0';
		len = refuse_raw(SPOKEN_SSH, text, out) - strlen(version);
		CHECK_MEM(out, strlen(version), version, strlen(version));
		CHECK_INT(len % 8, 0);
		CHECK_INT(p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3],
		    (int)len - 4);
		CHECK(p[4] >= 4);
		CHECK_INT(1 + 13 + n + p[4], len - 4);
		CHECK_MEM(p + 5, 9, ((const char[]){ 1, 0, 0, 0, 11, 0, 0, 0,
		    (char)n }), 9);
	}
}

TEST(room)
{
	static char	 text[4096];
	enum spoken	 spoken;

	memset(text, 'x', sizeof(text) - 1);
	for (spoken = 0; spoken <= SPOKEN_POSTGRES_TLS; spoken++) {
		out[REFUSE_RAW_MAX] = '#';
		CHECK(refuse_raw(spoken, text, out) < REFUSE_RAW_MAX);
		CHECK_INT(out[REFUSE_RAW_MAX], '#');
	}
	CHECK_INT(refuse_raw(SPOKEN_UNKNOWN, "no", out), 0);
	CHECK_INT(refuse_raw(SPOKEN_MORE, "no", out), 0);
}

TEST_MAIN("refuse_raw")
