/* SPDX-License-Identifier: ISC */

/*
 * Every row of the message table against everything that can be wrong with a
 * message: a case is a row and a fault.  A new message is covered as it is
 * added to common/msgtab.h.
 */

#include <sys/resource.h>

#include <fcntl.h>

#include "wire.h"

/* ---- ways ---------------------------------------------------------------- */

static struct way
way_legal(void)
{
	struct way	 wy = { 0 };

	CHECK(way_next(&wy, 1, 1, 1));
	return wy;
}

static uint32_t
mark_due(void)
{
	return row->fd == FD_MUST ? FD_MARK : 0;
}

static void
check_refused(const char *why)
{
	CHECK_INT(seen.handled, 0);
	CHECK_INT(seen.gone, 1);
	if (strstr(seen.why, why) == NULL)
		test_end(TEST_FAILED, "refused for \"%s\", not for \"%s\"",
		    seen.why, why);
}

/* The sample with this length, mark and descriptors is refused. */
static void
refuse(const struct way *wy, uint32_t len, int nfds, const char *why)
{
	struct wire	 wi;

	wire_open(&wi, wy->from, wy->to, wy->state, handlers);
	wire_send_sample(&wi, row->type, len, nfds);
	wire_turn();
	wire_close(&wi);
	check_refused(why);
}

/* The sample is refused although its header tells no lies. */
static void
refuse_sample_for(const char *why)
{
	struct way	 wy = way_legal();
	char		 text[64];

	snprintf(text, sizeof(text), "%s%s", row->name, why);
	refuse(&wy, (IMSG_HEADER_SIZE + sent.len) | mark_due(),
	    row->fd == FD_MUST, text);
}

static void
refuse_sample(void)
{
	refuse_sample_for("");
}

/* ---- faults -------------------------------------------------------------- */

static int
has_bytes(void)
{
	return row->layout->kind != FIELD_END;
}

static int
has_parts(void)
{
	sample_fill(&sent, FILL_LEAST);
	return sent.nparts > 0;
}

static int
has_text(void)
{
	const struct field	*fi;

	for (fi = row->layout; fi->kind != FIELD_END; fi++)
		if (fi->kind == FIELD_TEXT)
			return 1;
	return 0;
}

static int
wants_fd(void)
{
	return row->fd == FD_MUST;
}

static int
wants_no_fd(void)
{
	return row->fd == FD_NEVER;
}

/* From one channel to another, with values that are the same there. */
static void
deliver(const struct way *wy)
{
	const struct msg_desc	*md = msg_find(row->type);
	struct ipc		*ip;
	struct ibuf		 b;
	struct wire		 wi;
	union msg		 m;

	wire_open(&wi, wy->from, wy->to, wy->state, handlers);
	ip = channel(wi.fd, wy->from, wy->to, wy->state, no_handlers);
	ibuf_from_buffer(&b, sent.data, sent.len);
	CHECK_INT(md->md_get(&b, &m), 0);
	ipc_compose(ip, row->type, row->fd == FD_MUST ? dup(wi.fd) : -1, &m);
	wire_turn();
	ipc_free(ip);
	ipc_free(wi.ip);
	CHECK_STR(seen.why, "");
	CHECK_INT(seen.handled, 1);
	CHECK_INT(seen.agreed, 1);
	CHECK_INT(seen.fds, row->fd == FD_MUST);
}

static void
fault_none(void)
{
	struct way	 wy = { 0 };
	enum fill	 fill;

	while (way_next(&wy, 1, 1, 1))
		for (fill = 0; fill < FILL_MAX; fill++) {
			sample_fill(&sent, fill);
			deliver(&wy);
		}
}

/* Limits as the fields make them, bytes as they are written above. */
static void
fault_none_encoded(void)
{
	const struct msg_desc	*md = msg_find(row->type);
	struct ibuf		 in, *out;
	enum fill		 fill;
	union msg		 m;

	CHECK(md != NULL);
	for (fill = 0; fill < FILL_MAX; fill++) {
		sample_fill(&sent, fill);
		if (fill == FILL_LEAST)
			CHECK_INT(md->md_min, sent.len);
		if (fill == FILL_MOST)
			CHECK_INT(md->md_max, sent.len);
		ibuf_from_buffer(&in, sent.data, sent.len);
		CHECK_INT(md->md_get(&in, &m), 0);
		CHECK((out = ibuf_dynamic(1, IMSG_MAX_SIZE)) != NULL);
		CHECK_INT(md->md_put(out, &m), 0);
		CHECK_MEM(ibuf_data(out), ibuf_size(out), sent.data, sent.len);
		ibuf_free(out);
	}
}

