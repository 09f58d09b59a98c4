/* SPDX-License-Identifier: ISC */

/*
 * egressctl: walks the chain of audit files, without the daemon.  The files
 * are evidence and nothing in them is believed: a line may be of any length
 * and hold anything.  They may be larger than memory, so one line is held at
 * a time.
 *
 * recorder/chain.c says what the chain is.  Each line carries the hash of the
 * one before; numbers go up by one, except that a gap record accounts for
 * those that the file lacks.  A file that follows another begins with a record
 * that names the last line of that one.
 */

#include <err.h>
#include <inttypes.h>
#include <sha2.h>
#include <stdarg.h>
#include <string.h>

#include "egressctl.h"
#include "list.h"
#include "records.h"
#include "show.h"

#define EXIT_BROKEN	1
#define EXIT_UNREADABLE	3

#define SEQ_MAX		((UINT64_C(1) << 53) - 1)	/* exact in JSON */
#define HASH_HEX	(SHA256_DIGEST_STRING_LENGTH - 1)
#define MESSAGE_MAX	512

static struct list	files;

struct walk {
	const struct invocation	*wk_in;
	const char	*wk_file;
	uint64_t	 wk_line;
	uint64_t	 wk_records;
	uint64_t	 wk_first;	/* number of the first record */
	uint64_t	 wk_last;
	uint64_t	 wk_gaps;
	uint64_t	 wk_lost;
	uint64_t	 wk_torn;
	char		 wk_hash[HASH_HEX + 1];	/* of the last line */
};

/* What a line says of its place in the chain. */
struct place {
	uint64_t	 pl_seq;
	uint64_t	 pl_lost;	/* numbers that a gap accounts for */
	int		 pl_gap;
	int		 pl_file;	/* the record that begins a file */
	struct piece	 pl_prev;	/* null, or a hash in quotes */
};

/* ---- findings ------------------------------------------------------------ */

static void
show(const struct walk *wk, cJSON *json)
{
	output_show(wk->wk_in, json);
}

/* A finding about the current line; the caller may add members and shows it. */
static cJSON * __attribute__((__format__(printf, 3, 4)))
finding(const struct walk *wk, const char *what, const char *fmt, ...)
{
	char	 message[MESSAGE_MAX];
	cJSON	*json = output_object();
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	cJSON_AddStringToObject(json, "finding", what);
	cJSON_AddStringToObject(json, "file", wk->wk_file);
	cJSON_AddNumberToObject(json, "line", (double)wk->wk_line);
	cJSON_AddStringToObject(json, "message", message);
	return json;
}

/* Shows the finding that ends the walk; the walk's exit status. */
#define broken(wk, ...)							\
	(show((wk), finding((wk), "break", __VA_ARGS__)), EXIT_BROKEN)

static const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- one line ------------------------------------------------------------ */

static int
piece_is(const struct piece *pc, const char *s)
{
	return pc->pc_len == strlen(s) &&
	    memcmp(pc->pc_text, s, pc->pc_len) == 0;
}

/* A sequence number, or 0, which no record has, if the piece is none. */
static uint64_t
piece_seq(const struct piece *pc)
{
	uint64_t	seq = 0;
	size_t		i;

	for (i = 0; i < pc->pc_len; i++) {
		if (pc->pc_text[i] < '0' || pc->pc_text[i] > '9')
			return 0;
		seq = seq * 10 + (uint64_t)(pc->pc_text[i] - '0');
		if (seq > SEQ_MAX)
			return 0;
	}
	return seq;
}

static int
piece_is_hash(const struct piece *pc)
{
	size_t	i;

	if (pc->pc_len != HASH_HEX + 2)
		return 0;
	for (i = 1; i <= HASH_HEX; i++)
		if (strchr("0123456789abcdef", pc->pc_text[i]) == NULL)
			return 0;
	return pc->pc_text[0] == '"';
}

/*
 * Takes a line apart.  A member that counts and comes twice could mean one
 * thing to us and another to the next reader.
 */
