/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: the trust of fixed sessions.  To the engine go the
 * bundle against which origins are verified and, if one is given, the CA to
 * use.  From it comes the certificate of its CA, which clients are to trust:
 * it is written to the session's directory, alone and behind the public
 * bundle, for whatever kind of client.  The key never passes here.
 */

#include <sys/stat.h>

#include <event2/buffer.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

const char *
trust_bundle(const struct config *conf, const struct conf_session *ss)
{
	if (ss != NULL && ss->ss_upstream_trust != NULL)
		return ss->ss_upstream_trust;
	return conf->cf_upstream_trust != NULL ? conf->cf_upstream_trust :
	    SYSTEM_BUNDLE;
}

static int
send_file(struct proc *pr, enum file_kind what, const char *path)
{
	struct why	 why;
	int		 fd;

	if (path == NULL)
		return 0;
	if ((fd = place_read(path, &why)) == -1) {
		log_warnx("%s: %s", pr->pr_name, why.text);
		return -1;
	}
	ipc_send(pr->pr_ipc, fd, CONF_FILE, conf_file, .what = what);
	return 0;
}

int
trust_send(struct proc *pr, const struct config *conf,
    const struct conf_session *ss)
{
	if (send_file(pr, FILE_TRUST, trust_bundle(conf, ss)) == -1)
		return -1;
	if (ss == NULL)
		return 0;
	if (send_file(pr, FILE_CERTIFICATE, ss->ss_ca_cert) == -1 ||
	    send_file(pr, FILE_KEY, ss->ss_ca_key) == -1)
		return -1;
	return 0;
}

bool
trust_is_given(const struct config *conf)
{
	const struct conf_session	*ss;

	TAILQ_FOREACH(ss, &conf->cf_sessions, ss_entry)
		if (ss->ss_ca_cert != NULL)
			return true;
	return false;
}

/* Send all CAs that the configuration gives to a process that weighs them. */
int
trust_offer(struct proc *pr, const struct config *conf)
{
	const struct conf_session	*ss;

	TAILQ_FOREACH(ss, &conf->cf_sessions, ss_entry) {
		if (ss->ss_ca_cert == NULL)
			continue;
		ipc_send(pr->pr_ipc, -1, CONF_WEIGH, conf_weigh,
		    .session = ss->ss_name, .certificate = ss->ss_ca_cert,
		    .key = ss->ss_ca_key);
		if (send_file(pr, FILE_CERTIFICATE, ss->ss_ca_cert) == -1 ||
		    send_file(pr, FILE_KEY, ss->ss_ca_key) == -1)
			return -1;
	}
	return 0;
}

/* The directory, open; it is made if it is not there. */
int
trust_directory(const char *path, struct why *why)
{
	if (place_check(path, -1, why) == -1)
		return -1;
	if (mkdir(path, 0755) == -1 && errno != EEXIST)
		return why_set(why, "%s: %s", path, strerror(errno));
	return place_open(path, -1, why);
}

/* All of a file, behind what is in the buffer; -1 with errno. */
static int
append_file(struct evbuffer *buf, const char *path)
{
	struct why	 why;
	int		 fd, n;

	if ((fd = place_read(path, &why)) == -1) {
		log_warnx("trust directory: %s", why.text);
		return -1;
	}
	while ((n = evbuffer_read(buf, fd, -1)) > 0)
		continue;
	close(fd);
	return n;
}

/*
 * A file that is there may be mounted by itself, where a new one of its name
 * would not be seen: it keeps its inode.  -1 with errno; ENOENT for anything
 * that is not a file.
 */
static int
write_in_place(int dir, const char *name, struct evbuffer *buf)
{
	struct stat	 st;
	off_t		 len = (off_t)evbuffer_get_length(buf);
	int		 fd, rv = -1, error;

	fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1 && (errno == ELOOP || errno == ENXIO))
		errno = ENOENT;
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		errno = ENOENT;
	else if (evbuffer_write(buf, fd) == len && ftruncate(fd, len) == 0 &&
	    fchmod(fd, 0644) == 0)
		rv = 0;
	error = errno;
	close(fd);
	errno = error;
	return rv;
}

