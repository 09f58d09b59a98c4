/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: what each tool's result looks like.
 */

#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "show.h"

static const char *
path_of(const struct job *job, const char *preset)
{
	const char	*path = json_string(job->jo_args, "path");

	return path == NULL ? preset : path;
}

static void
add_count(cJSON *values, const char *name, uint64_t n)
{
	cJSON_AddItemToObject(values, name, exact((double)n));
}

/* ---- read ---------------------------------------------------------------- */

/* A piece of a file: where it begins, how long it is, whether more follows. */
struct piece {
	char		*pi_data;
	size_t		 pi_len;
	uint64_t	 pi_offset;
	int		 pi_more;
	int		 pi_text;
};

/*
 * Characters that the piece's ends cut in two are left to its neighbours, if
 * it is text then.
 */
static void
piece_trim(struct piece *pi, char **from)
{
	size_t	skip = 0, whole = 0;

	while (pi->pi_offset > 0 && skip < 3 && skip < pi->pi_len &&
	    ((*from)[skip] & 0xc0) == 0x80)
		skip++;
	pi->pi_text = text_is(*from + skip, pi->pi_len - skip, &whole) &&
	    (whole > 0 || pi->pi_len == 0) &&
	    (pi->pi_more || skip + whole == pi->pi_len);
	if (!pi->pi_text)
		return;
	*from += skip;
	pi->pi_offset += skip;
	pi->pi_len = whole;
}

static void
read_text(struct result *rs, struct piece *pi, char *data)
{
	data[pi->pi_len] = '\0';
	result_mark(rs, "untrusted data begins, file ");
	text_put(rs->rs_text, path_of(rs->rs_job, "-"));
	fprintf(rs->rs_text, ", %zu bytes from offset %llu", pi->pi_len,
	    (unsigned long long)pi->pi_offset);
	result_mark_end(rs);
	fputs(data, rs->rs_text);
	result_mark(rs, "untrusted data ends");
	cJSON_AddStringToObject(rs->rs_values, "encoding", "utf-8");
	cJSON_AddStringToObject(rs->rs_values, "content", data);
}

static void
read_bytes(struct result *rs, struct piece *pi, const char *data)
{
	char	*blob = text_base64(data, pi->pi_len);

	result_mark(rs, "untrusted data in base64 follows, file ");
	text_put(rs->rs_text, path_of(rs->rs_job, "-"));
	fprintf(rs->rs_text, ", %zu bytes from offset %llu", pi->pi_len,
	    (unsigned long long)pi->pi_offset);
	cJSON_AddStringToObject(rs->rs_values, "encoding", "base64");
	cJSON_AddStringToObject(rs->rs_values, "content", blob);
	result_blob(rs, resources_uri(rs->rs_job->jo_server,
	    path_of(rs->rs_job, "-")), text_type(data, pi->pi_len), blob);
}

/* One byte more was asked for than is wanted, to see whether there is one. */
static void
read_piece(struct result *rs)
{
	struct job	*job = rs->rs_job;
	struct piece	 pi = { 0 };
	char		*data;
	uint64_t	 most;

	most = args_number(job->jo_args, "length", READ_DEFAULT);
	pi.pi_offset = args_number(job->jo_args, "offset", 0);
	data = pi.pi_data = collect_all(&job->jo_out, &pi.pi_len);
	if ((pi.pi_more = pi.pi_len > most))
		pi.pi_len = (size_t)most;
	piece_trim(&pi, &data);
	if (pi.pi_text)
		read_text(rs, &pi, data);
	else
		read_bytes(rs, &pi, data);
	if (pi.pi_more)
		fprintf(rs->rs_text, "; the file goes on: read again with "
		    "offset %llu", (unsigned long long)(pi.pi_offset +
		    pi.pi_len));
	result_mark_end(rs);
	add_count(rs->rs_values, "offset", pi.pi_offset);
	add_count(rs->rs_values, "bytes", pi.pi_len);
	cJSON_AddBoolToObject(rs->rs_values, "truncated", pi.pi_more);
	if (pi.pi_more)
		add_count(rs->rs_values, "next_offset",
		    pi.pi_offset + pi.pi_len);
	free(pi.pi_data);
}