static int
parse(const struct walk *wk, struct place *pl, const char *line, size_t len)
{
	struct strict	st;
	struct piece	name, value, kind = { NULL, 0 };
	size_t		n;
	int		more;

	memset(pl, 0, sizeof(*pl));
	strict_init(&st, line, len);
	for (n = 0; (more = strict_member(&st, &name, &value)) == 1; n++) {
		if (piece_is(&name, "\"seq\"") != (n == 0))
			return broken(wk, "seq is not the first member, once");
		if (pl->pl_prev.pc_text != NULL)
			return broken(wk, "prev is not the last member");
		if (n == 0 && (pl->pl_seq = piece_seq(&value)) == 0)
			return broken(wk, "seq is not a number from 1 to %"
			    PRIu64, SEQ_MAX);
		if (piece_is(&name, "\"prev\""))
			pl->pl_prev = value;
		if (!piece_is(&name, "\"kind\""))
			continue;
		if (kind.pc_text != NULL || value.pc_text[0] != '"')
			return broken(wk, "kind is not one string");
		kind = value;
	}
	if (more == -1)
		return broken(wk, "not a record: no JSON at byte %zu",
		    (size_t)(st.st_at - line) + 1);
	if (kind.pc_text == NULL)
		return broken(wk, "there is no kind");
	if (pl->pl_prev.pc_text == NULL)
		return broken(wk, "prev is not the last member");
	if (!piece_is(&pl->pl_prev, "null") && !piece_is_hash(&pl->pl_prev))
		return broken(wk, "prev is neither null nor a hash");
	pl->pl_gap = piece_is(&kind, "\"gap\"");
	pl->pl_file = piece_is(&kind, "\"file_opened\"");
	return 0;
}

/* A count in a gap record: null is 0, anything but a count is -1. */
static int64_t
gap_count(const cJSON *gap, const char *name)
{
	const cJSON	*item = json_get(gap, name);

	if (item == NULL)
		return 0;
	if (!cJSON_IsNumber(item) || item->valuedouble < 0 ||
	    item->valuedouble > (double)SEQ_MAX ||
	    item->valuedouble != (double)(int64_t)item->valuedouble)
		return -1;
	return (int64_t)item->valuedouble;
}

/* A gap accounts for the numbers just before its own, or for none. */
static int
gap_is_sound(struct place *pl, const cJSON *gap)
{
	int64_t	lost = gap_count(gap, "lost"), first, last;

	if (json_get(gap, "lost") == NULL || lost < 0 ||
	    (uint64_t)lost >= pl->pl_seq)
		return 0;
	first = lost == 0 ? 0 : (int64_t)pl->pl_seq - lost;
	last = lost == 0 ? 0 : (int64_t)pl->pl_seq - 1;
	pl->pl_lost = (uint64_t)lost;
	return gap_count(gap, "first_seq") == first &&
	    gap_count(gap, "last_seq") == last;
}

static cJSON *
gap_finding(const struct walk *wk, const struct place *pl, const cJSON *gap)
{
	const char	*reason = json_string(gap, "reason");
	int64_t		 bytes = gap_count(gap, "lost_bytes");
	cJSON		*json;

	if (reason == NULL)
		reason = "no reason";
	if (pl->pl_lost > 0)
		json = finding(wk, "gap", "gap: %" PRIu64 " record%s lost, "
		    "seq %" PRIu64 " to %" PRIu64 " (%s)", pl->pl_lost,
		    plural(pl->pl_lost), pl->pl_seq - pl->pl_lost,
		    pl->pl_seq - 1, reason);
	else if (bytes > 0)
		json = finding(wk, "gap", "gap: no record lost, %" PRId64
		    " byte%s cut off (%s)", bytes, plural((uint64_t)bytes),
		    reason);
	else
		json = finding(wk, "gap", "gap: no record lost (%s)", reason);
	cJSON_AddNumberToObject(json, "seq", (double)pl->pl_seq);
	cJSON_AddNumberToObject(json, "lost", (double)pl->pl_lost);
	cJSON_AddStringToObject(json, "reason", reason);
	return json;
}

/* Reads a gap record; the caller shows *note once the line has its place. */
static int
parse_gap(const struct walk *wk, struct place *pl, const char *line,
    size_t len, cJSON **note)
{
	cJSON	*gap = json_parse(line, len);
	int	 sound = gap != NULL && gap_is_sound(pl, gap);

	if (sound)
		*note = gap_finding(wk, pl, gap);
	cJSON_Delete(gap);
	if (!sound)
		return broken(wk, "a gap whose numbers do not fit together");
	return 0;
}

