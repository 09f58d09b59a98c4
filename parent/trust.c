/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: the trust of fixed sessions.  To the engine go the
 * bundle against which origins are verified and, if one is given, the CA to
 * use.  From it comes the certificate of its CA, which clients are to trust:
 * it is written to the session's directory, alone and behind the public
 * bundle, for whatever kind of client.  The key never passes here.
 */

#include <sys/stat.h>

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

/* Into place by renaming: a reader sees the old file or the whole new one. */
static int
write_file(int dir, const char *name, const char *bundle, const void *data,
    size_t len)
{
	struct why	 why;
	char		 tmp[NAME_LEN], buf[16384];
	ssize_t		 n = 0;
	int		 in = -1, out, rv = -1;

	snprintf(tmp, sizeof(tmp), ".%s.new", name);
	unlinkat(dir, tmp, 0);
	out = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out == -1)
		goto done;
	if (bundle != NULL) {
		/* Everybody may read the copy. */
		if ((in = place_read(bundle, &why)) == -1) {
			log_warnx("trust directory: %s", why.text);
			goto done;
		}
		while ((n = read(in, buf, sizeof(buf))) > 0)
			if (write(out, buf, n) != n)
				goto done;
		/* The bundle's last line may lack its end. */
		if (write(out, "\n", 1) != 1)
			goto done;
	}
	if (n == -1 || write(out, data, len) != (ssize_t)len ||
	    renameat(dir, tmp, dir, name) == -1)
		goto done;
	rv = 0;
done:
	if (rv == -1)
		log_warn("trust directory: %s", name);
	if (in != -1)
		close(in);
	if (out != -1)
		close(out);
	return rv;
}

/* A file is there and holds something else. */
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
	return n != -1 && ((size_t)n != strlen(text) ||
	    memcmp(have, text, n) != 0);
}

int
parent_engine_trust(struct ipc *ip, const union msg *m)
{
	const struct msg_engine_trust	*mt = &m->engine_trust;
	const struct proc		*pr = ip->ip_arg;
	struct session			*se = pr->pr_session;
	const struct conf_session	*ss;
	struct why			 why;
	int				 dir;

	if (se == NULL ||
	    (ss = conf_session_find(d.d_conf, se->se_name)) == NULL ||
	    ss->ss_trust_directory == NULL)
		return 0;
	if ((dir = trust_directory(ss->ss_trust_directory, &why)) == -1) {
		log_warnx("session %s: trust directory %s", ss->ss_name,
		    why.text);
		return 0;
	}
	/* Of a daemon before this one; policyd tells of those since. */
	if (!se->se_trusted && differs(dir, "ca.pem", mt->ca))
		log_warnx("session %s: new CA in %s: clients that loaded the "
		    "one before reject it ('ca certificate ... key ...' keeps "
		    "one)", se->se_name, ss->ss_trust_directory);
	se->se_trusted = true;
	write_file(dir, "ca.pem", NULL, mt->ca, strlen(mt->ca));
	write_file(dir, "bundle.pem", trust_bundle(d.d_conf, ss), mt->ca,
	    strlen(mt->ca));
	write_file(dir, "ca.jks", NULL, mt->java.data, mt->java.len);
	close(dir);
	return 0;
}
