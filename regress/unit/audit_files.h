/* SPDX-License-Identifier: ISC */

/*
 * Audit files in a directory of their own, each with its tip, and whether they
 * verify: for tests of the recorder.
 */

#include <sys/stat.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../common/log.h"
#include "../../recorder/recorder.h"
#include "test.h"

static struct event_base	*base;
static char			 dir[] = "/tmp/audit_files.XXXXXX";
static char			 text[4 * 1024 * 1024];
static size_t			 text_len;
static char			 why[PATH_LEN];

static void
unlink_all(void)
{
	static const char *const	 names[] = { "a", "a.tip", "a.ack",
	    "a.1", "a.2", "b", "b.tip" };
	size_t				 i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
}

static void
cleanup(void)
{
	unlink_all();
	rmdir("disk");
	if (chdir("/") == 0)
		rmdir(dir);
}

/* No file, no chain, as after a start. */
static void
restart(void)
{
	audit_begin();
	audit_commit();
	chain_init();
}

static void
setup(void)
{
	if (base == NULL) {
		log_set_level(LOG_LVL_ERROR);
		CHECK(mkdtemp(dir) != NULL);
		CHECK_INT(chdir(dir), 0);
		atexit(cleanup);
		signal(SIGPIPE, SIG_IGN);
		base = event_base_new();
		audit_init(base, NULL);
		follower_init(base);
	}
	event_base_loop(base, EVLOOP_NONBLOCK);
	restart();
	unlink_all();
}

/* The transaction up to its verdict. */
static int
tip_of(const char *path)
{
	char	 tip[PATH_LEN];
	int	 fd;

	snprintf(tip, sizeof(tip), "%s.tip", path);
	CHECK((fd = open(tip, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) != -1);
	return fd;
}

static int
offer(const char *path)
{
	int	 fd;

	fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd != -1);
	audit_begin();
	CHECK_INT(audit_offer(fd, path), 0);
	CHECK_INT(tip_offer(tip_of(path)), 0);
	return audit_weigh(why, sizeof(why));
}

static void
use(const char *path)
{
	CHECK_INT(offer(path), 0);
	audit_commit();
	CHECK_STR(audit_path(), path);
}

static void
say(int count)
{
	struct msg_record_session	 m = {
		.kind = RECORD_SESSION_ENDED, .session = "edge",
		.policy = "coding", .reason = "",
	};

	while (count-- > 0)
		chain_session(&m);
}

/* What is written soon is written now. */
static void
turn_loop(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
	audit_flush();
}

static void
put(const char *path, const void *data, size_t len)
{
	int	 fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd != -1);
	CHECK_INT(write(fd, data, len), len);
	close(fd);
}

/* Add the contents of a file to text. */
static void
load(const char *path)
{
	ssize_t	 n;
	int	 fd;

	CHECK((fd = open(path, O_RDONLY)) != -1);
	while ((n = read(fd, text + text_len, sizeof(text) - text_len)) > 0)
		text_len += (size_t)n;
	close(fd);
}

static uint64_t
number(const char *line, const char *key)
{
	const char	*at = strstr(line, key);

	return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/*
 * Every line in text follows the one before: by hash always, by number unless
 * a gap accounts for the difference.  Returns the number of the last.
 */
static uint64_t
verify(void)
{
	struct link	 li = { 0 }, before;
	char		*line = text, *nl, prev[96];

	for (; line < text + text_len; line = nl + 1) {
		before = li;
		nl = memchr(line, '\n', text_len - (size_t)(line - text));
		CHECK(nl != NULL);
		*nl = '\0';
		CHECK_FOR(line, chain_parse(&li, line, strlen(line)) == 0);
		snprintf(prev, sizeof(prev), "\"prev\":\"%s\"}",
		    before.li_hash);
		CHECK_FOR(line, before.li_seq == 0 ||
		    strstr(line, prev) != NULL);
		CHECK_FOR(line, before.li_seq == 0 || li.li_seq ==
		    before.li_seq + number(line, "\"lost\":") + 1);
		*nl = '\n';
	}
	return li.li_seq;
}

static uint64_t
verify_file(const char *path)
{
	text_len = 0;
	load(path);
	text[text_len] = '\0';
	return verify();
}