/* A new file appears whole. */
static int
write_new(int dir, const char *name, struct evbuffer *buf)
{
	char	 tmp[NAME_LEN];
	int	 len = (int)evbuffer_get_length(buf), fd, rv = -1;

	snprintf(tmp, sizeof(tmp), ".%s.new", name);
	unlinkat(dir, tmp, 0);
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd == -1)
		return -1;
	if (evbuffer_write(buf, fd) == len)
		rv = renameat(dir, tmp, dir, name);
	close(fd);
	return rv;
}

/* Behind the bundle, if there is one, which everybody may read here. */
static int
write_file(int dir, const char *name, const char *bundle, const void *data,
    size_t len)
{
	struct evbuffer	*buf;
	int		 rv = -1;

	if ((buf = evbuffer_new()) == NULL)
		fatal("%s", __func__);
	/* The bundle's last line may lack its end. */
	if (bundle != NULL && (append_file(buf, bundle) == -1 ||
	    evbuffer_add(buf, "\n", 1) == -1))
		goto done;
	if (evbuffer_add(buf, data, len) == -1 ||
	    evbuffer_pullup(buf, -1) == NULL)
		goto done;
	if ((rv = write_in_place(dir, name, buf)) == -1 && errno == ENOENT)
		rv = write_new(dir, name, buf);
done:
	if (rv == -1)
		log_warn("trust directory: %s", name);
	evbuffer_free(buf);
	return rv;
}

/* A file is there and holds something, but something else. */
static bool
differs(int dir, const char *name, const char *text)
{
	char	 have[TEXT_LEN];	/* more than an engine can send */
	ssize_t	 n;
	int	 fd;

	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return false;
	n = read(fd, have, sizeof(have));
	close(fd);
	return n > 0 && ((size_t)n != strlen(text) ||
	    memcmp(have, text, n) != 0);
}

/* The CA of a fixed session, whose clients look for it there. */
static int
trust_write(struct session *se, const struct conf_session *ss,
    const struct msg_engine_trust *mt)
{
	struct why	 why;
	int		 dir, rv = 0;

	if ((dir = trust_directory(ss->ss_trust_directory, &why)) == -1) {
		log_warnx("session %s: trust directory %s", ss->ss_name,
		    why.text);
		return -1;
	}
	/* Of a daemon before this one; policyd tells of those since. */
	if (!se->se_trusted && differs(dir, "ca.pem", mt->ca))
		log_warnx("session %s: new CA in %s: clients that loaded the "
		    "one before reject it ('ca certificate ... key ...' keeps "
		    "one)", se->se_name, ss->ss_trust_directory);
	se->se_trusted = true;
	if (write_file(dir, "ca.pem", NULL, mt->ca, strlen(mt->ca)) == -1 ||
	    write_file(dir, "bundle.pem", trust_bundle(d.d_conf, ss), mt->ca,
	    strlen(mt->ca)) == -1 ||
	    write_file(dir, "ca.jks", NULL, mt->java.data,
	    mt->java.len) == -1)
		rv = -1;
	close(dir);
	return rv;
}

/* The engine serves nobody before it hears that the files are there. */
int
parent_engine_trust(struct ipc *ip, const union msg *m)
{
	const struct proc		*pr = ip->ip_arg;
	struct session			*se = pr->pr_session;
	const struct conf_session	*ss = NULL;

	if (se != NULL)
		ss = conf_session_find(d.d_conf, se->se_name);
	if (ss != NULL && ss->ss_trust_directory != NULL &&
	    trust_write(se, ss, &m->engine_trust) == -1)
		return ipc_bad(ip, "its trust files cannot be written");
	ipc_send(ip, -1, TRUST_WRITTEN, empty);
	return 0;
}
