/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: what the gate in a pod is told, for k8sd to bring it
 * there unread.  It is rendered from the running configuration when a session
 * is about to begin, hashed, and handed over as files in memory that nobody can
 * change any more.
 */

#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define SERVERS_MAX	8
#define TRUST_MAX	(768 * 1024)	/* a Secret has a MiB for all */
#define CONF_MAX	(128 * 1024)
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | \
			F_SEAL_SEAL)

/* ---- name servers ---- */

static void
server_add(struct conf_server *list, size_t *n, const struct addr *ad,
    uint16_t port)
{
	/* Ours, which nobody reaches from a pod. */
	if (*n == SERVERS_MAX || addr_classify(ad) == ADDR_LOOPBACK)
		return;
	list[*n].sv_addr = *ad;
	list[(*n)++].sv_port = port;
}

static size_t
servers(const struct config *conf, const struct conf_sandbox *sb,
    struct conf_server *list)
{
	const struct conf_endpoint	*ep;
	const struct conf_word		*wd;
	struct addr			 system[SERVERS_MAX], ad;
	size_t				 i, n = 0, count;

	TAILQ_FOREACH(wd, &sb->sb_pod.pd_gate_resolvers, wd_entry)
		if (addr_parse(wd->wd_text, &ad) == 0)
			server_add(list, &n, &ad, 53);
	if (!TAILQ_EMPTY(&sb->sb_pod.pd_gate_resolvers))
		return n;
	TAILQ_FOREACH(ep, &conf->cf_resolvers, ep_entry)
		server_add(list, &n, &ep->ep_addr, ep->ep_port);
	if (!TAILQ_EMPTY(&conf->cf_resolvers))
		return n;
	count = resolv_system(system, SERVERS_MAX);
	for (i = 0; i < count; i++)
		server_add(list, &n, &system[i], 53);
	return n;
}

/* With a space between them, for whoever lets packets to them through. */
static void
servers_list(const struct conf_server *list, size_t n, char *out, size_t size)
{
	char	 text[ADDRESS_LEN];
	size_t	 i;

	out[0] = '\0';
	for (i = 0; i < n; i++) {
		if (i > 0)
			strlcat(out, " ", size);
		strlcat(out, addr_format(&list[i].sv_addr, text,
		    sizeof(text)), size);
	}
}

/* ---- files ---- */

/* -1 and errno. */
static int
sealed(const char *text, size_t len)
{
	ssize_t	 n;
	size_t	 done = 0;
	int	 fd, error;

	if ((fd = memfd_create("pod", MFD_CLOEXEC | MFD_ALLOW_SEALING)) == -1)
		return -1;
	for (; done < len; done += (size_t)n)
		if ((n = write(fd, text + done, len - done)) == -1)
			goto fail;
	if (lseek(fd, 0, SEEK_SET) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
fail:
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* A copy: the file itself may be written to while k8sd reads it. */
static int
trust_copy(const char *path, struct why *why)
{
	static char	 buf[TRUST_MAX + 1];
	ssize_t		 n;
	size_t		 len = 0;
	int		 from, fd;

	if ((from = place_read(path, why)) == -1)
		return -1;
	while (len < sizeof(buf) && (n = read(from, buf + len,
	    sizeof(buf) - len)) > 0)
		len += (size_t)n;
	close(from);
	if (len == 0 || len > TRUST_MAX)
		return why_set(why, "%s: %s", path, len == 0 ? "it is empty" :
		    "it is too long for a pod");
	if ((fd = sealed(buf, len)) == -1)
		return why_set(why, "%s: %s", path, strerror(errno));
	return fd;
}

static int
conf_file(const struct conf_policy *cp, const struct conf_server *list,
    size_t n, char sha256[FINGERPRINT_LEN + 1], struct why *why)
{
	char	*text;
	size_t	 len;
	FILE	*fp;
	int	 fd = -1;

	if ((fp = open_memstream(&text, &len)) == NULL)
		fatal("%s", __func__);
	if (conf_print_pod(d.d_conf, cp, list, n, fp) == -1 ||
	    fclose(fp) == EOF)
		fatal("%s", __func__);
	SHA256Data((const uint8_t *)text, len, sha256);
	if (len > CONF_MAX)
		why_set(why, "policy %s is too long for a pod", cp->cp_name);
	else if ((fd = sealed(text, len)) == -1)
		why_set(why, "policy %s: %s", cp->cp_name, strerror(errno));
	free(text);
	return fd;
}

/* -1 and why; else k8sd is told all that the gate of this session needs. */
int
podconf_send(const struct session *se, const struct conf_sandbox *sb,
    struct why *why)
{
	const struct conf_policy	*cp = session_policy(d.d_conf, se);
	struct proc			*k8sd = proc_find(ROLE_K8SD);
	struct conf_server		 list[SERVERS_MAX];
	char				 sha256[FINGERPRINT_LEN + 1];
	char				 text[PATH_LEN + 1];
	size_t				 n = servers(d.d_conf, sb, list);
	int				 conf, trust;

	if (cp == NULL || k8sd == NULL || k8sd->pr_ipc == NULL)
		return why_set(why, "there is no k8sd, or no policy");
	if (n == 0)
		return why_set(why, "%s: there is no name server that a pod "
		    "could ask: say gate-resolver in its block", sb->sb_name);
	if ((trust = trust_copy(trust_bundle(d.d_conf, NULL), why)) == -1)
		return -1;
	if ((conf = conf_file(cp, list, n, sha256, why)) == -1) {
		close(trust);
		return -1;
	}
	servers_list(list, n, text, sizeof(text));
	ipc_send(k8sd->pr_ipc, trust, POD_CONF, pod_conf,
	    .number = se->se_number, .what = POD_CONF_TRUST, .sha256 = sha256,
	    .private = conf_policy_is_private(cp), .resolvers = text);
	ipc_send(k8sd->pr_ipc, conf, POD_CONF, pod_conf,
	    .number = se->se_number, .what = POD_CONF_TEXT, .sha256 = sha256,
	    .private = conf_policy_is_private(cp), .resolvers = text);
	/* k8sd has them before controld hears that it may ask for the pod. */
	ipc_push(k8sd->pr_ipc);
	return 0;
}
