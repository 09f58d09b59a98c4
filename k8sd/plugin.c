/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what a credential plugin has written, an ExecCredential of
 * client.authentication.k8s.io.  The plugin is the operator's, but its output
 * may be anything.
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "credential.h"
#include "k8sd.h"

#define GROUP	"client.authentication.k8s.io/"

/* A member that is a string, or NULL; *bad if it is something else. */
static const char *
member(const cJSON *object, const char *name, bool *bad)
{
	const cJSON	*v;

	v = cJSON_GetObjectItemCaseSensitive(object, name);
	if (v == NULL || cJSON_IsNull(v))
		return NULL;
	if (!cJSON_IsString(v))
		*bad = true;
	return *bad || v->valuestring[0] == '\0' ? NULL : v->valuestring;
}

/* RFC 3339, of which seconds are enough; 0 if it is no time. */
static int64_t
time_of(const char *text)
{
	struct tm	 tm = { 0 };
	const char	*p;
	int		 hours, minutes;
	char		 sign;
	int64_t		 t;

	if ((p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)) == NULL)
		return 0;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	t = timegm(&tm);
	if (strcasecmp(p, "Z") == 0)
		return t;
	if (strlen(p) != 6 || sscanf(p, "%c%2d:%2d", &sign, &hours,
	    &minutes) != 3 || (sign != '+' && sign != '-'))
		return 0;
	return t - (sign == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
}

static const char *
status_read(struct exec_credential *ec, const cJSON *status)
{
	const char	*until;
	bool		 bad = false;

	ec->ec_token = member(status, "token", &bad);
	ec->ec_cert = member(status, "clientCertificateData", &bad);
	ec->ec_key = member(status, "clientKeyData", &bad);
	until = member(status, "expirationTimestamp", &bad);
	if (bad)
		return "a member of its status is no string";
	if ((ec->ec_cert == NULL) != (ec->ec_key == NULL))
		return "it gave a certificate or a key without the other";
	if (ec->ec_token == NULL && ec->ec_cert == NULL)
		return "it gave neither a token nor a certificate";
	if (until != NULL && (ec->ec_until_s = time_of(until)) == 0)
		return "its expirationTimestamp is no time";
	return NULL;
}

static const char *
credential_read(struct exec_credential *ec, const cJSON *json)
{
	const cJSON	*status;
	const char	*kind, *version;
	bool		 bad = false;

	kind = member(json, "kind", &bad);
	version = member(json, "apiVersion", &bad);
	if (kind == NULL || strcmp(kind, "ExecCredential") != 0)
		return "its output is no ExecCredential";
	if (version == NULL || (strcmp(version, GROUP "v1") != 0 &&
	    strcmp(version, GROUP "v1beta1") != 0))
		return "its output is neither of " GROUP "v1 nor v1beta1";
	status = cJSON_GetObjectItemCaseSensitive(json, "status");
	if (!cJSON_IsObject(status))
		return "its output has no status";
	return status_read(ec, status);
}

/* What it points to lives in it, until it is freed. */
int
exec_credential_parse(struct exec_credential *ec, const char *text, size_t len,
    char *why, size_t size)
{
	const char	*what = "its output is no JSON object";

	memset(ec, 0, sizeof(*ec));
	ec->ec_json = cJSON_ParseWithLength(text, len);
	if (cJSON_IsObject(ec->ec_json))
		what = credential_read(ec, ec->ec_json);
	if (what == NULL)
		return 0;
	strlcpy(why, what, size);
	exec_credential_free(ec);
	return -1;
}

static void
wipe(const char *text)
{
	if (text != NULL)
		explicit_bzero((void *)(uintptr_t)text, strlen(text));
}

void
exec_credential_free(struct exec_credential *ec)
{
	wipe(ec->ec_token);
	wipe(ec->ec_key);
	cJSON_Delete(ec->ec_json);
	memset(ec, 0, sizeof(*ec));
}
