/* SPDX-License-Identifier: ISC */

/*
 * egressctl: profiles of `run`.  A program that lives in its user's home, as
 * coding agents and version managers do, is not seen in a sandbox whose home
 * is empty.  A profile is a small file that says what such a program needs:
 *
 *	include	node			read that profile, too
 *	command	claude			commands that choose it by their name
 *	read	~/.local/bin		shown read-only, if it is there
 *	write	~/.claude/ ~/.claude.json	writable; made if missing
 *	pass	ANTHROPIC_*		variables that the program reads
 *	host	api.anthropic.com	hosts that it cannot do without
 *
 * A path that ends in a slash is a directory.  The caller's own profiles come
 * before the installed ones of the same name.  They are the caller's word, as
 * options are: nothing that the sandbox can write to is searched for them.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "name.h"
#include "run.h"

#define PROFILE_DEPTH	4	/* of includes */
#define BLANKS		" \t\n"

/* A file that is being read, and for whom. */
struct reading {
	struct profile	*rd_profile;
	const char	*rd_path;
	unsigned int	 rd_line;
	int		 rd_depth;
};

static void	 profile_list(struct words *);
static int	 profile_read(struct profile *, const char *, int);

/* ---- statements ---------------------------------------------------------- */

static int
bad(const struct reading *rd, const char *what, const char *word)
{
	warnx("%s:%u: %s %s", rd->rd_path, rd->rd_line, what, word);
	return -1;
}

/* Replaces a tilde by the caller's home; NULL if there is no home. */
static char *
expand(const char *home, const char *word)
{
	char	*path;

	if (strncmp(word, "~/", 2) != 0)
		return strdup(word);
	if (home == NULL)
		return NULL;
	if (asprintf(&path, "%s%s", home, word + 1) == -1)
		err(EXIT_NO_RUN, NULL);
	return path;
}

static int
take_path(const struct reading *rd, struct words *ws, const char *word)
{
	char	*path;

	if (*word != '/' && strncmp(word, "~/", 2) != 0)
		return bad(rd, "neither ~/... nor an absolute path:", word);
	if ((path = expand(rd->rd_profile->pf_home, word)) != NULL)
		words_add(ws, path);
	return 0;
}

static int
take_include(const struct reading *rd, const char *word)
{
	if (strchr(word, '/') != NULL)
		return bad(rd, "not the name of a profile:", word);
	if (rd->rd_depth == PROFILE_DEPTH)
		return bad(rd, "nested too deep:", word);
	if (profile_read(rd->rd_profile, word, rd->rd_depth + 1) == -1)
		return bad(rd, "from here:", word);
	return 0;
}

static int
take_read(const struct reading *rd, const char *word)
{
	return take_path(rd, &rd->rd_profile->pf_read, word);
}

static int
take_write(const struct reading *rd, const char *word)
{
	return take_path(rd, &rd->rd_profile->pf_write, word);
}

static int
take_command(const struct reading *rd, const char *word)
{
	/* Commands of an included profile do not choose the outer one. */
	if (rd->rd_depth == 0)
		words_add(&rd->rd_profile->pf_commands, strdup(word));
	return 0;
}

static int
take_pass(const struct reading *rd, const char *word)
{
	if (name_pattern_error(word) != NULL)
		return bad(rd, "not the name of a variable:", word);
	words_add(&rd->rd_profile->pf_pass, strdup(word));
	return 0;
}

static int
take_host(const struct reading *rd, const char *word)
{
	words_add(&rd->rd_profile->pf_hosts, strdup(word));
	return 0;
}

static const struct {
	const char	 *word;
	int		(*take)(const struct reading *, const char *);
} statements[] = {
	{ "command",	take_command },
	{ "host",	take_host },
	{ "include",	take_include },
	{ "pass",	take_pass },
	{ "read",	take_read },
	{ "write",	take_write },
};

static int
take_line(const struct reading *rd, char *line)
{
	char	*keyword, *word;
	size_t	 i, n = sizeof(statements) / sizeof(statements[0]);

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, BLANKS);
	if (*line == '\0')
		return 0;
	keyword = strsep(&line, BLANKS);
	for (i = 0; i < n && strcmp(statements[i].word, keyword) != 0; i++)
		;
	if (i == n)
		return bad(rd, "unknown word", keyword);
	while ((word = strsep(&line, BLANKS)) != NULL)
		if (*word != '\0' && statements[i].take(rd, word) == -1)
			return -1;
	return 0;
}

/* ---- files --------------------------------------------------------------- */

static FILE *
open_in(const char *dir, const char *name, char *path, size_t size)
{
	errno = ENOENT;
	if (dir == NULL || (size_t)snprintf(path, size, "%s/%s", dir, name) >=
	    size)
		return NULL;
	return fopen(path, "re");
}

/* Where the caller keeps profiles; NULL: nowhere. */
static const char *
own_directory(void)
{
	static char	 dir[PATH_MAX];

	return conf_of_user("egressd/profiles", dir, sizeof(dir)) == -1 ?
	    NULL : dir;
}