static void
fault_short(void)
{
	sample_fill(&sent, FILL_LEAST);
	sent.len--;
	refuse_sample_for(" of ");
}

/* Cut anywhere. */
static void
fault_cut(void)
{
	size_t	 len;

	sample_fill(&sent, FILL_SOME);
	for (len = sent.len; len-- > 0; ) {
		sent.len = len;
		refuse_sample();
	}
}

static void
fault_long(void)
{
	sample_fill(&sent, FILL_MOST);
	sample_insert(&sent, sent.len, 'x');
	refuse_sample_for(" of ");
}

/* As long as a message can be at all. */
static void
fault_longest(void)
{
	sample_fill(&sent, FILL_LEAST);
	memset(sent.data + sent.len, 0, sizeof(sent.data) - sent.len);
	sent.len = IMSG_MAX_SIZE - IMSG_HEADER_SIZE;
	refuse_sample_for(" of ");
}

static void
fault_trailing(void)
{
	enum fill	 fill;
	int		 byte;

	for (fill = 0; fill < FILL_MAX; fill++)
		for (byte = 0; byte < 2; byte++) {
			sample_fill(&sent, fill);
			sample_insert(&sent, sent.len, byte);
			refuse_sample();
		}
}

static void
refuse_ways(int from, int to, int state)
{
	struct way	 wy = { 0 };
	char		 why[64];

	sample_fill(&sent, FILL_SOME);
	while (way_next(&wy, from, to, state)) {
		if (!from)
			snprintf(why, sizeof(why), "%s is not for %s to send",
			    row->name, role_name(wy.from));
		else if (!to)
			snprintf(why, sizeof(why),
			    "%s is not for %s to receive", row->name,
			    role_name(wy.to));
		else
			snprintf(why, sizeof(why), "%s in state 0x%02x",
			    row->name, wy.state);
		refuse(&wy, (IMSG_HEADER_SIZE + sent.len) | mark_due(),
		    row->fd == FD_MUST, why);
	}
}

static void
fault_sender(void)
{
	refuse_ways(0, 1, 1);
}

static void
fault_receiver(void)
{
	refuse_ways(1, 0, 1);
}

static void
fault_state(void)
{
	refuse_ways(1, 1, 0);
}

static void
fault_unserved(void)
{
	struct way	 wy = way_legal();
	struct wire	 wi;

	sample_fill(&sent, FILL_SOME);
	wire_open(&wi, wy.from, wy.to, wy.state, no_handlers);
	wire_send_sample(&wi, row->type,
	    (IMSG_HEADER_SIZE + sent.len) | mark_due(), row->fd == FD_MUST);
	wire_turn();
	wire_close(&wi);
	check_refused(row->name);
}

/* Marked or not, a descriptor is not let in. */
static void
fault_extra_fd(void)
{
	struct way	 wy = way_legal();
	uint32_t	 len;

	sample_fill(&sent, FILL_SOME);
	len = IMSG_HEADER_SIZE + sent.len;
	refuse(&wy, len | FD_MARK, 1, row->name);
	refuse(&wy, len, 1, "broken framing");
	refuse(&wy, len | FD_MARK, 0, "broken framing");
}

static void
fault_no_fd(void)
{
	struct way	 wy = way_legal();
	uint32_t	 len;

	sample_fill(&sent, FILL_SOME);
	len = IMSG_HEADER_SIZE + sent.len;
	refuse(&wy, len, 0, row->name);
	refuse(&wy, len | FD_MARK, 0, "broken framing");
	refuse(&wy, len, 1, "broken framing");
}

static void
fault_two_fds(void)
{
	struct way	 wy = way_legal();

	sample_fill(&sent, FILL_SOME);
	refuse(&wy, (IMSG_HEADER_SIZE + sent.len) | FD_MARK, 2,
	    "broken framing");
}

