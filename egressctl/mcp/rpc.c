/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: JSON-RPC 2.0.  A line is a message or, in the one version that
 * has them, a batch.  What is wrong with a line is answered, and the next one
 * taken.
 */

#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "show.h"
#include "utf8.h"

#define META_VERSION	"io.modelcontextprotocol/protocolVersion"
#define META_CLIENT	"io.modelcontextprotocol/clientCapabilities"

static int
is_utf8(const char *s, size_t len)
{
	uint32_t	code;
	size_t		n;

	for (; len > 0; s += n, len -= n)
		if ((n = utf8_decode(s, len, &code)) == 0)
			return 0;
	return 1;
}

/*
 * Refuses what cJSON is lax about: raw control characters, deep nesting, more
 * values than anybody needs.  It ends a string at an escaped NUL; U+2400 takes
 * that place, and 1 is returned.
 */
static int
guard(char *s, size_t len)
{
	size_t	i, commas = 0;
	int	depth = 0, quoted = 0, nul = 0;

	for (i = 0; i < len; i++) {
		if ((unsigned char)s[i] < ' ' && (quoted || s[i] != '\t'))
			return -1;
		if (quoted && s[i] == '\\') {
			if (strncmp(s + i, "\\u0000", 6) == 0)
				nul = 1, s[i + 2] = '2', s[i + 3] = '4';
			i++;
		} else if (s[i] == '"')
			quoted = !quoted;
		else if (!quoted && (s[i] == '{' || s[i] == '[')) {
			if (++depth > ANSWER_DEPTH_MAX)
				return -1;
		} else if (!quoted && (s[i] == '}' || s[i] == ']'))
			depth--;
		else if (!quoted && s[i] == ',' && ++commas > VALUES_MAX)
			return -1;
	}
	return nul;
}

/* An answer that is no result; a NULL id is null.  Takes the data. */
cJSON *
rpc_error(const cJSON *id, int code, const char *message, cJSON *data)
{
	cJSON	*answer = must(cJSON_CreateObject()), *error;

	cJSON_AddStringToObject(answer, "jsonrpc", "2.0");
	cJSON_AddItemToObject(answer, "id", id == NULL ?
	    must(cJSON_CreateNull()) : exact_copy(id));
	error = must(cJSON_AddObjectToObject(answer, "error"));
	cJSON_AddNumberToObject(error, "code", code);
	cJSON_AddStringToObject(error, "message", message);
	if (data != NULL)
		cJSON_AddItemToObject(error, "data", data);
	return answer;
}

static void
batch_free(struct batch *ba)
{
	cJSON_Delete(ba->ba_answers);
	free(ba);
}

/* Sends an answer, or NULL, which only counts; a batch is sent when whole. */
void
rpc_answer(struct server *sv, struct batch *ba, cJSON *answer)
{
	if (ba == NULL) {
		if (answer != NULL)
			stdio_line(sv, answer);
		cJSON_Delete(answer);
		return;
	}
	if (answer != NULL)
		cJSON_AddItemToArray(ba->ba_answers, answer);
	if (--ba->ba_open > 0)
		return;
	if (cJSON_GetArraySize(ba->ba_answers) > 0)
		stdio_line(sv, ba->ba_answers);
	batch_free(ba);
}

static int
is_id(const cJSON *id)
{
	if (cJSON_IsNumber(id))
		return id->valuedouble >= -INTEGER_MAX &&
		    id->valuedouble <= INTEGER_MAX &&
		    id->valuedouble == (double)(int64_t)id->valuedouble;
	return cJSON_IsString(id);
}

/*
 * The version that a request is of: its own word, else what "initialize" has
 * agreed on.  0, or -1 after an answer.
 */
static int
find_version(struct job *job, const cJSON *params, const char *method)
{
	const cJSON	*meta = json_get(params, "_meta");
	const cJSON	*name = json_get(meta, META_VERSION);
	cJSON		*data;

	job->jo_version = job->jo_server->sv_version;
	if (name == NULL) {
		if (job->jo_version != VERSION_NONE ||
		    strcmp(method, "initialize") == 0 ||
		    strcmp(method, "ping") == 0)
			return 0;
		job_error(job, RPC_PARAMS, "no version: send initialize first, "
		    "or " META_VERSION " in _meta", NULL);
		return -1;
	}
	job->jo_version = version_find(cJSON_GetStringValue(name));
	if (job->jo_version == VERSION_NONE && cJSON_IsString(name)) {
		data = must(cJSON_CreateObject());
		cJSON_AddItemToObject(data, "supported", version_list());
		cJSON_AddStringToObject(data, "requested", name->valuestring);
		job_error(job, RPC_VERSION, "unsupported protocol version",
		    data);
	} else if (job->jo_version < VERSION_MODERN)
		job_error(job, RPC_PARAMS, META_VERSION ": not a string, or a "
		    "version that begins with initialize", NULL);
	else if (!cJSON_IsObject(json_get(meta, META_CLIENT)))
		job_error(job, RPC_PARAMS, "_meta lacks " META_CLIENT, NULL);
	else
		return 0;
	return -1;
}