/* A file_opened must name the line that its own seq and prev name. */
static int
check_file(const struct walk *wk, const struct place *pl, const char *line,
    size_t len)
{
	cJSON		*file = json_parse(line, len);
	const char	*hash = json_string(file, "last_hash");
	int		 sound;

	sound = gap_count(file, "last_seq") == (int64_t)pl->pl_seq - 1 &&
	    (hash == NULL ? piece_is(&pl->pl_prev, "null") :
	    strlen(hash) == HASH_HEX && piece_is_hash(&pl->pl_prev) &&
	    memcmp(hash, pl->pl_prev.pc_text + 1, HASH_HEX) == 0);
	cJSON_Delete(file);
	if (!sound)
		return broken(wk, "a file_opened that names another line than "
		    "its seq and prev");
	return 0;
}

/* ---- the chain ----------------------------------------------------------- */

/* The first line of the first file: its predecessor is not at hand. */
static int
check_first(struct walk *wk, const struct place *pl)
{
	uint64_t	before = pl->pl_seq - 1 - pl->pl_lost;

	wk->wk_first = pl->pl_seq;
	if (piece_is(&pl->pl_prev, "null")) {
		/* Records are numbered also while no file is open. */
		if (before > 0)
			show(wk, finding(wk, "begin", "the chain begins here: "
			    "nothing was recorded before seq %" PRIu64,
			    before + 1));
		return 0;
	}
	if (before == 0)
		return broken(wk, "nothing can be before seq 1, but prev is "
		    "not null");
	show(wk, finding(wk, "begin", "the chain begins in an earlier file, "
	    "which ends with seq %" PRIu64, before));
	return 0;
}

static int
check_next(const struct walk *wk, const struct place *pl)
{
	uint64_t	due = wk->wk_last + 1 + pl->pl_lost;

	if (piece_is(&pl->pl_prev, "null"))
		return broken(wk, "prev is null: another chain begins here");
	if (pl->pl_seq != due && (wk->wk_line == 1 || pl->pl_file))
		return broken(wk, "this file goes on from seq %" PRIu64 ", and "
		    "the one before ends with seq %" PRIu64 ": a file is "
		    "missing or cut, or they are out of order",
		    pl->pl_seq - 1 - pl->pl_lost, wk->wk_last);
	if (pl->pl_seq != due)
		return broken(wk, "seq is %" PRIu64 " where %" PRIu64
		    " is due: records are missing, added or out of order",
		    pl->pl_seq, due);
	if (memcmp(pl->pl_prev.pc_text + 1, wk->wk_hash, HASH_HEX) != 0)
		return broken(wk, "prev is not the hash of the line before: "
		    "one of the two was changed");
	return 0;
}

static int
walk_line(struct walk *wk, const char *line, size_t len)
{
	struct place	 pl;
	cJSON		*note = NULL;

	if (parse(wk, &pl, line, len) != 0 ||
	    (pl.pl_gap && parse_gap(wk, &pl, line, len, &note) != 0) ||
	    (pl.pl_file && check_file(wk, &pl, line, len) != 0))
		return EXIT_BROKEN;
	if ((wk->wk_records == 0 ? check_first(wk, &pl) :
	    check_next(wk, &pl)) != 0) {
		cJSON_Delete(note);
		return EXIT_BROKEN;
	}
	if (note != NULL) {
		show(wk, note);
		wk->wk_gaps++;
		wk->wk_lost += pl.pl_lost;
	}
	wk->wk_records++;
	wk->wk_last = pl.pl_seq;
	SHA256Data((const uint8_t *)line, len, wk->wk_hash);
	return 0;
}

/* The recorder cuts half a line off and goes on; the walk tells of it. */
static void
walk_torn(struct walk *wk, size_t len)
{
	wk->wk_torn++;
	show(wk, finding(wk, "torn", "torn: the last %zu byte%s, no newline",
	    len, plural(len)));
}

static int
walk_lines(struct walk *wk, struct source *so)
{
	char	*line;
	size_t	 len;

	for (wk->wk_line = 1;; wk->wk_line++) {
		switch (source_line(so, &line, &len)) {
		case NEXT_LINE:
			if (walk_line(wk, line, len) != 0)
				return EXIT_BROKEN;
			break;
		case NEXT_END:
			return 0;
		case NEXT_TORN:
			walk_torn(wk, len);
			return 0;
		case NEXT_TOO_LONG:
			return broken(wk, "longer than any record: %d bytes "
			    "without a newline", SOURCE_LINE_MAX);
		case NEXT_FAILED:
			warn("%s", wk->wk_file);
			return EXIT_UNREADABLE;
		}
	}
}

