/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: kubeconfig files.  The parent opens and does not read
 * them; a throw-away process does, confined so that it can do nothing else, and
 * answers with records of a fixed form (kubeconfig/kubeconfig.h).  The parent
 * believes the form, looks values over, and opens what they name with the
 * rights of the file's owner.
 */

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "kube.h"
#include "parent.h"

#define ANSWER_MAX	(4 * 1024 * 1024)
#define ANSWER_MS	5000
#define FIRST_FD	3
#define WORDS_MAX	64	/* of a plugin's command, and environment */

/* ---- the process ---- */

static void
drop(void)
{
	struct rlimit	 cpu = { .rlim_cur = 5, .rlim_max = 5 };
	uid_t		 uid;
	gid_t		 gid;

	if (setrlimit(RLIMIT_CPU, &cpu) == -1)
		_exit(1);
	if (!d.d_privileged)
		return;
	identity_get(ROLE_K8SD, &uid, &gid);
	if (uid == 0 || setgroups(1, &gid) == -1 ||
	    setresgid(gid, gid, gid) == -1 || setresuid(uid, uid, uid) == -1)
		_exit(1);
}

static void __attribute__((__noreturn__))
reader_exec(const struct kube_files *kf, const char *context, int out)
{
	char	 path[PATH_LEN], arg0[] = "egressd-kubeconfig", count[8];
	char	*argv[] = { arg0, count, NULL, NULL }, *envp[] = { NULL };
	int	 fds[KUBE_FILES_MAX], i, null;

	snprintf(path, sizeof(path), "%s/egressd-kubeconfig", path_libexec);
	snprintf(count, sizeof(count), "%u", kf->kf_count);
	if (context != NULL && (argv[2] = strdup(context)) == NULL)
		_exit(1);
	for (i = 0; i < (int)kf->kf_count; i++)
		if ((fds[i] = fcntl(kf->kf_file[i].fd, F_DUPFD_CLOEXEC,
		    FIRST_FD + KUBE_FILES_MAX)) == -1)
			_exit(1);
	if ((out = fcntl(out, F_DUPFD_CLOEXEC, FIRST_FD +
	    KUBE_FILES_MAX)) == -1 ||
	    (null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 || dup2(out, STDOUT_FILENO) == -1 ||
	    (fcntl(STDERR_FILENO, F_GETFD) == -1 &&
	    dup2(null, STDERR_FILENO) == -1))
		_exit(1);
	for (i = 0; i < (int)kf->kf_count; i++)
		if (dup2(fds[i], FIRST_FD + i) == -1)
			_exit(1);
	if (close_range(FIRST_FD + kf->kf_count, UINT_MAX, 0) == -1)
		_exit(1);
	exec_signals();
	drop();
	execve(path, argv, envp);
	_exit(127);
}

/* All that it writes until it ends; NULL and errno. */
static char *
answer_read(int fd, size_t *len)
{
	struct pollfd	 pfd = { .fd = fd, .events = POLLIN };
	uint64_t	 until = clock_ms() + ANSWER_MS, now;
	char		*buf;
	ssize_t		 n;

	*len = 0;
	if ((buf = malloc(ANSWER_MAX)) == NULL)
		return NULL;
	for (;;) {
		now = clock_ms();
		errno = ETIMEDOUT;
		if (now >= until || ((n = poll(&pfd, 1,
		    (int)(until - now))) == -1 && errno != EINTR))
			break;
		if (n != 1)
			continue;
		n = read(fd, buf + *len, ANSWER_MAX - *len);
		if (n == 0)
			return buf;
		if (n == -1 && errno != EINTR)
			break;
		*len += n == -1 ? 0 : (size_t)n;
		errno = EFBIG;
		if (*len == ANSWER_MAX)
			break;
	}
	freezero(buf, *len);
	return NULL;
}

static char *
reader_run(const struct kube_files *kf, const char *context, size_t *len,
    struct why *why)
{
	char	*answer = NULL;
	pid_t	 pid;
	int	 out[2], saved;

	if (pipe2(out, O_CLOEXEC) == -1) {
		why_set(why, "kubeconfig: %s", strerror(errno));
		return NULL;
	}
	if ((pid = fork()) == 0)
		reader_exec(kf, context, out[1]);
	close(out[1]);
	if (pid != -1)
		answer = answer_read(out[0], len);
	saved = errno;
	close(out[0]);
	if (pid != -1) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
			continue;
	}
	if (answer == NULL)
		why_set(why, "%s: reading it: %s", kf->kf_file[0].path,
		    strerror(saved));
	return answer;
}

