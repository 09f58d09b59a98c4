/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: is a pod that is there already the one that we would make?
 * Marks can be copied by whoever may create pods, so that the live pod has to
 * have all that we ask for, and of what we do not ask for only what API
 * servers add by themselves.  A member that nobody here knows differs.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "manifest.h"

#define WHERE_LEN	256
#define TOKEN_PATH	"/var/run/secrets/kubernetes.io/serviceaccount"

/* What differs first, and where the walk is. */
struct walk {
	char		 wa_where[WHERE_LEN];
	char		*wa_why;
	size_t		 wa_len;
	int		 wa_token;	/* the workspace is to have one */
};

/* What API servers add to an object that we call so; NULL: any value. */
struct added {
	const char	*ad_in;
	const char	*ad_member;
	const char	*ad_value;
};

static const struct added	 additions[] = {
	{ "spec",	"dnsPolicy",			"\"ClusterFirst\"" },
	{ "spec",	"nodeName",			NULL },
	{ "spec",	"overhead",			NULL },
	{ "spec",	"preemptionPolicy",		NULL },
	{ "spec",	"priority",			NULL },
	{ "spec",	"priorityClassName",		NULL },
	{ "spec",	"schedulerName",	"\"default-scheduler\"" },
	{ "spec",	"securityContext",		"{}" },
	{ "spec",	"serviceAccount",		NULL },
	{ "spec",	"serviceAccountName",		"\"default\"" },
	{ "spec",	"tolerations",			NULL },
	{ "container",	"imagePullPolicy",		NULL },
	{ "container",	"resizePolicy",			NULL },
	{ "container",	"resources",			NULL },
	{ "container",	"terminationMessagePath", "\"/dev/termination-log\"" },
	{ "container",	"terminationMessagePolicy",	"\"File\"" },
	{ "resources",	"limits",			NULL },
	{ "resources",	"requests",			NULL },
};

static int	 same(struct walk *, const char *, const cJSON *,
		    const cJSON *);

static void	 differs(struct walk *, const char *, ...) LOG_FORMAT(2, 3);

static void
differs(struct walk *wa, const char *fmt, ...)
{
	va_list	 ap;
	int	 n;

	n = snprintf(wa->wa_why, wa->wa_len, "%s", wa->wa_where);
	if (n < 0 || (size_t)n >= wa->wa_len)
		return;
	va_start(ap, fmt);
	vsnprintf(wa->wa_why + n, wa->wa_len - (size_t)n, fmt, ap);
	va_end(ap);
}

/* The walk goes one member deeper; what it was is what this returns. */
static size_t
enter(struct walk *wa, const char *name)
{
	size_t	 was = strlen(wa->wa_where);

	if (was > 0 && name[0] != '[')
		strlcat(wa->wa_where, ".", sizeof(wa->wa_where));
	strlcat(wa->wa_where, name, sizeof(wa->wa_where));
	return was;
}

/* ---- quantities ---- */

/* "500m" and "0.5" are the same, and servers write one for the other. */
static double
quantity(const char *text)
{
	static const struct { const char *suffix; double factor; } units[] = {
		{ "", 1 }, { "n", 1e-9 }, { "u", 1e-6 }, { "m", 1e-3 },
		{ "k", 1e3 }, { "M", 1e6 }, { "G", 1e9 }, { "T", 1e12 },
		{ "P", 1e15 }, { "E", 1e18 }, { "Ki", 1024.0 },
		{ "Mi", 1048576.0 }, { "Gi", 1073741824.0 },
		{ "Ti", 1099511627776.0 }, { "Pi", 1125899906842624.0 },
		{ "Ei", 1152921504606846976.0 },
	};
	char	*end;
	double	 n;
	size_t	 i;

	n = strtod(text, &end);
	for (i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].suffix) == 0)
			return n * units[i].factor;
	return -1;
}

static int
same_quantity(const char *a, const char *b)
{
	double	 x = quantity(a), y = quantity(b);

	return x >= 0 && y >= 0 && x - y <= x * 1e-9 && y - x <= x * 1e-9;
}

