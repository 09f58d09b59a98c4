/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: where clusters are and who we are there, in the order
 * of egressd.conf(5).  Only what a sandbox uses is looked at.
 */

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kube.h"

#define ACCOUNT		"/var/run/secrets/kubernetes.io/serviceaccount"
#define SERVICE		"kubernetes.default.svc"

/* ---- the object ---- */

void
kube_text(char **slot, const char *text, size_t len)
{
	free(*slot);
	if ((*slot = strndup(text, len)) == NULL)
		fatal("%s", __func__);
}

void
kube_word(struct conf_words *list, const char *text, size_t len)
{
	struct conf_word	*wd;
	char			*copy = NULL;

	if ((wd = calloc(1, sizeof(*wd))) == NULL)
		fatal("%s", __func__);
	kube_text(&copy, text, len);
	wd->wd_text = copy;
	TAILQ_INSERT_TAIL(list, wd, wd_entry);
}

static void
words_free(struct conf_words *list)
{
	struct conf_word	*wd;

	while ((wd = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, wd, wd_entry);
		free((void *)(uintptr_t)wd->wd_text);
		free(wd);
	}
}

void
kube_file_set(struct kube *kb, enum file_kind what, int fd)
{
	if (kb->kb_files[what] != -1)
		close(kb->kb_files[what]);
	kb->kb_files[what] = fd;
}

static struct kube *
kube_new(const struct conf_cluster *cl, const struct conf_sandbox *sb)
{
	struct kube	*kb;
	size_t		 i;

	if ((kb = calloc(1, sizeof(*kb))) == NULL)
		fatal("%s", __func__);
	kb->kb_pos = cl != NULL ? cl->cl_pos : sb->sb_pos;
	if (cl != NULL)
		strlcpy(kb->kb_name, cl->cl_name, sizeof(kb->kb_name));
	for (i = 0; i < FILE_KIND_MAX; i++)
		kb->kb_files[i] = -1;
	TAILQ_INIT(&kb->kb_command);
	TAILQ_INIT(&kb->kb_environment);
	return kb;
}

static void
kube_free(struct kube *kb)
{
	size_t	 i;

	for (i = 0; i < FILE_KIND_MAX; i++)
		kube_file_set(kb, i, -1);
	words_free(&kb->kb_command);
	words_free(&kb->kb_environment);
	free(kb->kb_server);
	free(kb->kb_space);
	free(kb->kb_tls_name);
	free(kb->kb_proxy);
	free(kb->kb_user);
	free(kb->kb_token_path);
	free(kb->kb_plugin_version);
	free(kb->kb_plugin_user);
	free(kb);
}

void
kubes_close(struct kubes *list)
{
	struct kube	*kb;

	while ((kb = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, kb, kb_entry);
		kube_free(kb);
	}
}

struct kube *
kube_find(const struct kubes *list, const char *name)
{
	struct kube	*kb;

	TAILQ_FOREACH(kb, list, kb_entry)
		if (strcmp(kb->kb_name, name) == 0)
			return kb;
	return NULL;
}

/* ---- explicit settings ---- */

static int
block_file(struct kube *kb, enum file_kind what, const char *path, bool secret,
    struct why *why)
{
	struct why	 where;
	int		 fd;

	if (path == NULL)
		return 0;
	fd = secret ? key_open(&kb->kb_pos, path, why) :
	    place_read(path, &where);
	if (fd == -1)
		return secret ? -1 : why_set(why, "%s:%u: %s",
		    kb->kb_pos.p_file, kb->kb_pos.p_line, where.text);
	kube_file_set(kb, what, fd);
	return 0;
}

static int
open_explicit(struct kube *kb, const struct conf_cluster *cl, struct why *why)
{
	const struct conf_word	*wd;

	kube_text(&kb->kb_server, cl->cl_server, strlen(cl->cl_server));
	kb->kb_insecure = cl->cl_insecure;
	kb->kb_auth = cl->cl_token_file != NULL ? AUTH_TOKEN_FILE :
	    cl->cl_password_file != NULL ? AUTH_BASIC :
	    !TAILQ_EMPTY(&cl->cl_exec) ? AUTH_PLUGIN : AUTH_NONE;
	if (kb->kb_auth == AUTH_BASIC)
		kube_text(&kb->kb_user, cl->cl_user, strlen(cl->cl_user));
	if (kb->kb_auth == AUTH_TOKEN_FILE)
		kube_text(&kb->kb_token_path, cl->cl_token_file,
		    strlen(cl->cl_token_file));
	TAILQ_FOREACH(wd, &cl->cl_exec, wd_entry)
		kube_word(&kb->kb_command, wd->wd_text, strlen(wd->wd_text));
	if (block_file(kb, FILE_TRUST, cl->cl_ca_file, false, why) == -1 ||
	    block_file(kb, FILE_TOKEN, cl->cl_token_file, true, why) == -1 ||
	    block_file(kb, FILE_CERTIFICATE, cl->cl_cert_file, false,
	    why) == -1 ||
	    block_file(kb, FILE_KEY, cl->cl_key_file, true, why) == -1 ||
	    block_file(kb, FILE_PASSWORD, cl->cl_password_file, true,
	    why) == -1)
		return -1;
	return 0;
}