/* ---- its answer ---- */

struct record {
	char			 re_word[64];
	const struct kube_file	*re_file;
	const char		*re_data;
	size_t			 re_len;
};

/* The next record, or false if this is none. */
static bool
record_next(const struct kube_files *kf, const char **p, const char *end,
    struct record *re)
{
	const char	*line = *p, *nl;
	char		 head[128];
	unsigned int	 file;
	size_t		 len;

	if ((nl = memchr(line, '\n', (size_t)(end - line))) == NULL ||
	    (size_t)(nl - line) >= sizeof(head))
		return false;
	memcpy(head, line, (size_t)(nl - line));
	head[nl - line] = '\0';
	if (sscanf(head, "%63s %u %zu", re->re_word, &file, &len) != 3 ||
	    file >= kf->kf_count || len > ANSWER_MAX ||
	    (size_t)(end - nl - 1) < len + 1 || nl[1 + len] != '\n')
		return false;
	re->re_file = &kf->kf_file[file];
	re->re_data = nl + 1;
	re->re_len = len;
	*p = nl + 1 + len + 1;
	return true;
}

/* Bytes that were in the file, for k8sd to read as from one of their own. */
static int
data_file(struct kube *kb, enum file_kind what, const struct record *re,
    struct why *why)
{
	size_t	 done = 0;
	ssize_t	 n;
	int	 fd;

	if ((fd = memfd_create("kubeconfig", MFD_CLOEXEC)) == -1 ||
	    fchmod(fd, 0600) == -1)
		return why_set(why, "kubeconfig: %s", strerror(errno));
	kube_file_set(kb, what, fd);
	for (; done < re->re_len; done += (size_t)n)
		if ((n = write(fd, re->re_data + done,
		    re->re_len - done)) == -1)
			return why_set(why, "kubeconfig: %s",
			    strerror(errno));
	if (lseek(fd, 0, SEEK_SET) == -1)
		return why_set(why, "kubeconfig: %s", strerror(errno));
	return 0;
}

/* Relative to the directory of the file that names it. */
static int
beside(const struct record *re, char *path, size_t size, struct why *why)
{
	const char	*slash = strrchr(re->re_file->path, '/');
	int		 n;

	if (re->re_len > 0 && re->re_data[0] == '/')
		slash = NULL;
	n = snprintf(path, size, "%.*s%.*s", slash == NULL ? 0 :
	    (int)(slash + 1 - re->re_file->path), re->re_file->path,
	    (int)re->re_len, re->re_data);
	if (n < 0 || (size_t)n >= size)
		return why_set(why, "%s: %s: the name is too long",
		    re->re_file->path, re->re_word);
	return 0;
}

static int
named_file(struct kube *kb, enum file_kind what, const struct record *re,
    struct why *why)
{
	struct why	 where;
	char		 path[PATH_LEN];
	int		 fd;

	if (beside(re, path, sizeof(path), why) == -1)
		return -1;
	if ((fd = owned_open(re->re_file->owner, path, &where)) == -1)
		return why_set(why, "%s: %s: %s", re->re_file->path,
		    re->re_word, where.text);
	kube_file_set(kb, what, fd);
	if (what == FILE_TOKEN) {
		kb->kb_auth = AUTH_TOKEN_FILE;
		kb->kb_token_from = TOKEN_OF_OWNER;
		kb->kb_token_owner = re->re_file->owner;
		kube_text(&kb->kb_token_path, path, strlen(path));
	}
	return 0;
}

/* A program's name with a slash in it is relative as files are. */
static int
plugin_command(struct kube *kb, const struct record *re, struct why *why)
{
	char	 path[PATH_LEN];

	if (memchr(re->re_data, '/', re->re_len) == NULL)
		kube_word(&kb->kb_command, re->re_data, re->re_len);
	else if (beside(re, path, sizeof(path), why) == -1)
		return -1;
	else
		kube_word(&kb->kb_command, path, strlen(path));
	kb->kb_auth = AUTH_PLUGIN;
	kb->kb_plugin_owner = re->re_file->owner;
	return 0;
}