static void
take_request(struct server *sv, const cJSON *message, struct batch *ba,
    int nul)
{
	const cJSON	*id = json_get(message, "id");
	const cJSON	*params = json_get(message, "params");
	const char	*method = json_string(message, "method");
	struct job	*job;

	if (job_find(sv, id) != NULL) {
		rpc_answer(sv, ba, rpc_error(id, RPC_REQUEST,
		    "a request with this id is under way", NULL));
		return;
	}
	if ((job = job_new(sv, id, ba)) == NULL)
		rpc_answer(sv, ba, rpc_error(id, RPC_INTERNAL,
		    "too many requests at once", NULL));
	else if (nul)
		job_error(job, RPC_PARAMS, "a string has a NUL (\\u0000) in it"
		    "; such content is written in base64", NULL);
	else if (params != NULL && !cJSON_IsObject(params))
		job_error(job, RPC_PARAMS, "params is not an object", NULL);
	else if (find_version(job, params, method) == 0)
		methods_call(job, method, params);
}

static int
has(const cJSON *message, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(message, name) != NULL;
}

/* What is wrong with the form of a message, or NULL. */
static const char *
wrong_form(const cJSON *message)
{
	const char	*version = json_string(message, "jsonrpc");

	if (!cJSON_IsObject(message))
		return "a message is a JSON object";
	if (version == NULL || strcmp(version, "2.0") != 0)
		return "jsonrpc is not \"2.0\"";
	if (json_string(message, "method") == NULL)
		return "method is not a string";
	if (has(message, "id") && !is_id(json_get(message, "id")))
		return "id is neither a string nor an integer";
	return NULL;
}

/* We ask the client nothing, so what looks like an answer is none. */
static int
is_answer(const cJSON *message)
{
	return cJSON_IsObject(message) &&
	    json_get(message, "method") == NULL &&
	    (has(message, "result") ||
	    has(message, "error"));
}

static void
take_message(struct server *sv, const cJSON *message, struct batch *ba,
    int nul)
{
	const cJSON	*id = json_get(message, "id");
	const char	*wrong;

	if (is_answer(message)) {
		rpc_answer(sv, ba, NULL);
	} else if ((wrong = wrong_form(message)) != NULL) {
		rpc_answer(sv, ba, rpc_error(is_id(id) ? id : NULL,
		    RPC_REQUEST, wrong, NULL));
	} else if (id == NULL) {
		methods_notice(sv, json_string(message, "method"),
		    json_get(message, "params"));
		rpc_answer(sv, ba, NULL);
	} else
		take_request(sv, message, ba, nul);
}

static void
take_batch(struct server *sv, const cJSON *list, int nul)
{
	const cJSON	*message;
	const char	*wrong = NULL;
	struct batch	*ba;
	int		 n = cJSON_GetArraySize(list);

	if (sv->sv_version != VERSION_2025_03_26)
		wrong = "batches are of version 2025-03-26 only";
	else if (n == 0 || n > BATCH_MAX)
		wrong = "a batch has 1 to 256 messages";
	if (wrong != NULL) {
		rpc_answer(sv, NULL, rpc_error(NULL, RPC_REQUEST, wrong,
		    NULL));
		return;
	}
	ba = must(calloc(1, sizeof(*ba)));
	ba->ba_answers = must(cJSON_CreateArray());
	ba->ba_open = 1 + (unsigned int)n;
	cJSON_ArrayForEach(message, list) {
		take_message(sv, message, ba, nul);
	}
	rpc_answer(sv, ba, NULL);
}

/* Takes a line, which ends in a NUL, without its newline. */
void
rpc_line(struct server *sv, char *line, size_t len)
{
	cJSON	*json = NULL;
	int	 nul = -1;

	if (len > 0 && line[len - 1] == '\r')
		line[--len] = '\0';
	if (strspn(line, " \t") == len)
		return;
	if (is_utf8(line, len) && (nul = guard(line, len)) != -1)
		json = cJSON_ParseWithLengthOpts(line, len + 1, NULL, 1);
	if (json == NULL)
		rpc_answer(sv, NULL, rpc_error(NULL, RPC_PARSE,
		    "not JSON in UTF-8, or nested too deep", NULL));
	else if (cJSON_IsArray(json))
		take_batch(sv, json, nul);
	else
		take_message(sv, json, NULL, nul);
	cJSON_Delete(json);
}