/* No slot is free: the attempt fails, the channel does not. */
static void
fault_lost_fd(void)
{
	struct way	 wy = way_legal();
	struct wire	 wi;
	struct rlimit	 rl, full;
	int		 fd;

	sample_fill(&sent, FILL_SOME);
	wire_open(&wi, wy.from, wy.to, wy.state, handlers);
	wire_send_sample(&wi, row->type,
	    (IMSG_HEADER_SIZE + sent.len) | FD_MARK, 1);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &rl), 0);
	full = rl;
	CHECK((fd = dup(wi.fd)) != -1);
	full.rlim_cur = fd;
	close(fd);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &full), 0);
	wire_turn();
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &rl), 0);
	CHECK_STR(seen.why, "");
	CHECK_INT(seen.handled, 1);
	CHECK_INT(seen.agreed, 1);
	CHECK_INT(seen.fds, 0);

	wire_send_sample(&wi, row->type,
	    (IMSG_HEADER_SIZE + sent.len) | FD_MARK, 1);
	wire_turn();
	wire_close(&wi);
	CHECK_STR(seen.why, "");
	CHECK_INT(seen.agreed, 2);
	CHECK_INT(seen.fds, 1);
}

/* Overwrite a byte of each text, counted from its first. */
static void
refuse_texts(size_t offset, unsigned char byte)
{
	size_t	 i;

	sample_fill(&sent, FILL_SOME);
	for (i = 0; i < sent.nparts; i++) {
		if (sent.parts[i].field->kind != FIELD_TEXT)
			continue;
		sample_fill(&sent, FILL_SOME);
		sent.data[sent.parts[i].at + 2 + offset] = byte;
		refuse_sample();
	}
}

/* A text that ends before its end, wherever that is. */
static void
fault_nul(void)
{
	size_t	 i;

	for (i = 0; i < SOME_LEN; i++)
		refuse_texts(i, '\0');
}

static void
fault_no_nul(void)
{
	refuse_texts(SOME_LEN, 'x');
}

/*
 * A length that lies.  One that is merely wrong is not noticed in bytes with
 * something behind them, and need not be.
 */
static void
fault_liar(void)
{
	static const size_t	 lies[] = { 0, 1, SOME_LEN - 1, SOME_LEN + 1,
	    SOME_LEN + 2, 0x7fff, 0x8000, 0xffff };
	size_t			 i, j;

	sample_fill(&sent, FILL_SOME);
	for (i = 0; i < sent.nparts; i++)
		for (j = 0; j < sizeof(lies) / sizeof(lies[0]); j++) {
			if (lies[j] < 0x7fff && i + 1 < sent.nparts &&
			    sent.parts[i].field->kind == FIELD_BYTES)
				continue;
			sample_fill(&sent, FILL_SOME);
			sample_set_length(&sent, sent.parts[i].at, lies[j]);
			refuse_sample();
		}
}

/* One byte more than its field allows, in a message that is not too long. */
static void
fault_overlong(void)
{
	size_t	 i, len;

	sample_fill(&sent, FILL_LEAST);
	for (i = 0; i < sent.nparts; i++) {
		sample_fill(&sent, FILL_LEAST);
		for (len = 0; len <= sent.parts[i].field->size; len++)
			sample_insert(&sent, sent.parts[i].at + 2, 'x');
		sample_set_length(&sent, sent.parts[i].at, len);
		refuse_sample();
	}
}

static const struct fault {
	const char	*name;
	void		(*run)(void);
	int		(*applies)(void);	/* NULL: to all */
} faults[] = {
	{ "valid", fault_none, NULL },
	{ "encoding", fault_none_encoded, NULL },
	{ "short", fault_short, has_bytes },
	{ "cut", fault_cut, has_bytes },
	{ "long", fault_long, NULL },
	{ "longest", fault_longest, NULL },
	{ "trailing", fault_trailing, NULL },
	{ "sender", fault_sender, NULL },
	{ "receiver", fault_receiver, NULL },
	{ "state", fault_state, NULL },
	{ "unserved", fault_unserved, NULL },
	{ "extra_descriptor", fault_extra_fd, wants_no_fd },
	{ "missing_descriptor", fault_no_fd, wants_fd },
	{ "two_descriptors", fault_two_fds, wants_fd },
	{ "lost_descriptor", fault_lost_fd, wants_fd },
	{ "nul", fault_nul, has_text },
	{ "unterminated", fault_no_nul, has_text },
	{ "length", fault_liar, has_parts },
	{ "overlong", fault_overlong, has_parts },
};
#define NFAULTS	(sizeof(faults) / sizeof(faults[0]))