static int
take_text(struct kube *kb, const struct record *re, struct why *why)
{
	static const struct {
		const char	*word;
		size_t		 slot;
		enum option_type type;
	} texts[] = {
		{ "server", offsetof(struct kube, kb_server), OPTION_URL },
		{ "tls-server-name", offsetof(struct kube, kb_tls_name),
		    OPTION_TEXT },
		{ "proxy-url", offsetof(struct kube, kb_proxy),
		    OPTION_URL_CLEAR },
		{ "namespace", offsetof(struct kube, kb_space),
		    OPTION_LABEL },
		{ "username", offsetof(struct kube, kb_user), OPTION_TEXT },
		{ "exec-version", offsetof(struct kube, kb_plugin_version),
		    OPTION_TEXT },
	};
	const char	*bad;
	char		**slot;
	size_t		 i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(re->re_word, texts[i].word) != 0)
			continue;
		slot = (void *)((char *)kb + texts[i].slot);
		kube_text(slot, re->re_data, re->re_len);
		if ((bad = conf_value_error(texts[i].type, *slot)) != NULL)
			return why_set(why, "%s: %s: %s", re->re_file->path,
			    re->re_word, bad);
		return 1;
	}
	return 0;
}

static int
take_file(struct kube *kb, const struct record *re, struct why *why)
{
	static const struct {
		const char	*word;
		enum file_kind	 what;
		bool		 data;
	} files[] = {
		{ "certificate-authority", FILE_TRUST, false },
		{ "certificate-authority-data", FILE_TRUST, true },
		{ "client-certificate", FILE_CERTIFICATE, false },
		{ "client-certificate-data", FILE_CERTIFICATE, true },
		{ "client-key", FILE_KEY, false },
		{ "client-key-data", FILE_KEY, true },
		{ "token", FILE_TOKEN, true },
		{ "tokenFile", FILE_TOKEN, false },
		{ "password", FILE_PASSWORD, true },
	};
	size_t	 i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(re->re_word, files[i].word) != 0)
			continue;
		if (files[i].what == FILE_TOKEN)
			kb->kb_auth = AUTH_TOKEN;
		if (files[i].what == FILE_PASSWORD)
			kb->kb_auth = AUTH_BASIC;
		return (files[i].data ? data_file(kb, files[i].what, re, why) :
		    named_file(kb, files[i].what, re, why)) == -1 ? -1 : 1;
	}
	return 0;
}

static int
take_plugin(struct kube *kb, const struct record *re, struct why *why)
{
	if (strcmp(re->re_word, "exec-command") == 0)
		return plugin_command(kb, re, why);
	if (++kb->kb_words > WORDS_MAX - 8)
		return why_set(why, "%s: exec: too many arguments or "
		    "variables", re->re_file->path);
	if (strcmp(re->re_word, "exec-arg") == 0)
		kube_word(&kb->kb_command, re->re_data, re->re_len);
	else if (strcmp(re->re_word, "exec-env") == 0)
		kube_word(&kb->kb_environment, re->re_data, re->re_len);
	else if (strcmp(re->re_word, "exec-cluster") == 0)
		kb->kb_plugin_cluster = true;
	else
		return why_set(why, "%s: \"%s\" was not expected",
		    re->re_file->path, re->re_word);
	return 0;
}

static int
take_record(struct kube *kb, const struct record *re, struct why *why)
{
	int	 rv;

	if (strcmp(re->re_word, "error") == 0)
		return why_set(why, "%s:%s%.*s", re->re_file->path,
		    re->re_len > 0 && re->re_data[0] >= '0' &&
		    re->re_data[0] <= '9' ? "" : " ", (int)re->re_len,
		    re->re_data);
	if (strcmp(re->re_word, "insecure") == 0) {
		kb->kb_insecure = true;
		return 0;
	}
	if ((rv = take_text(kb, re, why)) == 0 &&
	    (rv = take_file(kb, re, why)) == 0)
		rv = take_plugin(kb, re, why);
	return rv == -1 ? -1 : 0;
}

/* What the files say of a context; NULL is their current one. */
int
kubeconfig_read(struct kube *kb, const struct kube_files *kf,
    const char *context, struct why *why)
{
	struct record	 re;
	char		*answer;
	const char	*p, *end;
	size_t		 len;
	int		 rv = -1;

	if ((answer = reader_run(kf, context, &len, why)) == NULL)
		return -1;
	end = answer + len;
	for (p = answer; record_next(kf, &p, end, &re);) {
		if (strcmp(re.re_word, "end") == 0) {
			rv = 0;
			break;
		}
		if (take_record(kb, &re, why) == -1)
			goto done;
	}
	if (rv == -1)
		why_set(why, "%s: what reads it has failed",
		    kf->kf_file[0].path);
done:
	freezero(answer, len);
	return rv;
}
