/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: what a credential plugin is told, and as whom it runs.
 * No credential is among that.  A plugin of a kubeconfig is its owner's program
 * and runs with no more than the owner's rights.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "jsonw.h"
#include "kube.h"

#define VERSION_DEFAULT	"client.authentication.k8s.io/v1"
#define CA_MAX		(64 * 1024)
#define INFO_MAX	(128 * 1024)

/* The cluster's authority in base64, or NULL; the file stays at its start. */
static char *
authority(int fd)
{
	char	*data, *text = NULL;
	ssize_t	 n;

	if (fd == -1 || (data = malloc(CA_MAX)) == NULL)
		return NULL;
	n = pread(fd, data, CA_MAX, 0);
	if (n > 0 && n < CA_MAX &&
	    (text = malloc(BASE64_SIZE((size_t)n))) != NULL)
		base64_encode(data, (size_t)n, text);
	free(data);
	return text;
}

static void
info_cluster(struct jsonw *w, const struct kube *kb)
{
	char	*ca = authority(kb->kb_files[FILE_TRUST]);

	jsonw_key(w, "cluster");
	jsonw_object(w);
	jsonw_key(w, "server");
	jsonw_str(w, kb->kb_server);
	if (kb->kb_tls_name != NULL) {
		jsonw_key(w, "tls-server-name");
		jsonw_str(w, kb->kb_tls_name);
	}
	if (kb->kb_insecure) {
		jsonw_key(w, "insecure-skip-tls-verify");
		jsonw_bool(w, 1);
	} else if (ca != NULL) {
		jsonw_key(w, "certificate-authority-data");
		jsonw_str(w, ca);
	}
	if (kb->kb_proxy != NULL) {
		jsonw_key(w, "proxy-url");
		jsonw_str(w, kb->kb_proxy);
	}
	jsonw_end(w);
	free(ca);
}

/* KUBERNETES_EXEC_INFO: an ExecCredential without a status. */
static bool
info_make(struct kube *kb)
{
	static const char	 name[] = "KUBERNETES_EXEC_INFO=";
	struct jsonw		 w;
	const char		*json;
	char			*text;
	size_t			 len;

	jsonw_init(&w, INFO_MAX);
	jsonw_object(&w);
	jsonw_key(&w, "apiVersion");
	jsonw_str(&w, kb->kb_plugin_version != NULL ? kb->kb_plugin_version :
	    VERSION_DEFAULT);
	jsonw_key(&w, "kind");
	jsonw_str(&w, "ExecCredential");
	jsonw_key(&w, "spec");
	jsonw_object(&w);
	if (kb->kb_plugin_cluster)
		info_cluster(&w, kb);
	jsonw_key(&w, "interactive");
	jsonw_bool(&w, 0);
	jsonw_end(&w);
	jsonw_end(&w);
	if ((json = jsonw_finish(&w, &len)) != NULL) {
		if (asprintf(&text, "%s%.*s", name, (int)len, json) == -1)
			fatal("%s", __func__);
		kube_word(&kb->kb_environment, text, strlen(text));
		free(text);
	}
	jsonw_free(&w);
	return json != NULL;
}

const char *
kube_plugin_ready(struct kube *kb, const struct conf_cluster *cl, bool owned)
{
	if (cl != NULL && cl->cl_user != NULL)
		kube_text(&kb->kb_plugin_user, cl->cl_user,
		    strlen(cl->cl_user));
	if (kb->kb_plugin_user == NULL && owned && d.d_privileged &&
	    kb->kb_plugin_owner == 0)
		return "exec: the kubeconfig is root's, and a plugin does not "
		    "run as root: the cluster block has to say as which user";
	if (!d.d_privileged)
		kb->kb_plugin_owner = 0;
	return info_make(kb) ? NULL : "exec: what the plugin is told is too "
	    "large";
}