static int
is_quantity(const char *in, const char *member)
{
	return strcmp(in, "requests") == 0 || strcmp(in, "limits") == 0 ||
	    strcmp(member, "sizeLimit") == 0;
}

/* ---- values ---- */

static int
same_scalar(struct walk *wa, const char *in, const cJSON *want,
    const cJSON *live)
{
	char	 is[64], should[64], *text;

	if (cJSON_Compare(want, live, 1))
		return 1;
	if (cJSON_IsString(want) && cJSON_IsString(live) &&
	    want->string != NULL && is_quantity(in, want->string) &&
	    same_quantity(want->valuestring, live->valuestring))
		return 1;
	text = kj_print(live);
	kj_tame(text, strlen(text), is, sizeof(is));
	cJSON_free(text);
	text = kj_print(want);
	kj_tame(text, strlen(text), should, sizeof(should));
	cJSON_free(text);
	differs(wa, " is %s, not %s", is, should);
	return 0;
}

/* Is a member that we did not ask for one that servers add? */
static int
is_added(const char *in, const cJSON *v)
{
	const struct added	*ad;
	size_t			 i;
	char			*text;
	int			 equal;

	/* Defaults of quantities are a namespace's (LimitRange). */
	if (is_quantity(in, ""))
		return 1;
	for (i = 0; i < sizeof(additions) / sizeof(additions[0]); i++) {
		ad = &additions[i];
		if (strcmp(ad->ad_in, in) != 0 ||
		    strcmp(ad->ad_member, v->string) != 0)
			continue;
		if (ad->ad_value == NULL)
			return 1;
		text = kj_print(v);
		equal = strcmp(text, ad->ad_value) == 0;
		cJSON_free(text);
		return equal;
	}
	return 0;
}

static int
same_object(struct walk *wa, const char *in, const cJSON *want,
    const cJSON *live)
{
	const cJSON	*v, *other;
	size_t		 was;
	int		 ok;

	cJSON_ArrayForEach(v, want) {
		other = cJSON_GetObjectItemCaseSensitive(live, v->string);
		was = enter(wa, v->string);
		if ((ok = other != NULL) == 0)
			differs(wa, " is missing");
		else
			ok = same(wa, in, v, other);
		wa->wa_where[was] = '\0';
		if (!ok)
			return 0;
	}
	cJSON_ArrayForEach(v, live) {
		other = cJSON_GetObjectItemCaseSensitive(want, v->string);
		/* A member that is there twice counts as one unknown. */
		if ((other != NULL &&
		    cJSON_GetObjectItemCaseSensitive(live, v->string) == v) ||
		    (other == NULL && is_added(in, v)))
			continue;
		enter(wa, v->string);
		differs(wa, " is not ours");
		return 0;
	}
	return 1;
}

/* ---- lists ---- */

/* What servers add to lists, by what the list is of. */
static int
item_added(const struct walk *wa, const char *list, const cJSON *v)
{
	if (strcmp(list, "tolerations") == 0)
		return 1;
	if (!wa->wa_token)
		return 0;
	if (strcmp(list, "volumeMounts") == 0)
		return strcmp(kj_string(v, "mountPath"), TOKEN_PATH) == 0;
	return strcmp(list, "volumes") == 0 &&
	    (kj_at(v, "secret") != NULL || kj_at(v, "projected") != NULL);
}

/* What the objects of a list are called in the table of additions. */
static const char *
item_name(const char *list)
{
	return strcmp(list, "containers") == 0 ||
	    strcmp(list, "initContainers") == 0 ? "container" : list;
}