static FILE *
profile_open(const char *name, char *path, size_t size)
{
	FILE	*fp;

	if (strchr(name, '/') != NULL) {
		strlcpy(path, name, size);
		return fopen(path, "re");
	}
	if ((fp = open_in(own_directory(), name, path, size)) == NULL &&
	    errno == ENOENT)
		fp = open_in(path_profiles, name, path, size);
	return fp;
}

static void
explain_missing(const char *name, const char *path)
{
	struct words	 names = { NULL, 0 };
	size_t		 i;

	if (errno != ENOENT || strchr(name, '/') != NULL) {
		warn("profile %s: %s", name, path);
		return;
	}
	profile_list(&names);
	fprintf(stderr, "egressctl: there is no profile %s, known are: none",
	    name);
	for (i = 0; i < names.ws_count; i++)
		fprintf(stderr, ", %s", names.ws_words[i]);
	fputc('\n', stderr);
	words_free(&names);
}

static int
profile_read(struct profile *pf, const char *name, int depth)
{
	char		 path[PATH_MAX] = "", *line = NULL;
	struct reading	 rd = {
		.rd_profile = pf, .rd_path = path, .rd_depth = depth
	};
	size_t		 size = 0;
	FILE		*fp;
	int		 rv = 0;

	if ((fp = profile_open(name, path, sizeof(path))) == NULL) {
		explain_missing(name, path);
		return -1;
	}
	while (rv == 0 && getline(&line, &size, fp) != -1) {
		rd.rd_line++;
		rv = take_line(&rd, line);
	}
	if (rv == 0 && ferror(fp)) {
		warn("%s", path);
		rv = -1;
	}
	free(line);
	fclose(fp);
	return rv;
}

int
profile_load(struct profile *pf, const char *name, const char *home)
{
	memset(pf, 0, sizeof(*pf));
	pf->pf_home = home;
	if ((pf->pf_name = strdup(name)) == NULL)
		err(EXIT_NO_RUN, NULL);
	return profile_read(pf, name, 0);
}

static void
profile_free(struct profile *pf)
{
	free(pf->pf_name);
	words_free(&pf->pf_commands);
	words_free(&pf->pf_read);
	words_free(&pf->pf_write);
	words_free(&pf->pf_pass);
	words_free(&pf->pf_hosts);
	memset(pf, 0, sizeof(*pf));
}

/* ---- choice -------------------------------------------------------------- */

