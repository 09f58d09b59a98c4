/* SPDX-License-Identifier: ISC */

/*
 * ClientHello reader of the engine; see hello.h.  All input is hostile.
 *
 * It is strict wherever another reader of the same bytes (the origin behind a
 * `pass' rule) might see another name: every length must fit exactly what it
 * encloses, and an extension that is read here comes at most once.
 */

#include <sys/types.h>

#include <string.h>

#include "hello.h"

#define RECORD_HEADER		5
#define RECORD_MAX		(16 * 1024)
#define MESSAGE_HEADER		4
#define MESSAGE_CLIENT_HELLO	1
#define RANDOM_LEN		32
#define SESSION_ID_MAX		32

#define VERSION_SSL3		0x0300
#define VERSION_TLS12		0x0303
#define VERSION_TLS13		0x0304

#define EXT_SERVER_NAME		0
#define EXT_ALPN		16
#define EXT_PRE_SHARED_KEY	41
#define EXT_EARLY_DATA		42
#define EXT_SUPPORTED_VERSIONS	43
#define EXT_ECH			0xfe0d
#define EXT_ESNI		0xffce	/* what ECH was before */

#define NAME_TYPE_HOST		0

/* Bytes not yet read.  A read that does not fit leaves it as it was. */
struct span {
	const unsigned char	*sp_data;
	size_t			 sp_len;
};

static int
span_take(struct span *sp, size_t len, struct span *out)
{
	if (len > sp->sp_len)
		return -1;
	out->sp_data = sp->sp_data;
	out->sp_len = len;
	sp->sp_data += len;
	sp->sp_len -= len;
	return 0;
}

static int
span_number(struct span *sp, size_t width, size_t *out)
{
	struct span	 digits;
	size_t		 i;

	if (span_take(sp, width, &digits) == -1)
		return -1;
	*out = 0;
	for (i = 0; i < width; i++)
		*out = *out << 8 | digits.sp_data[i];
	return 0;
}

/* A vector: its length in so many bytes, then its content. */
static int
span_vector(struct span *sp, size_t width, struct span *out)
{
	size_t	 len;

	if (span_number(sp, width, &len) == -1)
		return -1;
	return span_take(sp, len, out);
}

static int
span_is(const struct span *sp, const char *text)
{
	return sp->sp_len == strlen(text) &&
	    memcmp(sp->sp_data, text, sp->sp_len) == 0;
}

/* Values that clients send so that servers learn to ignore them (RFC 8701). */
static int
is_grease(const struct span *sp)
{
	return sp->sp_len == 2 && sp->sp_data[0] == sp->sp_data[1] &&
	    (sp->sp_data[0] & 0x0f) == 0x0a;
}

static enum hello_result
bad(struct hello *out, const char *why)
{
	out->he_why = why;
	return HELLO_BAD;
}

/*
 * The name, or what is wrong with it.  RFC 6066, 3: a list with room for
 * types other than host names and for several names.  Nobody ever used that,
 * and two readers may choose differently, so one plain name it must be.
 */
static const char *
server_name(struct span ext, struct hello *out)
{
	struct span	 list, name;
	size_t		 type;

	if (span_vector(&ext, 2, &list) == -1 || ext.sp_len != 0)
		return "server name list does not fit its extension";
	if (list.sp_len == 0)
		return "empty server name list";
	if (span_number(&list, 1, &type) == -1 || type != NAME_TYPE_HOST)
		return "server name is not a host name";
	if (span_vector(&list, 2, &name) == -1)
		return "server name does not fit its list";
	if (list.sp_len != 0)
		return "more than one server name";
	if (name.sp_len == 0)
		return "empty server name";
	if (name.sp_len > HELLO_NAME_MAX)
		return "server name longer than 255 bytes";
	if (memchr(name.sp_data, '\0', name.sp_len) != NULL)
		return "NUL in server name";
	memcpy(out->he_name, name.sp_data, name.sp_len);
	out->he_name[name.sp_len] = '\0';
	out->he_namelen = name.sp_len;
	return NULL;
}

/* A bad name does not spoil the hello: it is to be recorded and refused. */
static const char *
ext_server_name(struct span ext, struct hello *out)
{
	const char	*fault = server_name(ext, out);

	out->he_sni = fault == NULL ? HELLO_SNI_NAME : HELLO_SNI_MALFORMED;
	out->he_why = fault;
	return NULL;
}

