/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: Secret and NetworkPolicy of a pod with a gate, as the API
 * takes them.
 *
 * The NetworkPolicy is a second fence, for the case that the first has a hole:
 * nobody comes in, and of the world all but what is private may be reached,
 * unless a rule of the policy opens that.  It acts late and not on every
 * network, so the fence in the pod does not rely on it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "log.h"
#include "manifest.h"
#include "owned.h"

/* Networks that nobody meets on the Internet. */
static const char *const	 private4[] = {
	"10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
	"172.16.0.0/12", "192.168.0.0/16", NULL
};
static const char *const	 private6[] = {
	"fc00::/7", "fe80::/10", NULL
};

static const struct {
	const char	*ok_api;	/* before the namespace */
	const char	*ok_resource;
	const char	*ok_version;
	const char	*ok_kind;
} kinds[OWNED_MAX] = {
	[OWNED_SECRET] = { "/api/v1", "secrets", "v1", "Secret" },
	[OWNED_NETWORK] = { "/apis/networking.k8s.io/v1", "networkpolicies",
	    "networking.k8s.io/v1", "NetworkPolicy" },
};

const char *
owned_resource(enum owned_kind kind)
{
	return kinds[kind].ok_resource;
}

void
owned_path(enum owned_kind kind, const char *namespace, const char *name,
    char *out, size_t size)
{
	snprintf(out, size, "%s/namespaces/%s/%s%s%s", kinds[kind].ok_api,
	    namespace, kinds[kind].ok_resource, name[0] != '\0' ? "/" : "",
	    name);
}

int
owned_is(const cJSON *object, const char *uid)
{
	const cJSON	*v;

	cJSON_ArrayForEach(v, kj_at(object, "metadata/ownerReferences"))
		if (strcmp(kj_string(v, "kind"), "Pod") == 0 &&
		    strcmp(kj_string(v, "uid"), uid) == 0)
			return 1;
	return 0;
}

/* ---- metadata ---- */

static void
put_owner(cJSON *meta, const char *name, const char *uid)
{
	cJSON	*owner;

	if (uid[0] == '\0')
		return;
	owner = kj_item(kj_array(meta, "ownerReferences"));
	kj_put(owner, "apiVersion", "v1");
	kj_put(owner, "kind", "Pod");
	kj_put(owner, "name", name);
	kj_put(owner, "uid", uid);
}

static void
put_label(cJSON *labels, const cJSON *pod, const char *key)
{
	kj_put(labels, key, kj_label(pod, key));
}

static void
put_metadata(cJSON *object, const cJSON *pod, const char *uid)
{
	cJSON	*meta = kj_object(object, "metadata"), *labels;

	kj_put(meta, "name", kj_string(pod, "metadata/name"));
	kj_put(meta, "namespace", kj_string(pod, "metadata/namespace"));
	labels = kj_object(meta, "labels");
	put_label(labels, pod, MARK_MANAGED);
	put_label(labels, pod, MARK_SESSION);
	put_label(labels, pod, MARK_OWNER);
	put_owner(meta, kj_string(pod, "metadata/name"), uid);
}

/* ---- the Secret ---- */

static void
put_file(cJSON *data, const char *name, const char *text, size_t len)
{
	char	*coded;

	if ((coded = malloc(BASE64_SIZE(len))) == NULL)
		fatal("%s", __func__);
	base64_encode(text, len, coded);
	kj_put(data, name, coded);
	free(coded);
}

static void
put_secret(cJSON *object, const struct gate *ga)
{
	cJSON	*data;

	kj_put(object, "type", "Opaque");
	data = kj_object(object, "data");
	put_file(data, "egressd.conf", ga->ga_conf, ga->ga_conf_len);
	put_file(data, "upstream.pem", ga->ga_trust, ga->ga_trust_len);
}

/* ---- the NetworkPolicy ---- */

static void
put_block(cJSON *to, const char *cidr, const char *const *except)
{
	cJSON	*block = kj_object(kj_item(to), "ipBlock");

	kj_put(block, "cidr", cidr);
	if (except != NULL)
		part_command(block, "except", except);
}

/*
 * By their addresses, and the cluster's own by its label: the address of a
 * Service is that of a pod when it comes to be judged, and so is its port.
 */
static void
put_dns(cJSON *egress, const struct gate *ga)
{
	cJSON	*to = kj_array(kj_item(egress), "to"), *peer;
	char	 servers[1024], cidr[64], *rest = servers, *word;

	strlcpy(servers, ga->ga_resolvers, sizeof(servers));
	while ((word = strsep(&rest, " ")) != NULL) {
		if (*word == '\0')	/* there are none */
			continue;
		snprintf(cidr, sizeof(cidr), "%s/%d", word,
		    strchr(word, ':') != NULL ? 128 : 32);
		put_block(to, cidr, NULL);
	}
	peer = kj_item(to);
	kj_object(peer, "namespaceSelector");
	kj_put(kj_object(kj_object(peer, "podSelector"), "matchLabels"),
	    "k8s-app", "kube-dns");
}

static void
put_network(cJSON *object, const cJSON *pod, const struct gate *ga)
{
	cJSON	*spec = kj_object(object, "spec"), *labels, *types, *egress;
	cJSON	*to;

	labels = kj_object(kj_object(spec, "podSelector"), "matchLabels");
	put_label(labels, pod, MARK_MANAGED);
	put_label(labels, pod, MARK_SESSION);
	put_label(labels, pod, MARK_OWNER);
	types = kj_array(spec, "policyTypes");
	kj_put_item(types, "Ingress");
	kj_put_item(types, "Egress");
	egress = kj_array(spec, "egress");
	put_dns(egress, ga);
	to = kj_array(kj_item(egress), "to");
	put_block(to, "0.0.0.0/0", ga->ga_private ? NULL : private4);
	put_block(to, "::/0", ga->ga_private ? NULL : private6);
}

cJSON *
owned_object(enum owned_kind kind, const cJSON *pod, const char *uid,
    const struct gate *ga)
{
	cJSON	*object = kj_object(NULL, NULL);

	kj_put(object, "apiVersion", kinds[kind].ok_version);
	kj_put(object, "kind", kinds[kind].ok_kind);
	put_metadata(object, pod, uid);
	if (kind == OWNED_SECRET)
		put_secret(object, ga);
	else
		put_network(object, pod, ga);
	return object;
}