void
show_read(struct job *job)
{
	struct result	rs;

	result_begin(&rs, job);
	if (job->jo_ending.en_code == NULL)
		read_piece(&rs);
	result_end(&rs);
}

/* ---- exec ---------------------------------------------------------------- */

static int
exec_stream(struct result *rs, const struct collect *co, const char *words,
    const char *name)
{
	uint64_t	 missing;
	char		*text = collect_text(co, &missing), *member;

	if (co->co_total > 0) {
		result_mark(rs, "untrusted data, ");
		fprintf(rs->rs_text, "%s, %llu bytes", words,
		    (unsigned long long)co->co_total);
		if (missing > 0)
			fprintf(rs->rs_text, ", of which the middle (%llu) is "
			    "left out", (unsigned long long)missing);
		result_mark_end(rs);
		fputs(text, rs->rs_text);
	}
	cJSON_AddStringToObject(rs->rs_values, name, text);
	if (asprintf(&member, "%s_bytes", name) == -1)
		must(NULL);
	add_count(rs->rs_values, member, co->co_total);
	free(member);
	free(text);
	return missing > 0;
}

/* How the command ended; a name of a signal is box's word. */
static void
exec_status(struct result *rs)
{
	const cJSON	*body = rs->rs_job->jo_ending.en_body;
	const char	*name = json_string(body, "signal");
	uint64_t	 code;
	char		*word;

	if (body_number(body, "exit_code", &code) == 0) {
		fprintf(rs->rs_text, "exit code %llu",
		    (unsigned long long)code);
		add_count(rs->rs_values, "exit_code", code);
	} else if (name != NULL) {
		word = text_of(name, strlen(name));
		fputs("ended by signal ", rs->rs_text);
		text_put(rs->rs_text, word);
		cJSON_AddStringToObject(rs->rs_values, "signal", word);
		free(word);
	} else
		fputs("no exit code", rs->rs_text);
}

void
show_exec(struct job *job)
{
	struct result	rs;
	int		cut;

	result_begin(&rs, job);
	cut = exec_stream(&rs, &job->jo_out, "standard output", "stdout");
	cut |= exec_stream(&rs, &job->jo_err, "standard error", "stderr");
	result_mark(&rs, "untrusted data ends; ");
	exec_status(&rs);
	result_mark_end(&rs);
	cJSON_AddBoolToObject(rs.rs_values, "truncated", cut);
	result_end(&rs);
}

/* ---- lists --------------------------------------------------------------- */

static const char *
word_of(const cJSON *item, const char *name)
{
	const char	*word = json_string(item, name);

	return word == NULL ? "" : word;
}

static void
line_path(FILE *fp, const cJSON *item)
{
	text_put(fp, word_of(item, "path"));
}

static void
line_match(FILE *fp, const cJSON *item)
{
	uint64_t	n = 0;

	(void)body_number(item, "line_number", &n);
	text_put(fp, word_of(item, "path"));
	fprintf(fp, ":%llu:", (unsigned long long)n);
	fputs(word_of(item, "line"), fp);
}

static void
line_entry(FILE *fp, const cJSON *item)
{
	uint64_t	size = 0;

	(void)body_number(item, "size", &size);
	text_put(fp, word_of(item, "type"));
	fprintf(fp, " %llu ", (unsigned long long)size);
	text_put(fp, word_of(item, "name"));
}