/* Letters, digits, _ and -: editors leave other files beside theirs. */
static int
is_profile(const struct dirent *de)
{
	return de->d_name[strspn(de->d_name, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

static void
profile_list(struct words *names)
{
	const char	 *dirs[] = { own_directory(), path_profiles };
	struct dirent	**list;
	size_t		  i;
	int		  k, n;

	for (i = 0; i < 2; i++) {
		if (dirs[i] == NULL ||
		    (n = scandir(dirs[i], &list, is_profile, alphasort)) == -1)
			continue;
		for (k = 0; k < n; k++) {
			if (!words_have(names, list[k]->d_name))
				words_add(names, strdup(list[k]->d_name));
			free(list[k]);
		}
		free(list);
	}
}

/* 1 if a profile names this command; a broken profile is passed over. */
int
profile_choose(struct profile *pf, const char *command, const char *home)
{
	struct words	 names = { NULL, 0 };
	size_t		 i;
	int		 rv = 0;

	/* A path may lead to a project's file, which may have any name. */
	if (strchr(command, '/') != NULL)
		return 0;
	profile_list(&names);
	for (i = 0; rv == 0 && i < names.ws_count; i++) {
		rv = profile_load(pf, names.ws_words[i], home) == 0 &&
		    words_have(&pf->pf_commands, command);
		if (!rv)
			profile_free(pf);
	}
	words_free(&names);
	return rv;
}

/* ---- what it says -------------------------------------------------------- */

/*
 * What an agent may write to, it may put links into; those of a profile lead
 * nowhere, so that no directory of its own becomes one of its user's.
 */
static int
is_link(const char *home, const char *path)
{
	char	 real[PATH_MAX], base[PATH_MAX];
	size_t	 len;

	if (realpath(path, real) == NULL)
		return 0;
	strlcpy(base, path, sizeof(base));
	if (home != NULL && strncmp(path, home, strlen(home)) == 0 &&
	    realpath(home, base) != NULL)
		strlcat(base, path + strlen(home), sizeof(base));
	len = strlen(base);
	while (len > 1 && base[len - 1] == '/')
		base[--len] = '\0';
	return strcmp(base, real) != 0;
}

static void
drop_links(const struct profile *pf, struct words *ws)
{
	size_t	 i, n = 0;

	for (i = 0; i < ws->ws_count; i++) {
		if (!is_link(pf->pf_home, ws->ws_words[i])) {
			ws->ws_words[n++] = ws->ws_words[i];
			continue;
		}
		warnx("profile %s: %s is a link, or behind one: not shown "
		    "(-x or -X does)", pf->pf_name, ws->ws_words[i]);
		free(ws->ws_words[i]);
	}
	ws->ws_count = n;
}

void
profile_drop_links(struct profile *pf)
{
	drop_links(pf, &pf->pf_read);
	drop_links(pf, &pf->pf_write);
}

/* An empty file; JSON gets {}, as programs take an empty one for broken. */
static int
make_file(const char *path)
{
	static const char	 empty[] = "{}\n";
	size_t			 len = strlen(path);
	int			 fd, rv = 0;

	if ((fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0600)) == -1)
		return -1;
	if (len > 5 && strcmp(path + len - 5, ".json") == 0 &&
	    write(fd, empty, sizeof(empty) - 1) != sizeof(empty) - 1)
		rv = -1;
	close(fd);
	return rv;
}

/* Makes the path and its parents, for the user only. */
static int
make_path(const char *path)
{
	char	*copy, *p;
	size_t	 len = strlen(path);
	int	 rv = 0;

	if ((copy = strdup(path)) == NULL)
		err(EXIT_NO_RUN, NULL);
	for (p = copy + 1; rv == 0 && (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		if (mkdir(copy, 0700) == -1 && errno != EEXIST)
			rv = -1;
		*p = '/';
	}
	if (rv == 0 && path[len - 1] != '/')
		rv = make_file(path);
	free(copy);
	return rv;
}

/* Makes missing paths of `write', or what is written there would be lost. */
int
profile_make(const struct profile *pf)
{
	size_t	 i;

	for (i = 0; i < pf->pf_write.ws_count; i++)
		if (access(pf->pf_write.ws_words[i], F_OK) == -1 &&
		    (errno != ENOENT ||
		    make_path(pf->pf_write.ws_words[i]) == -1)) {
			warn("profile %s: %s", pf->pf_name,
			    pf->pf_write.ws_words[i]);
			return -1;
		}
	return 0;
}

/* Prints a policy for egressd.conf that lets the program do its work. */
void
profile_policy(const struct profile *pf, FILE *fp)
{
	size_t	 i;

	fprintf(fp, "policy \"%s\" {\n", pf->pf_name);
	for (i = 0; i < pf->pf_hosts.ws_count; i++)
		fprintf(fp, "\tallow host \"%s\"\n", pf->pf_hosts.ws_words[i]);
	fputs("}\n", fp);
}

static void
put_paths(const struct profile *pf, const struct words *ws, const char *what,
    int *first)
{
	const char	*path;
	size_t		 i, len = pf->pf_home == NULL ? 0 : strlen(pf->pf_home);
	int		 any = 0;

	for (i = 0; i < ws->ws_count; i++) {
		path = ws->ws_words[i];
		if (access(path, F_OK) == -1)
			continue;
		if (!any)
			fprintf(stderr, "%s%s", *first ? ": " : "; ", what);
		fputc(' ', stderr);
		any = 1;
		*first = 0;
		if (len > 0 && strncmp(path, pf->pf_home, len) == 0 &&
		    path[len] == '/') {
			fputc('~', stderr);
			path += len;
		}
		visible_put(stderr, path, VISIBLE_WORD);
	}
}

/* Says what the profile shows, if it shows anything. */
void
profile_say(const struct profile *pf)
{
	size_t	 i;
	int	 first = 1, shows = 0;

	for (i = 0; i < pf->pf_read.ws_count; i++)
		shows |= access(pf->pf_read.ws_words[i], F_OK) == 0;
	if (!shows && pf->pf_write.ws_count == 0)
		return;
	fprintf(stderr, "egressctl: profile %s", pf->pf_name);
	put_paths(pf, &pf->pf_read, "reads", &first);
	put_paths(pf, &pf->pf_write, "writes", &first);
	fputc('\n', stderr);
}

/* ---- the command of that name -------------------------------------------- */

static struct {
	const char	*profile;	/* NULL: list what there is */
} options;

static const struct token t_profile[] = {
	{ .tk_type = END },
	{ WORD,	   "profile",	NULL,	  NULL, &options.profile, NULL },
	{ 0 }
};

static int
profile_run(const struct invocation *in)
{
	struct profile	 pf;
	struct words	 names = { NULL, 0 };
	size_t		 i;

	(void)in;
	if (options.profile != NULL) {
		if (profile_load(&pf, options.profile, getenv("HOME")) == -1)
			return EXIT_USAGE;
		profile_policy(&pf, stdout);
		profile_free(&pf);
		return 0;
	}
	profile_list(&names);
	for (i = 0; i < names.ws_count; i++)
		puts(names.ws_words[i]);
	words_free(&names);
	return 0;
}

const struct command command_profile = {
	.co_name = "profile",
	.co_synopsis = "profile [NAME]",
	.co_help = "list the profiles of run, or print the policy of one",
	.co_tokens = t_profile,
	.co_run = profile_run,
};
