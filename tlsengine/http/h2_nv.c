/* SPDX-License-Identifier: ISC */

/*
 * Writing HTTP/2 heads; see h2_head.h.  Runs in the tlsengine.  What HTTP/1
 * checks on its way out is checked here too: HTTP/2 could carry a line break,
 * and whoever is behind the next proxy would find it.
 */

#include <string.h>

#include "h1_field.h"
#include "h2_head.h"
#include "hostname.h"

static void
nv_begin(struct h2_nv *hn)
{
	hn->hn_block[0] = HPACK_NO_TABLE;
	hn->hn_len = 1;
	hn->hn_bytes = 0;
	hn->hn_bad = 0;
}

static void
add(struct h2_nv *hn, struct h1_str name, struct h1_str value)
{
	if (HPACK_BOUND(name.len, value.len) > sizeof(hn->hn_block) -
	    hn->hn_len) {
		hn->hn_bad = 1;
		return;
	}
	hn->hn_len += hpack_put(hn->hn_block + hn->hn_len, name.s, name.len,
	    value.s, value.len);
	hn->hn_bytes += name.len + value.len;
}

static struct h1_str
text(const char *s)
{
	return (struct h1_str){ s, strlen(s) };
}

/* A piece that consists of such bytes and is not empty. */
static void
add_span(struct h2_nv *hn, const char *name, struct h1_str value, int what)
{
	if (value.len == 0 || h1_span(value.s, value.s + value.len, what) !=
	    value.s + value.len)
		hn->hn_bad = 1;
	else
		add(hn, text(name), value);
}

static void
add_number(struct h2_nv *hn, const char *name, uint64_t n)
{
	char	 digits[H1_DIGITS_MAX];

	add(hn, text(name), (struct h1_str){ digits, h1_digits(digits, n) });
}

/* Checked on the way; the copy is good until the next. */
static struct h1_str
lower_name(struct h2_nv *hn, struct h1_str name)
{
	static char	 lower[H1_LINE_MAX];
	const char	*end = name.s + name.len;
	size_t		 i;

	if (h1_span(name.s, end, H1_B_LOWER) == end)
		return name;
	if (h1_span(name.s, end, H1_B_TOKEN) != end ||
	    name.len > sizeof(lower)) {
		hn->hn_bad = 1;
		return name;
	}
	for (i = 0; i < name.len; i++)
		lower[i] = h1_lower(name.s[i]);
	return (struct h1_str){ lower, name.len };
}

static void
add_field(struct h2_nv *hn, const struct h1_field *hf)
{
	struct h1_str	 name = { hf->hf_name, hf->hf_nlen };
	struct h1_str	 value = { hf->hf_value, hf->hf_vlen };

	if (name.len == 0 || (value.len > 0 &&
	    h1_value_span(value.s, value.s + value.len) !=
	    value.s + value.len))
		hn->hn_bad = 1;
	else
		add(hn, lower_name(hn, name), value);
}

static void
add_fields(struct h2_nv *hn, const struct h1_field *hf, size_t n, int with)
{
	for (; n > 0; n--, hf++)
		if (h1_is_forwarded(hf, with))
			add_field(hn, hf);
}

static void
add_authority(struct h2_nv *hn, const char *name, uint16_t port)
{
	struct h1_str	 host = text(name);
	int		 v6 = strchr(name, ':') != NULL;
	char		 p[HOSTNAME_MAX + sizeof("[]:") + H1_DIGITS_MAX];
	size_t		 n = 0;

	if (!v6 && port == 0) {
		add_span(hn, ":authority", host, H1_B_HOST);
		return;
	}
	if (host.len == 0 || host.len > HOSTNAME_MAX || h1_span(host.s,
	    host.s + host.len, v6 ? H1_B_V6 : H1_B_HOST) !=
	    host.s + host.len) {
		hn->hn_bad = 1;
		return;
	}
	if (v6)
		p[n++] = '[';
	memcpy(p + n, host.s, host.len);
	n += host.len;
	if (v6)
		p[n++] = ']';
	if (port != 0) {
		p[n++] = ':';
		n += h1_digits(p + n, port);
	}
	add(hn, text(":authority"), (struct h1_str){ p, n });
}

/* Trailers may follow any body here, also one of known length. */
static int
trailer_with(enum h1_framing framing)
{
	return framing != H1_NONE ? H1_WITH_TRAILER : 0;
}

static void
add_method(struct h2_nv *hn, const struct h1_out_request *rq, int extended)
{
	if (extended) {
		add(hn, text(":method"), text("CONNECT"));
		add_span(hn, ":protocol", lower_name(hn, rq->or_upgrade),
		    H1_B_LOWER);
	} else
		add_span(hn, ":method", rq->or_method, H1_B_TOKEN);
}

int
h2_nv_request(struct h2_nv *hn, const struct h1_out_request *rq,
    const char *scheme, int extended)
{
	int	 with = trailer_with(rq->or_framing);

	nv_begin(hn);
	if (rq->or_framing == H1_UNTIL_CLOSE ||
	    (extended && rq->or_framing != H1_NONE))
		return -1;
	if (rq->or_override)
		with |= H1_WITH_OVERRIDE;
	add_method(hn, rq, extended);
	add(hn, text(":scheme"), text(scheme));
	add_authority(hn, rq->or_host, rq->or_port);
	add_span(hn, ":path", rq->or_target, H1_B_TARGET);
	add_fields(hn, rq->or_fields, rq->or_nfields, with);
	add_fields(hn, rq->or_extra, rq->or_nextra, 0);
	if (rq->or_expect_continue)
		add(hn, text("expect"), text("100-continue"));
	if (rq->or_framing == H1_LENGTH)
		add_number(hn, "content-length", rq->or_length);
	if (rq->or_te_trailers)
		add(hn, text("te"), text("trailers"));
	return hn->hn_bad ? -1 : 0;
}

int
h2_nv_response(struct h2_nv *hn, const struct h1_out_response *rs)
{
	int	 status = rs->os_status;
	int	 with = H1_WITH_OVERRIDE | trailer_with(rs->os_framing);

	nv_begin(hn);
	if (status == 101 && rs->os_upgrade.len > 0)
		status = 200;
	if (status < 100 || status > 999 || status == 101)
		return -1;
	add_number(hn, ":status", (uint64_t)status);
	add_fields(hn, rs->os_fields, rs->os_nfields, with);
	add_fields(hn, rs->os_extra, rs->os_nextra, with);
	if (rs->os_framing == H1_LENGTH &&
	    !h1_has_no_framing(rs->os_status))
		add_number(hn, "content-length", rs->os_length);
	return hn->hn_bad ? -1 : 0;
}

int
h2_nv_trailers(struct h2_nv *hn, const struct h1_field *hf, size_t n)
{
	nv_begin(hn);
	for (; n > 0; n--, hf++)
		if (h1_is_trailer(hf))
			add_field(hn, hf);
	return hn->hn_bad ? -1 : 0;
}