/* ---- the service account of our own pod ---- */

static int
account_file(struct kube *kb, enum file_kind what, const char *name,
    struct why *why)
{
	char	 path[PATH_LEN];

	snprintf(path, sizeof(path), "%s/%s", ACCOUNT, name);
	return block_file(kb, what, path, false, why);
}

static void
account_namespace(struct kube *kb)
{
	struct why	 why;
	char		 text[NAME_LEN];
	ssize_t		 n;
	int		 fd;

	if ((fd = place_read(ACCOUNT "/namespace", &why)) == -1)
		return;
	if ((n = read(fd, text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		text[strcspn(text, "\n")] = '\0';
		if (conf_value_error(OPTION_LABEL, text) == NULL)
			kube_text(&kb->kb_space, text, strlen(text));
	}
	close(fd);
}

static int
open_account(struct kube *kb, struct why *why)
{
	const char	*host = getenv("KUBERNETES_SERVICE_HOST");
	const char	*port = getenv("KUBERNETES_SERVICE_PORT"), *bad;
	bool		 six;
	char		 url[PATH_LEN];

	if (host == NULL || host[0] == '\0')
		host = SERVICE;
	if (port == NULL || port[0] == '\0')
		port = "443";
	six = strchr(host, ':') != NULL && host[0] != '[';
	snprintf(url, sizeof(url), "https://%s%s%s:%s", six ? "[" : "", host,
	    six ? "]" : "", port);
	if ((bad = conf_value_error(OPTION_URL, url)) != NULL)
		return why_set(why, "%s:%u: KUBERNETES_SERVICE_HOST: %s: %s",
		    kb->kb_pos.p_file, kb->kb_pos.p_line, url, bad);
	kube_text(&kb->kb_server, url, strlen(url));
	kb->kb_auth = AUTH_TOKEN_FILE;
	kb->kb_token_from = TOKEN_OF_ACCOUNT;
	kube_text(&kb->kb_token_path, ACCOUNT "/token",
	    strlen(ACCOUNT "/token"));
	account_namespace(kb);
	if (account_file(kb, FILE_TRUST, "ca.crt", why) == -1 ||
	    account_file(kb, FILE_TOKEN, "token", why) == -1)
		return -1;
	return 0;
}

/* ---- kubeconfig ---- */

/* A file that may be missing is left out, as kubectl(1) does. */
static int
files_add(struct kube_files *kf, const char *path, bool must,
    const struct conf_pos *pos, struct why *why)
{
	struct kube_file	*file = &kf->kf_file[kf->kf_count];

	if (!must && access(path, F_OK) == -1 && errno == ENOENT)
		return 0;
	if (kf->kf_count == KUBE_FILES_MAX)
		return why_set(why, "%s: more than %d kubeconfig files", path,
		    KUBE_FILES_MAX);
	if (strlcpy(file->path, path, sizeof(file->path)) >=
	    sizeof(file->path))
		return why_set(why, "%s: the name is too long", path);
	if ((file->fd = key_open_any(pos, path, &file->owner, why)) == -1)
		return -1;
	kf->kf_count++;
	return 0;
}

static int
files_list(struct kube_files *kf, const char *list, const struct conf_pos *pos,
    struct why *why)
{
	char	 path[PATH_LEN];
	size_t	 n;

	for (; *list != '\0'; list += n + (list[n] == ':')) {
		if ((n = strcspn(list, ":")) == 0)
			continue;
		if (n >= sizeof(path))
			return why_set(why, "KUBECONFIG: a name is too long");
		memcpy(path, list, n);
		path[n] = '\0';
		if (path[0] != '/')
			return why_set(why, "KUBECONFIG: %s: must be an "
			    "absolute path", path);
		if (files_add(kf, path, false, pos, why) == -1)
			return -1;
	}
	return 0;
}

/* What kubectl(1) would read, were it started as the daemon was. */
static int
files_usual(struct kube_files *kf, const struct conf_pos *pos, struct why *why)
{
	const char		*list = getenv("KUBECONFIG");
	const char		*home = getenv("HOME");
	const struct passwd	*pw;
	char			 path[PATH_LEN];

	if (list != NULL && list[0] != '\0')
		return files_list(kf, list, pos, why);
	if (home == NULL && (pw = getpwuid(geteuid())) != NULL)
		home = pw->pw_dir;
	if (home == NULL || home[0] != '/')
		return 0;
	snprintf(path, sizeof(path), "%s/.kube/config", home);
	return files_add(kf, path, false, pos, why);
}

static int
files_read(struct kube *kb, const struct conf_cluster *cl,
    struct kube_files *kf, struct why *why)
{
	int	 rv;

	if (cl != NULL && cl->cl_kubeconfig != NULL)
		rv = files_add(kf, cl->cl_kubeconfig, true, &kb->kb_pos, why);
	else
		rv = files_usual(kf, &kb->kb_pos, why);
	if (rv == -1)
		return -1;
	if (kf->kf_count == 0)
		return why_set(why, "%s:%u: no cluster: this is no pod "
		    "(KUBERNETES_SERVICE_HOST), and there is no kubeconfig "
		    "(KUBECONFIG, ~/.kube/config)", kb->kb_pos.p_file,
		    kb->kb_pos.p_line);
	return kubeconfig_read(kb, kf, cl == NULL ? NULL : cl->cl_context,
	    why);
}

static int
open_kubeconfig(struct kube *kb, const struct conf_cluster *cl,
    struct why *why)
{
	struct kube_files	 kf = { .kf_count = 0 };
	char			 first[PATH_LEN] = "";
	unsigned int		 i;
	int			 rv;

	rv = files_read(kb, cl, &kf, why);
	if (kf.kf_count > 0)
		strlcpy(first, kf.kf_file[0].path, sizeof(first));
	for (i = 0; i < kf.kf_count; i++)
		close(kf.kf_file[i].fd);
	if (rv == 0 && kb->kb_insecure && (cl == NULL || !cl->cl_insecure))
		return why_set(why, "%s: insecure-skip-tls-verify: the "
		    "cluster block does not say insecure", first);
	return rv;
}

/* ---- all of them ---- */

static int
kube_open_by(struct kube *kb, const struct conf_cluster *cl, struct why *why)
{
	const char	*host = getenv("KUBERNETES_SERVICE_HOST");

	if (cl != NULL && cl->cl_server != NULL)
		return open_explicit(kb, cl, why);
	if (cl != NULL && cl->cl_in_cluster)
		return open_account(kb, why);
	if (host != NULL && host[0] != '\0' && (cl == NULL ||
	    (cl->cl_kubeconfig == NULL && cl->cl_context == NULL)))
		return open_account(kb, why);
	return open_kubeconfig(kb, cl, why);
}

/* What a block says goes before what a file says. */
static void
kube_override(struct kube *kb, const struct conf_cluster *cl)
{
	if (cl == NULL)
		return;
	if (cl->cl_namespace != NULL)
		kube_text(&kb->kb_space, cl->cl_namespace,
		    strlen(cl->cl_namespace));
	if (cl->cl_tls_name != NULL)
		kube_text(&kb->kb_tls_name, cl->cl_tls_name,
		    strlen(cl->cl_tls_name));
	if (cl->cl_proxy != NULL)
		kube_text(&kb->kb_proxy, cl->cl_proxy, strlen(cl->cl_proxy));
}

/* Without an authority of its own a server is verified as the system does. */
static void
kube_trust(struct kube *kb)
{
	int	 fd;

	if (kb->kb_insecure || kb->kb_files[FILE_TRUST] != -1)
		return;
	fd = open(SYSTEM_BUNDLE, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		log_warn("cluster \"%s\": %s", kb->kb_name, SYSTEM_BUNDLE);
	else
		kube_file_set(kb, FILE_TRUST, fd);
}

static int
kube_open(struct kube *kb, const struct conf_cluster *cl, struct why *why)
{
	const char	*bad;
	bool		 owned = cl == NULL || cl->cl_server == NULL;

	if (kube_open_by(kb, cl, why) == -1)
		return -1;
	kube_override(kb, cl);
	if (kb->kb_auth == AUTH_PLUGIN &&
	    (bad = kube_plugin_ready(kb, cl, owned)) != NULL)
		return why_set(why, "%s:%u: %s", kb->kb_pos.p_file,
		    kb->kb_pos.p_line, bad);
	kube_trust(kb);
	return 0;
}

/* Those that sandboxes use; in a daemon for one run there are none. */
int
kubes_open(struct kubes *list, const struct config *conf, struct why *why)
{
	const struct conf_sandbox	*sb;
	const struct conf_cluster	*cl;
	struct kube			*kb;

	TAILQ_FOREACH(sb, &conf->cf_sandboxes, sb_entry) {
		if (sb->sb_kind != SANDBOX_KUBERNETES || d.d_private)
			continue;
		cl = sb->sb_cluster;
		if (kube_find(list, cl == NULL ? "" : cl->cl_name) != NULL)
			continue;
		kb = kube_new(cl, sb);
		TAILQ_INSERT_TAIL(list, kb, kb_entry);
		if (kube_open(kb, cl, why) == -1)
			return -1;
	}
	return 0;
}

int
kube_token_open(const struct kube *kb, struct why *why)
{
	switch (kb->kb_token_from) {
	case TOKEN_OF_BLOCK:
		return key_open(&kb->kb_pos, kb->kb_token_path, why);
	case TOKEN_OF_ACCOUNT:
		return place_read(kb->kb_token_path, why);
	default:
		return owned_open(kb->kb_token_owner, kb->kb_token_path, why);
	}
}
