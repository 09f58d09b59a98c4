/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: `manifest merge', a JSON merge patch of the operator's on
 * the manifest of a pod.  An operator may be mistaken, or have copied the file
 * from somewhere; so that no patch opens what the rest of the manifest closes,
 * it has members of a list only, and the whole is looked at again.
 */

#include <stdio.h>
#include <string.h>

#include "log.h"
#include "manifest.h"

/* Members of spec that a patch may have, besides labels and annotations. */
static const char *const allowed[] = {
	"affinity", "dnsConfig", "hostAliases", "hostname", "imagePullSecrets",
	"nodeSelector", "preemptionPolicy", "priorityClassName",
	"readinessGates", "runtimeClassName", "schedulerName", "subdomain",
	"terminationGracePeriodSeconds", "tolerations",
	"topologySpreadConstraints", NULL
};

/* Members of spec that no pod of ours has, wherever they come from. */
static const char *const never[] = {
	"ephemeralContainers", "hostIPC", "hostNetwork", "hostPID",
	"hostUsers", "nodeName", "shareProcessNamespace", NULL
};

/* Members of spec that a patch leaves as they are. */
static const char *const kept[] = {
	"activeDeadlineSeconds", "automountServiceAccountToken", "containers",
	"dnsPolicy", "enableServiceLinks", "initContainers", "restartPolicy",
	"securityContext", "serviceAccountName", "volumes", NULL
};

/* By which names are asked of the gate, where there is one. */
static const char	 dns[] = "dnsConfig";

static int
in_list(const char *const *list, const char *word)
{
	for (; *list != NULL; list++)
		if (strcmp(*list, word) == 0)
			return 1;
	return 0;
}

static int
refuse(char *why, size_t len, const char *where, const char *what,
    const char *text)
{
	snprintf(why, len, "manifest merge: %s%.100s%s", where, what, text);
	return -1;
}

/* ---- what a patch has ---- */

static int
check_marks(const cJSON *marks, const char *where, char *why, size_t len)
{
	const cJSON	*v;

	if (!cJSON_IsObject(marks))
		return refuse(why, len, where, "", " is no object");
	cJSON_ArrayForEach(v, marks) {
		if (strncmp(v->string, NOTE_PREFIX, strlen(NOTE_PREFIX)) ==
		    0 || strcmp(v->string, MARK_MANAGED) == 0)
			return refuse(why, len, where, v->string,
			    " is egressd's own");
		if (!cJSON_IsString(v) && !cJSON_IsNull(v))
			return refuse(why, len, where, v->string,
			    " is no text");
	}
	return 0;
}

static int
check_metadata(const cJSON *meta, char *why, size_t len)
{
	const cJSON	*v;

	cJSON_ArrayForEach(v, meta) {
		if (strcmp(v->string, "labels") == 0) {
			if (check_marks(v, "metadata.labels.", why, len) == -1)
				return -1;
		} else if (strcmp(v->string, "annotations") == 0) {
			if (check_marks(v, "metadata.annotations.", why,
			    len) == -1)
				return -1;
		} else
			return refuse(why, len, "metadata.", v->string,
			    " is not permitted");
	}
	return 0;
}

static int
check_spec(const cJSON *spec, int gated, char *why, size_t len)
{
	const cJSON	*v;

	cJSON_ArrayForEach(v, spec) {
		if (!in_list(allowed, v->string))
			return refuse(why, len, "spec.", v->string,
			    " is not permitted");
		if (gated && strcmp(v->string, dns) == 0)
			return refuse(why, len, "spec.", v->string,
			    " is the gate's");
	}
	return 0;
}

static int
check_patch(const cJSON *patch, int gated, char *why, size_t len)
{
	const cJSON	*v;

	cJSON_ArrayForEach(v, patch) {
		if (strcmp(v->string, "metadata") != 0 &&
		    strcmp(v->string, "spec") != 0)
			return refuse(why, len, "", v->string,
			    " is not permitted");
		if (!cJSON_IsObject(v))
			return refuse(why, len, "", v->string,
			    " is no object");
		if ((v->string[0] == 'm' ? check_metadata(v, why, len) :
		    check_spec(v, gated, why, len)) == -1)
			return -1;
	}
	return 0;
}

/* ---- RFC 7386 ---- */

static void
merge_into(cJSON *target, const cJSON *patch)
{
	const cJSON	*v;
	cJSON		*old;

	cJSON_ArrayForEach(v, patch) {
		old = cJSON_GetObjectItemCaseSensitive(target, v->string);
		if (cJSON_IsObject(v)) {
			/* Nulls are left out of what is new, too. */
			if (!cJSON_IsObject(old)) {
				cJSON_DeleteItemFromObjectCaseSensitive(
				    target, v->string);
				old = kj_object(target, v->string);
			}
			merge_into(old, v);
			continue;
		}
		cJSON_DeleteItemFromObjectCaseSensitive(target, v->string);
		if (!cJSON_IsNull(v) && !cJSON_AddItemToObject(target,
		    v->string, kj_copy(v)))
			fatalx("%s: no memory", __func__);
	}
}

/* ---- what comes of it ---- */

static int
check_marks_kept(const cJSON *before, const cJSON *after, char *why,
    size_t len)
{
	static const char *const	 labels[] = {
		MARK_MANAGED, MARK_SESSION, MARK_OWNER, NULL
	};
	size_t				 i;

	for (i = 0; labels[i] != NULL; i++)
		if (strcmp(kj_label(before, labels[i]),
		    kj_label(after, labels[i])) != 0)
			return refuse(why, len, "", labels[i], " is changed");
	if (strcmp(kj_annotation(before, NOTE_ID),
	    kj_annotation(after, NOTE_ID)) != 0)
		return refuse(why, len, "", NOTE_ID, " is changed");
	return 0;
}

static int
check_whole(const cJSON *before, const cJSON *after, char *why, size_t len)
{
	const cJSON	*was = kj_at(before, "spec");
	const cJSON	*is = kj_at(after, "spec");
	size_t		 i;

	for (i = 0; never[i] != NULL; i++)
		if (kj_at(is, never[i]) != NULL)
			return refuse(why, len, "spec.", never[i],
			    " is not permitted");
	for (i = 0; kept[i] != NULL; i++)
		if ((kj_at(was, kept[i]) != NULL ||
		    kj_at(is, kept[i]) != NULL) &&
		    !cJSON_Compare(kj_at(was, kept[i]), kj_at(is, kept[i]), 1))
			return refuse(why, len, "spec.", kept[i],
			    " is changed");
	return check_marks_kept(before, after, why, len);
}

int
manifest_merge(cJSON *pod, const char *text, char *why, size_t len)
{
	cJSON	*patch, *before;
	int	 rv;

	if ((patch = kj_parse(text, strlen(text))) == NULL)
		return refuse(why, len, "", "it", " is no JSON object");
	if ((rv = check_patch(patch, kj_at(pod, "spec/dnsConfig") != NULL, why,
	    len)) == 0) {
		before = kj_copy(pod);
		merge_into(pod, patch);
		rv = check_whole(before, pod, why, len);
		cJSON_Delete(before);
	}
	cJSON_Delete(patch);
	return rv;
}

int
manifest_merge_check(const char *text, int gated, char *why, size_t len)
{
	cJSON	*patch;
	int	 rv;

	if ((patch = kj_parse(text, strlen(text))) == NULL)
		return refuse(why, len, "", "it", " is no JSON object");
	rv = check_patch(patch, gated, why, len);
	cJSON_Delete(patch);
	return rv;
}