static int
walk_file(struct walk *wk, const char *path)
{
	struct source	*so;
	int		 status;

	if ((so = source_open(path)) == NULL)
		return EXIT_UNREADABLE;
	wk->wk_file = so->so_name;
	status = walk_lines(wk, so);
	source_close(so);
	return status;
}

/* An audit file that was emptied must not pass for one that is in order. */
static int
is_intact(const struct walk *wk, int is_broken)
{
	return !is_broken && wk->wk_torn == 0 && wk->wk_records > 0;
}

static void
show_summary(const struct walk *wk, int is_broken)
{
	cJSON	*json = output_object();

	cJSON_AddNumberToObject(json, "records", (double)wk->wk_records);
	cJSON_AddNumberToObject(json, "first_seq", (double)wk->wk_first);
	cJSON_AddNumberToObject(json, "last_seq", (double)wk->wk_last);
	cJSON_AddNumberToObject(json, "gaps", (double)wk->wk_gaps);
	cJSON_AddNumberToObject(json, "lost", (double)wk->wk_lost);
	cJSON_AddNumberToObject(json, "torn", (double)wk->wk_torn);
	cJSON_AddBoolToObject(json, "broken", is_broken);
	cJSON_AddStringToObject(json, "last_hash", wk->wk_hash);
	cJSON_AddBoolToObject(json, "intact", is_intact(wk, is_broken));
	show(wk, json);
}

static int
verify_run(const struct invocation *in)
{
	struct walk	wk = { .wk_in = in };
	size_t		i;
	int		status = 0;

	for (i = 0; i < files.li_count && status == 0; i++)
		status = walk_file(&wk, files.li_words[i]);
	if (status == EXIT_UNREADABLE)
		return status;
	show_summary(&wk, status == EXIT_BROKEN);
	return is_intact(&wk, status == EXIT_BROKEN) ? 0 : EXIT_BROKEN;
}

/* ---- as text ------------------------------------------------------------- */

/* A number with commas between thousands, in any locale. */
static void
put_grouped(uint64_t n)
{
	if (n >= 1000) {
		put_grouped(n / 1000);
		printf(",%03u", (unsigned int)(n % 1000));
	} else
		printf("%u", (unsigned int)n);
}

static uint64_t
count(const cJSON *json, const char *name)
{
	return (uint64_t)cJSON_GetNumberValue(json_get(json, name));
}

static const char *
conclusion(const cJSON *json)
{
	if (cJSON_IsTrue(json_get(json, "intact")))
		return "chain intact";
	if (count(json, "records") == 0)
		return "nothing verified";
	return cJSON_IsTrue(json_get(json, "broken")) ? "chain broken" :
	    "chain torn";
}

static void
verify_put(const cJSON *json)
{
	uint64_t	records = count(json, "records");
	uint64_t	gaps = count(json, "gaps"), lost = count(json, "lost");

	if (json_get(json, "finding") != NULL) {
		finding_put(json);
		return;
	}
	put_grouped(records);
	printf(" record%s", plural(records));
	if (records > 0)
		printf(", seq %" PRIu64 " to %" PRIu64 ", %" PRIu64 " gap%s",
		    count(json, "first_seq"), count(json, "last_seq"), gaps,
		    plural(gaps));
	if (lost > 0)
		printf(" (%" PRIu64 " record%s lost)", lost, plural(lost));
	printf(", %s\n", conclusion(json));
}

/* ---- the command --------------------------------------------------------- */

static int
take_file(const char *word)
{
	list_add(&files, word);
	return 0;
}

static const struct token t_more_files[] = {
	{ .tk_type = END },
	{ WORD,	   "file",	t_more_files, NULL, NULL, take_file },
	{ 0 }
};

static const struct token t_files[] = {
	{ WORD,	   "file",	t_more_files, NULL, NULL, take_file },
	{ 0 }
};

const struct command command_verify = {
	.co_name = "verify",
	.co_synopsis = "verify FILE ...",
	.co_help = "check the chain of audit files",
	.co_tokens = t_files,
	.co_run = verify_run,
	.co_show = verify_put,
};
