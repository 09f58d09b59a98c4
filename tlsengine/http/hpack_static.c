/* SPDX-License-Identifier: ISC */

/*
 * HPACK's static table (RFC 7541, appendix A); see hpack.h.  Runs in the
 * tlsengine.
 */

#include "hpack.h"

#define FIELD(name, value, first)					\
	{ name, value, sizeof(name) - 1, sizeof(value) - 1, first }

const struct hpack_static	 hpack_static[] = {
	{ 0 },
	FIELD(":authority", "", 1),
	FIELD(":method", "GET", 2),
	FIELD(":method", "POST", 2),
	FIELD(":path", "/", 4),
	FIELD(":path", "/index.html", 4),
	FIELD(":scheme", "http", 6),
	FIELD(":scheme", "https", 6),
	FIELD(":status", "200", 8),
	FIELD(":status", "204", 8),
	FIELD(":status", "206", 8),
	FIELD(":status", "304", 8),
	FIELD(":status", "400", 8),
	FIELD(":status", "404", 8),
	FIELD(":status", "500", 8),
	FIELD("accept-charset", "", 15),
	FIELD("accept-encoding", "gzip, deflate", 16),
	FIELD("accept-language", "", 17),
	FIELD("accept-ranges", "", 18),
	FIELD("accept", "", 19),
	FIELD("access-control-allow-origin", "", 20),
	FIELD("age", "", 21),
	FIELD("allow", "", 22),
	FIELD("authorization", "", 23),
	FIELD("cache-control", "", 24),
	FIELD("content-disposition", "", 25),
	FIELD("content-encoding", "", 26),
	FIELD("content-language", "", 27),
	FIELD("content-length", "", 28),
	FIELD("content-location", "", 29),
	FIELD("content-range", "", 30),
	FIELD("content-type", "", 31),
	FIELD("cookie", "", 32),
	FIELD("date", "", 33),
	FIELD("etag", "", 34),
	FIELD("expect", "", 35),
	FIELD("expires", "", 36),
	FIELD("from", "", 37),
	FIELD("host", "", 38),
	FIELD("if-match", "", 39),
	FIELD("if-modified-since", "", 40),
	FIELD("if-none-match", "", 41),
	FIELD("if-range", "", 42),
	FIELD("if-unmodified-since", "", 43),
	FIELD("last-modified", "", 44),
	FIELD("link", "", 45),
	FIELD("location", "", 46),
	FIELD("max-forwards", "", 47),
	FIELD("proxy-authenticate", "", 48),
	FIELD("proxy-authorization", "", 49),
	FIELD("range", "", 50),
	FIELD("referer", "", 51),
	FIELD("refresh", "", 52),
	FIELD("retry-after", "", 53),
	FIELD("server", "", 54),
	FIELD("set-cookie", "", 55),
	FIELD("strict-transport-security", "", 56),
	FIELD("transfer-encoding", "", 57),
	FIELD("user-agent", "", 58),
	FIELD("vary", "", 59),
	FIELD("via", "", 60),
	FIELD("www-authenticate", "", 61),
};

_Static_assert(sizeof(hpack_static) / sizeof(hpack_static[0]) ==
    HPACK_STATIC_N + 1, "all entries of the static table");