/* Members of an item that our schema has, of the right type. */
static cJSON *
clean_item(const cJSON *item, const struct value *table)
{
	cJSON		*clean = must(cJSON_CreateObject());
	const cJSON	*member;

	for (; table->va_kind != VALUE_NONE; table++) {
		member = json_get(item, table->va_name);
		if (table->va_kind == VALUE_TEXT)
			cJSON_AddStringToObject(clean, table->va_name,
			    word_of(item, table->va_name));
		else if (table->va_kind == VALUE_BOOL)
			cJSON_AddBoolToObject(clean, table->va_name,
			    cJSON_IsTrue(member));
		else
			cJSON_AddItemToObject(clean, table->va_name,
			    exact(cJSON_IsNumber(member) ?
			    member->valuedouble : 0));
	}
	return clean;
}

static cJSON *
clean_path(const cJSON *item)
{
	return must(cJSON_CreateString(word_of(item, "path")));
}

static void
show_items(struct job *job, const char *name, const struct value *table,
    void (*put)(FILE *, const cJSON *))
{
	const cJSON	*body = job->jo_ending.en_body, *item;
	struct result	 rs;
	cJSON		*list;
	int		 more;

	result_begin(&rs, job);
	list = must(cJSON_AddArrayToObject(rs.rs_values, name));
	result_mark(&rs, "untrusted data begins");
	result_mark_end(&rs);
	cJSON_ArrayForEach(item, job->jo_items) {
		put(rs.rs_text, item);
		fputc('\n', rs.rs_text);
		cJSON_AddItemToArray(list, table == NULL ? clean_path(item) :
		    clean_item(item, table));
	}
	more = job->jo_full || cJSON_IsTrue(json_get(body, "truncated"));
	result_mark(&rs, "untrusted data ends; ");
	fprintf(rs.rs_text, "%d %s%s", cJSON_GetArraySize(list), name, more ?
	    ", and there are more: ask for fewer" : "");
	result_mark_end(&rs);
	add_count(rs.rs_values, "count", (uint64_t)cJSON_GetArraySize(list));
	cJSON_AddBoolToObject(rs.rs_values, "truncated", more);
	result_end(&rs);
}

void
show_glob(struct job *job)
{
	show_items(job, "paths", NULL, line_path);
}

void
show_grep(struct job *job)
{
	show_items(job, "matches", match_values, line_match);
}

void
show_list(struct job *job)
{
	show_items(job, "entries", entry_values, line_entry);
}

/* ---- the others ---------------------------------------------------------- */

static void
show_value(struct result *rs, const struct value *va)
{
	const cJSON	*item = json_get(rs->rs_job->jo_ending.en_body,
			    va->va_name);
	char		*text;

	if (va->va_kind == VALUE_TEXT && cJSON_IsString(item)) {
		text = text_of(item->valuestring, strlen(item->valuestring));
		cJSON_AddStringToObject(rs->rs_values, va->va_name, text);
		fprintf(rs->rs_text, " %s: ", va->va_name);
		text_put(rs->rs_text, text);
		free(text);
	} else if (va->va_kind == VALUE_BOOL) {
		cJSON_AddBoolToObject(rs->rs_values, va->va_name,
		    cJSON_IsTrue(item));
		fprintf(rs->rs_text, " %s: %s", va->va_name,
		    cJSON_IsTrue(item) ? "yes" : "no");
	} else if (va->va_kind != VALUE_TEXT && cJSON_IsNumber(item)) {
		cJSON_AddItemToObject(rs->rs_values, va->va_name,
		    exact(item->valuedouble));
		fprintf(rs->rs_text, " %s: %.17g", va->va_name,
		    item->valuedouble);
	}
}

/* Members of the sandbox's answer, by the table of what the tool gives. */
void
show_values(struct job *job)
{
	const struct value	*va;
	struct result		 rs;

	result_begin(&rs, job);
	if (job->jo_ending.en_code == NULL) {
		result_mark(&rs, job->jo_tool->to_name);
		fputc(' ', rs.rs_text);
		text_put(rs.rs_text, path_of(job, "-"));
		for (va = job->jo_tool->to_gives; va->va_kind != VALUE_NONE;
		    va++)
			show_value(&rs, va);
		result_mark_end(&rs);
	}
	result_end(&rs);
}
