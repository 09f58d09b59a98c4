/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: files of the sandbox as resources, file:///path.  The path is
 * one inside; box resolves it there, and nothing of ours is ever opened.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "show.h"

#define SCHEME		"file://"
#define FILES_MAX	1000	/* entries of a directory, at most */

/* Bytes as they stand in a URI. */
static void
put_escaped(FILE *fp, const char *bytes)
{
	for (; *bytes != '\0'; bytes++)
		if (isalnum((unsigned char)*bytes) ||
		    strchr("/-._~!$&'()*+,;=:@", *bytes) != NULL)
			fputc(*bytes, fp);
		else
			fprintf(fp, "%%%02X", (unsigned char)*bytes);
}

/* The resource that a path, spelt as box does, is; for the caller to free. */
char *
resources_uri(struct server *sv, const char *path)
{
	const char	*cwd = json_string(link_hello(sv->sv_link), "cwd");
	char		*bytes = text_bytes(path), *uri;
	size_t		 len;
	FILE		*fp = must(open_memstream(&uri, &len));

	fputs(SCHEME, fp);
	if (*bytes != '/') {
		put_escaped(fp, cwd == NULL ? "" : cwd);
		if (cwd == NULL || cwd[strlen(cwd) - 1] != '/')
			fputc('/', fp);
	}
	put_escaped(fp, bytes);
	if (fclose(fp) == EOF)
		must(NULL);
	free(bytes);
	return uri;
}

static int
hex_digit(char c)
{
	static const char	 digits[] = "0123456789abcdef";
	const char		*p;

	if (c == '\0' || (p = strchr(digits,
	    tolower((unsigned char)c))) == NULL)
		return -1;
	return (int)(p - digits);
}

/* The bytes of the path of a URI, or NULL if this is no file in there. */
static char *
uri_path(const char *uri)
{
	char	*path, *p;
	int	 high, low;

	if (uri == NULL || strncmp(uri, SCHEME, strlen(SCHEME)) != 0)
		return NULL;
	uri += strlen(SCHEME);
	if (strncmp(uri, "localhost/", 10) == 0)
		uri += 9;
	if (*uri != '/' || strpbrk(uri, "?#") != NULL)
		return NULL;
	p = path = must(strdup(uri));
	for (; *uri != '\0'; uri++) {
		if (*uri != '%') {
			*p++ = *uri;
			continue;
		}
		if ((high = hex_digit(uri[1])) == -1 ||
		    (low = hex_digit(uri[2])) == -1 || high + low == 0) {
			free(path);
			return NULL;
		}
		*p++ = (char)(high << 4 | low);
		uri += 2;
	}
	*p = '\0';
	return path;
}

/* ---- read ---------------------------------------------------------------- */

/* The sandbox did not give it; its words are data, and cut by their line. */
static void
read_failed(struct job *job)
{
	const struct ending	*en = &job->jo_ending;
	int			 code = RPC_INTERNAL;
	cJSON			*data = must(cJSON_CreateObject());
	char			*words;

	if (strcmp(en->en_code, "not_found") == 0)
		code = job->jo_version >= VERSION_MODERN ? RPC_PARAMS :
		    RPC_NO_RESOURCE;
	words = text_of(en->en_message, strlen(en->en_message));
	cJSON_AddStringToObject(data, "uri",
	    json_string(job->jo_args, "uri"));
	cJSON_AddStringToObject(data, "code", en->en_code);
	cJSON_AddStringToObject(data, "sandbox_says", words);
	free(words);
	job_error(job, code, code == RPC_INTERNAL ?
	    "the resource cannot be read" : "resource not found", data);
}

static cJSON *
contents(const struct job *job, const char *data, size_t len)
{
	cJSON	*one = must(cJSON_CreateObject()), *meta;
	size_t	 whole;
	char	*blob;

	cJSON_AddStringToObject(one, "uri", json_string(job->jo_args, "uri"));
	if (text_is(data, len, &whole) && whole == len) {
		cJSON_AddStringToObject(one, "mimeType", "text/plain");
		cJSON_AddStringToObject(one, "text", data);
	} else {
		blob = text_base64(data, len);
		cJSON_AddStringToObject(one, "mimeType", text_type(data, len));
		cJSON_AddStringToObject(one, "blob", blob);
		free(blob);
	}
	if (job->jo_version >= VERSION_2025_06_18) {
		meta = must(cJSON_AddObjectToObject(one, "_meta"));
		cJSON_AddBoolToObject(meta, "egressd/untrusted", 1);
	}
	return one;
}