/* ---- what is no message -------------------------------------------------- */

TEST(unknown_type)
{
	static const uint32_t	 types[] = { 0, MSG_MAX, MSG_MAX + 1,
	    0x7fffffff, 0x80000000, 0xffffffff };
	struct wire		 wi;
	char			 why[64];
	size_t			 i;

	sent.len = 0;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		wire_open(&wi, ROLE_PARENT, ROLE_DIALER, S_RUN, handlers);
		wire_send_sample(&wi, types[i], IMSG_HEADER_SIZE, 0);
		wire_turn();
		wire_close(&wi);
		snprintf(why, sizeof(why), "unknown message %u", types[i]);
		check_refused(why);
	}
}

TEST(header_length)
{
	static const uint32_t	 lens[] = { 0, 1, IMSG_HEADER_SIZE - 1,
	    IMSG_MAX_SIZE + 1, 0x7fffffff, FD_MARK, 0xffffffff };
	struct way		 wy = { ROLE_PARENT, ROLE_DIALER, S_RUN };
	size_t			 i;

	row = &rows[0];
	sent.len = 0;
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		refuse(&wy, lens[i], lens[i] & FD_MARK ? 1 : 0,
		    "broken framing");
}

TEST(three_descriptors)
{
	struct wire	 wi;
	int		 i;

	wire_open(&wi, ROLE_PARENT, ROLE_DIALER, S_RUN, handlers);
	wire_send(&wi, "a", 1, 2);
	for (i = 0; i < 2; i++)
		wire_send(&wi, "b", 1, 1);
	wire_turn();
	wire_close(&wi);
	check_refused("too many descriptors");
}

/* What follows a bad message is not looked at, what went before counts. */
TEST(nothing_after_a_fault)
{
	struct wire	 wi;

	for (row = rows; row->type != MSG_LOG_LEVEL; row++)
		continue;
	sample_fill(&sent, FILL_SOME);
	wire_open(&wi, ROLE_PARENT, ROLE_DIALER, S_RUN, handlers);
	wire_send_sample(&wi, MSG_LOG_LEVEL, IMSG_HEADER_SIZE + sent.len, 0);
	wire_send_sample(&wi, 0, IMSG_HEADER_SIZE + sent.len, 0);
	wire_send_sample(&wi, MSG_LOG_LEVEL, IMSG_HEADER_SIZE + sent.len, 0);
	wire_turn();
	wire_close(&wi);
	CHECK_INT(seen.handled, 1);
	CHECK_INT(seen.gone, 1);
	CHECK_STR(seen.why, "unknown message 0");
}

/* ---- all of it ----------------------------------------------------------- */

static int
count_fds(void)
{
	int	 fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static int	 fds_before;

static void
no_descriptor_left(void)
{
	CHECK_INT(count_fds(), fds_before);
}

static int
run_row(void)
{
	const struct fault	*fa;
	struct test_case	 tc;
	char			 name[64];
	int			 failed = 0;

	for (fa = faults; fa < faults + NFAULTS; fa++) {
		if (fa->applies != NULL && !fa->applies())
			continue;
		snprintf(name, sizeof(name), "%s.%s", row->name, fa->name);
		tc.tc_name = name;
		tc.tc_run = fa->run;
		failed |= test_run("table", &tc);
	}
	return failed;
}

int
main(void)
{
	static const struct test_case	 last = { "no_descriptor_left",
	    no_descriptor_left };
	size_t				 i;
	int				 failed = 0;

	if ((base = event_base_new()) == NULL ||
	    event_base_priority_init(base, 2) == -1)
		return 1;
	fds_before = count_fds();
	for (i = 0; i < NROWS; i++) {
		row = &rows[i];
		failed |= run_row();
	}
	failed |= test_main("table");
	failed |= test_run("table", &last);
	event_base_free(base);
	return failed;
}