static int
same_array(struct walk *wa, const char *list, const cJSON *want,
    const cJSON *live)
{
	const cJSON	*a = want->child, *b = live->child;
	char		 index[32];
	size_t		 was = strlen(wa->wa_where);
	int		 i, ok = 1;

	for (i = 0; ok && (a != NULL || b != NULL); i++) {
		snprintf(index, sizeof(index), "[%d]", i);
		enter(wa, index);
		if (a == NULL) {
			if ((ok = item_added(wa, list, b)) == 0)
				differs(wa, " is not ours");
		} else if ((ok = b != NULL) == 0)
			differs(wa, " is missing");
		else {
			ok = same(wa, item_name(list), a, b);
			a = a->next;
		}
		if (b != NULL)
			b = b->next;
		wa->wa_where[was] = '\0';
	}
	return ok;
}

/* An object is called by its member, or by the list that it is of. */
static int
same(struct walk *wa, const char *in, const cJSON *want, const cJSON *live)
{
	const char	*name = want->string != NULL ? want->string : in;

	if (cJSON_IsObject(want) && cJSON_IsObject(live))
		return same_object(wa, name, want, live);
	if (cJSON_IsArray(want) && cJSON_IsArray(live))
		return same_array(wa, name, want, live);
	return same_scalar(wa, in, want, live);
}

/* ---- a pod ---- */

static int
has_marks(const cJSON *live, const cJSON *want, char *why, size_t len)
{
	static const char *const	 labels[] = {
		MARK_MANAGED, MARK_SESSION, MARK_OWNER, NULL
	};
	static const char *const	 notes[] = { NOTE_ID, NULL };
	size_t				 i;

	for (i = 0; labels[i] != NULL; i++)
		if (strcmp(kj_label(live, labels[i]),
		    kj_label(want, labels[i])) != 0) {
			snprintf(why, len, "label %s", labels[i]);
			return 0;
		}
	for (i = 0; notes[i] != NULL; i++)
		if (strcmp(kj_annotation(live, notes[i]),
		    kj_annotation(want, notes[i])) != 0) {
			snprintf(why, len, "annotation %s", notes[i]);
			return 0;
		}
	return 1;
}

/* Who may use it, by which policy, and what its gate was told. */
static int
has_owner(const cJSON *live, const cJSON *want, char *why, size_t len)
{
	static const char *const	 notes[] = { NOTE_UID, NOTE_POLICY,
	    NOTE_CONF };
	size_t				 i;
	char				 is[64];

	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (strcmp(kj_annotation(live, notes[i]),
		    kj_annotation(want, notes[i])) == 0)
			continue;
		kj_tame(kj_annotation(live, notes[i]), SIZE_MAX, is,
		    sizeof(is));
		snprintf(why, len, "annotation %s is \"%s\", not \"%.64s\"",
		    notes[i], is, kj_annotation(want, notes[i]));
		return 0;
	}
	return 1;
}

enum adopt
adopt_judge(const cJSON *live, const cJSON *want, char *why, size_t len)
{
	struct walk	 wa = { .wa_why = why, .wa_len = len };
	const cJSON	*asked = kj_at(want, "spec"), *is = kj_at(live, "spec");
	cJSON		*spec;
	int		 ok;

	if (!has_marks(live, want, why, len))
		return ADOPT_FOREIGN;
	if (!has_owner(live, want, why, len))
		return ADOPT_DIFFERS;
	if (!cJSON_IsObject(is) || kj_number(is, "activeDeadlineSeconds") ==
	    0) {
		strlcpy(why, "spec.activeDeadlineSeconds is missing", len);
		return ADOPT_DIFFERS;
	}
	wa.wa_token = cJSON_IsTrue(kj_at(asked,
	    "automountServiceAccountToken"));
	/* The deadline was another session's, and is counted by the pod. */
	spec = kj_copy(is);
	cJSON_ReplaceItemInObjectCaseSensitive(spec, "activeDeadlineSeconds",
	    kj_copy(kj_at(asked, "activeDeadlineSeconds")));
	strlcpy(wa.wa_where, "spec", sizeof(wa.wa_where));
	ok = same_object(&wa, "spec", asked, spec);
	cJSON_Delete(spec);
	return ok ? ADOPT_OURS : ADOPT_DIFFERS;
}