static const char *
ext_alpn(struct span ext, struct hello *out)
{
	struct span	 list, proto;

	out->he_flags |= HELLO_ALPN;
	if (span_vector(&ext, 2, &list) == -1 || ext.sp_len != 0 ||
	    list.sp_len == 0)
		return "malformed ALPN extension";
	while (list.sp_len > 0) {
		if (span_vector(&list, 1, &proto) == -1 || proto.sp_len == 0)
			return "malformed ALPN extension";
		if (span_is(&proto, "h2"))
			out->he_flags |= HELLO_ALPN_H2;
		else if (span_is(&proto, "http/1.1"))
			out->he_flags |= HELLO_ALPN_HTTP11;
		else if (!is_grease(&proto))
			out->he_flags |= HELLO_ALPN_OTHER;
	}
	return NULL;
}

/* Overrules the legacy version (RFC 8446, 4.2.1); drafts are ignored. */
static const char *
ext_supported_versions(struct span ext, struct hello *out)
{
	struct span	 list;
	size_t		 version;

	if (span_vector(&ext, 1, &list) == -1 || ext.sp_len != 0 ||
	    list.sp_len == 0 || list.sp_len % 2 != 0)
		return "malformed supported versions extension";
	out->he_version = 0;
	while (span_number(&list, 2, &version) == 0)
		if (version >= VERSION_SSL3 && version <= VERSION_TLS13 &&
		    version > out->he_version)
			out->he_version = (uint16_t)version;
	return NULL;
}

/* An extension is read, or known only to be there. */
static const struct extension {
	size_t		  ex_type;
	const char	*(*ex_read)(struct span, struct hello *);
	unsigned int	  ex_flag;	/* of he_flags */
} extensions[] = {
	{ EXT_SERVER_NAME,		ext_server_name,	0 },
	{ EXT_ALPN,			ext_alpn,		0 },
	{ EXT_PRE_SHARED_KEY,		NULL,	HELLO_PSK },
	{ EXT_EARLY_DATA,		NULL,	HELLO_EARLY_DATA },
	{ EXT_SUPPORTED_VERSIONS,	ext_supported_versions,	0 },
	{ EXT_ECH,			NULL,	HELLO_ECH },
	{ EXT_ESNI,			NULL,	HELLO_ECH },
};

#define NEXTENSIONS	(sizeof(extensions) / sizeof(extensions[0]))

static const char *
read_extension(size_t type, struct span ext, unsigned int *seen,
    struct hello *out)
{
	size_t	 i;

	for (i = 0; i < NEXTENSIONS; i++)
		if (extensions[i].ex_type == type)
			break;
	if (i == NEXTENSIONS)
		return NULL;
	if (*seen & 1U << i)
		return "extension given twice";
	*seen |= 1U << i;
	out->he_flags |= extensions[i].ex_flag;
	return extensions[i].ex_read == NULL ? NULL :
	    extensions[i].ex_read(ext, out);
}

static const char *
read_extensions(struct span list, struct hello *out)
{
	struct span	 ext;
	const char	*fault;
	size_t		 type;
	unsigned int	 seen = 0;

	while (list.sp_len > 0) {
		if (span_number(&list, 2, &type) == -1 ||
		    span_vector(&list, 2, &ext) == -1)
			return "extension does not fit the hello";
		if ((fault = read_extension(type, ext, &seen, out)) != NULL)
			return fault;
	}
	return NULL;
}

/* RFC 8446, 4.1.2; extensions may be missing altogether before TLS 1.3. */
static enum hello_result
read_body(struct span body, struct hello *out)
{
	struct span	 random, id, ciphers, compression, list;
	const char	*fault;
	size_t		 version;

	if (span_number(&body, 2, &version) == -1 ||
	    span_take(&body, RANDOM_LEN, &random) == -1 ||
	    span_vector(&body, 1, &id) == -1 || id.sp_len > SESSION_ID_MAX ||
	    span_vector(&body, 2, &ciphers) == -1 || ciphers.sp_len == 0 ||
	    ciphers.sp_len % 2 != 0 ||
	    span_vector(&body, 1, &compression) == -1 ||
	    compression.sp_len == 0)
		return bad(out, "malformed hello");
	if (version >> 8 != VERSION_SSL3 >> 8)
		return bad(out, "hello of an unknown protocol version");
	out->he_legacy_version = (uint16_t)version;
	out->he_version = version > VERSION_TLS12 ? VERSION_TLS12 :
	    (uint16_t)version;
	if (body.sp_len > 0) {
		if (span_vector(&body, 2, &list) == -1 || body.sp_len != 0)
			return bad(out, "extensions do not fit the hello");
		if ((fault = read_extensions(list, out)) != NULL)
			return bad(out, fault);
	}
	if (out->he_version <= VERSION_SSL3)
		out->he_flags |= HELLO_SSL;
	return HELLO_DONE;
}