static void
read_shown(struct job *job)
{
	cJSON	*result;
	char	*data;
	size_t	 len;

	if (job->jo_ending.en_code != NULL) {
		read_failed(job);
		return;
	}
	if (job->jo_out.co_total > READ_MOST) {
		job_error(job, RPC_INTERNAL, "the resource has more than 1 MiB;"
		    " the tool read gives parts of it", NULL);
		return;
	}
	data = collect_all(&job->jo_out, &len);
	result = must(cJSON_CreateObject());
	cJSON_AddItemToArray(must(cJSON_AddArrayToObject(result, "contents")),
	    contents(job, data, len));
	methods_ttl(job, result, 0);
	free(data);
	job_result(job, result);
}

/* resources/read. */
void
resources_read(struct job *job, const cJSON *params)
{
	const char	*uri = json_string(params, "uri");
	char		*path = uri_path(uri);
	struct jsonw	 w;

	if (path == NULL) {
		job_error(job, RPC_PARAMS, "uri: wanted file:///path", NULL);
		return;
	}
	job->jo_show = read_shown;
	job->jo_args = must(cJSON_CreateObject());
	cJSON_AddStringToObject(job->jo_args, "uri", uri);
	collect_init(&job->jo_out, READ_MOST + 1, 0);
	call_op(&w, "read");
	put_str(&w, "path", path);
	put_uint(&w, "length", READ_MOST + 1);
	free(path);
	work_begin(job, &w, &work_bytes);
}

/* ---- list ---------------------------------------------------------------- */

static cJSON *
resource(struct server *sv, const char *name)
{
	cJSON	*one = must(cJSON_CreateObject());
	char	*uri = resources_uri(sv, name);

	cJSON_AddStringToObject(one, "uri", uri);
	cJSON_AddStringToObject(one, "name", name);
	free(uri);
	return one;
}

static void
list_shown(struct job *job)
{
	cJSON		*result = must(cJSON_CreateObject()), *list;
	const cJSON	*item;
	const char	*type, *name;

	list = must(cJSON_AddArrayToObject(result, "resources"));
	cJSON_ArrayForEach(item, job->jo_items) {
		type = json_string(item, "type");
		name = json_string(item, "name");
		if (type != NULL && name != NULL && strcmp(type, "file") == 0)
			cJSON_AddItemToArray(list,
			    resource(job->jo_server, name));
	}
	methods_ttl(job, result, 0);
	job_result(job, result);
}

/* resources/list: files of the working directory, if there is a list. */
void
resources_list(struct job *job)
{
	struct jsonw	w;

	job->jo_show = list_shown;
	job->jo_items = must(cJSON_CreateArray());
	if (!link_can(job->jo_server->sv_link, "list")) {
		list_shown(job);
		return;
	}
	call_op(&w, "list");
	put_uint(&w, "limit", FILES_MAX);
	work_begin(job, &w, &work_items);
}

/* resources/templates/list. */
void
resources_templates(struct job *job)
{
	cJSON	*result = must(cJSON_CreateObject()), *one;

	one = must(cJSON_CreateObject());
	cJSON_AddStringToObject(one, "uriTemplate", "file:///{+path}");
	cJSON_AddStringToObject(one, "name", "file");
	if (job->jo_version >= VERSION_2025_06_18)
		cJSON_AddStringToObject(one, "title", "A file in the sandbox");
	cJSON_AddStringToObject(one, "description", "A file in the sandbox, "
	    "by its absolute path there; at most 1 MiB.");
	cJSON_AddItemToArray(must(cJSON_AddArrayToObject(result,
	    "resourceTemplates")), one);
	methods_ttl(job, result, 60000);
	job_result(job, result);
}