/*
 * The next record's share of the handshake: 1, 0 if its header is not here
 * yet, -1 if it is none.  The last one may be here in part.
 */
static int
next_fragment(struct span *in, struct span *fragment, const char **fault)
{
	struct span	 header;
	size_t		 len;

	*fault = "not a TLS handshake";
	if (in->sp_len > 0 && in->sp_data[0] != HELLO_FIRST)
		return -1;
	/* The minor version means nothing (RFC 8446, 5.1). */
	if (in->sp_len > 1 && in->sp_data[1] != VERSION_SSL3 >> 8)
		return -1;
	if (span_take(in, RECORD_HEADER, &header) == -1)
		return 0;
	len = (size_t)header.sp_data[3] << 8 | header.sp_data[4];
	*fault = "record length out of range";
	if (len == 0 || len > RECORD_MAX)
		return -1;
	return span_take(in, len < in->sp_len ? len : in->sp_len,
	    fragment) == 0;
}

/*
 * Puts bytes [0, len) of the handshake together, as far as they are here.
 * Returns how many are, or -1.
 */
static ssize_t
join(struct span in, unsigned char *joined, size_t len, const char **fault)
{
	struct span	 fragment;
	size_t		 have = 0;
	int		 n;

	while (have < len && (n = next_fragment(&in, &fragment, fault)) != 0) {
		if (n == -1)
			return -1;
		if (fragment.sp_len > len - have)
			fragment.sp_len = len - have;
		memcpy(joined + have, fragment.sp_data, fragment.sp_len);
		have += fragment.sp_len;
	}
	return (ssize_t)have;
}

/* The message's length with its header: 1, 0 if not here yet, -1. */
static int
message_length(struct span in, size_t *len, const char **fault)
{
	unsigned char	 header[MESSAGE_HEADER];
	struct span	 rest = { header + 1, sizeof(header) - 1 };
	ssize_t		 have;

	if ((have = join(in, header, sizeof(header), fault)) == -1)
		return -1;
	*fault = "not a client hello";
	if (have > 0 && header[0] != MESSAGE_CLIENT_HELLO)
		return -1;
	if (have < MESSAGE_HEADER)
		return 0;
	span_number(&rest, sizeof(header) - 1, len);
	*len += MESSAGE_HEADER;
	*fault = "hello longer than 32 KiB";
	return *len > HELLO_MAX - RECORD_HEADER ? -1 : 1;
}

/* Most hellos are one record and are read where they lie. */
static enum hello_result
read_joined(struct span in, size_t len, struct hello *out)
{
	unsigned char	 joined[HELLO_MAX];
	struct span	 body = { joined, len }, header;
	const char	*fault;
	ssize_t		 have;

	if ((have = join(in, joined, len, &fault)) == -1)
		return bad(out, fault);
	if ((size_t)have < len)
		return HELLO_MORE;
	span_take(&body, MESSAGE_HEADER, &header);
	return read_body(body, out);
}

static enum hello_result
read_message(struct span in, struct hello *out)
{
	struct span	 first, header, rest = in;
	const char	*fault;
	size_t		 len;

	switch (message_length(in, &len, &fault)) {
	case -1:
		return bad(out, fault);
	case 0:
		return HELLO_MORE;
	}
	next_fragment(&rest, &first, &fault);
	if (first.sp_len < len)
		return read_joined(in, len, out);
	first.sp_len = len;
	span_take(&first, MESSAGE_HEADER, &header);
	return read_body(first, out);
}

/* A length with its highest bit set, then the message's type. */
static int
is_sslv2(const struct span *in)
{
	return in->sp_len > 2 && (in->sp_data[0] & 0x80) &&
	    in->sp_data[2] == MESSAGE_CLIENT_HELLO;
}

enum hello_result
hello_parse(const unsigned char *buf, size_t len, struct hello *out)
{
	struct span		 in = { buf, len };
	enum hello_result	 result;

	memset(out, 0, sizeof(*out));
	if (len > HELLO_MAX)
		in.sp_len = HELLO_MAX;
	if (is_sslv2(&in)) {
		out->he_flags = HELLO_SSL;
		return bad(out, "SSLv2 hello");
	}
	result = read_message(in, out);
	if (result == HELLO_MORE && len >= HELLO_MAX)
		return bad(out, "hello longer than 32 KiB");
	return result;
}
