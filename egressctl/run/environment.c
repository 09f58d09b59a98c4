/* SPDX-License-Identifier: ISC */

/*
 * egressctl: which variables of its caller the command in a sandbox has.  The
 * first word on a variable counts, of the caller's (-e), of the policy's, and
 * of the list below, which has what a shell or an editor cannot do without.
 * All else stays out of the sandbox, and out of box: credentials, and what has
 * programs load or run more than they are asked to.
 */

#include <err.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "name.h"
#include "run.h"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))
#define HINTS_MAX	6	/* names in one line */

static const char *const passed[] = {
	"CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS",
	"DEBIAN_FRONTEND", "EDITOR", "FORCE_COLOR", "GIT_AUTHOR_*",
	"GIT_COMMITTER_*", "HOME", "LANG", "LANGUAGE", "LC_*", "LESS", "LINES",
	"LOGNAME", "LS_COLORS", "NO_COLOR", "PAGER", "PATH", "SHELL", "SHLVL",
	"SOURCE_DATE_EPOCH", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION",
	"TZ", "USER", "VISUAL",
};

/*
 * Names what the sandbox does not have: sockets and directories of the host,
 * or a proxy, which the gate makes useless.  No pattern passes it.
 */
static const char *const of_host[] = {
	"*_[Pp][Rr][Oo][Xx][Yy]", "CONTAINER_HOST", "CREDENTIALS_DIRECTORY",
	"DBUS_*", "DISPLAY", "DOCKER_*", "EGRESSD_*", "GPG_AGENT_INFO",
	"JOURNAL_STREAM", "KUBECONFIG", "LISTEN_FDNAMES", "LISTEN_FDS",
	"LISTEN_PID", "NOTIFY_SOCKET", "SESSION_MANAGER", "SSH_AGENT_PID",
	"SSH_AUTH_SOCK", "TMPDIR", "WAYLAND_*", "XAUTHORITY",
	"XDG_RUNTIME_DIR",
};

/* Names of credentials: the caller is told that they stay out. */
static const char *const credentials[] = {
	"*CREDENTIAL*", "*PASSWORD*", "*SECRET*", "*TOKEN", "*_ACCESS_KEY*",
	"*_KEY", "*_PAT",
};

enum choice { CHOICE_NONE, CHOICE_PASS, CHOICE_DROP };

static struct {
	int		  clean;	/* -E */
	const char	**options;	/* of -e, then of a profile */
	size_t		  noptions;
	size_t		  nasked;	/* how many of options are of -e */
	char		**kept;		/* "name=value", up to a NULL */
	size_t		  nkept;
	const char	 *missed[HINTS_MAX];	/* credentials that stay out */
	size_t		  nmissed;
} env;

static void *
grow(void *list, size_t n, size_t size)
{
	if ((list = reallocarray(list, n + 1, size)) == NULL)
		err(EXIT_NO_RUN, NULL);
	return list;
}

/* The part before the '=', if it is a name; valid until called again. */
static const char *
name_of(const char *entry)
{
	static char	 name[NAME_LEN + 1];
	size_t		 len = strcspn(entry, "=");

	if (len >= sizeof(name))
		return NULL;
	memcpy(name, entry, len);
	name[len] = '\0';
	return name_variable_error(name) == NULL ? name : NULL;
}

void
environment_clean(void)
{
	env.clean = 1;
}

/* A name or pattern of a profile: unlike -e, no warning if it is not set. */
void
environment_pass(const char *pattern)
{
	env.options = grow(env.options, env.noptions, sizeof(*env.options));
	env.options[env.noptions++] = pattern;
}

/* NAME, NAME=value or a pattern.  The value may be a secret: never shown. */
void
environment_option(const char *arg)
{
	const char	*name = name_of(arg), *why = NULL;

	if (strchr(arg, '=') == NULL)
		why = name_pattern_error(arg);
	else if (name == NULL)
		why = "not a name: letters, digits and _";
	if (name != NULL && strcmp(name, "HOME") == 0)
		why = "the sandbox has a home of its own";
	if (why != NULL)
		errx(EXIT_NO_RUN, "-e %.*s: %s", (int)strcspn(arg, "="), arg,
		    why);
	environment_pass(arg);
	env.nasked = env.noptions;
}

static int
listed(const char *const *list, size_t n, const char *name, int flags)
{
	while (n > 0)
		if (fnmatch(list[--n], name, flags) == 0)
			return 1;
	return 0;
}

/* Applies a pattern of an option or of the policy to a name. */
static enum choice
by_pattern(const char *pattern, const char *name, enum choice choice)
{
	if (fnmatch(pattern, name, 0) != 0)
		return CHOICE_NONE;
	if (choice == CHOICE_PASS && strchr(pattern, '*') != NULL &&
	    listed(of_host, NITEMS(of_host), name, 0))
		return CHOICE_DROP;
	return choice;
}

static enum choice
by_option(const char *name)
{
	enum choice	choice = CHOICE_NONE;
	size_t		i;

	for (i = 0; i < env.noptions && choice != CHOICE_PASS; i++)
		choice = by_pattern(env.options[i], name, CHOICE_PASS);
	return choice == CHOICE_PASS ? CHOICE_PASS : CHOICE_NONE;
}

static enum choice
by_policy(const cJSON *rules, const char *name)
{
	const cJSON	*rule;
	const char	*pass, *drop;
	enum choice	 choice = CHOICE_NONE;

	cJSON_ArrayForEach(rule, rules) {
		if ((pass = json_string(rule, "pass")) != NULL)
			choice = by_pattern(pass, name, CHOICE_PASS);
		else if ((drop = json_string(rule, "drop")) != NULL)
			choice = by_pattern(drop, name, CHOICE_DROP);
		if (choice != CHOICE_NONE)
			break;
	}
	return choice;
}

static int
is_kept(const char *name)
{
	size_t	i, len = strlen(name);

	for (i = 0; i < env.nkept; i++)
		if (strncmp(env.kept[i], name, len) == 0 &&
		    env.kept[i][len] == '=')
			return 1;
	return 0;
}

static void
keep(const char *entry)
{
	env.kept = grow(env.kept, env.nkept + 1, sizeof(*env.kept));
	/* execve(2) does not change them. */
	env.kept[env.nkept++] = (char *)(uintptr_t)entry;
	env.kept[env.nkept] = NULL;
}

static void
miss(const char *entry, const char *name)
{
	if (env.clean || listed(of_host, NITEMS(of_host), name, 0) ||
	    !listed(credentials, NITEMS(credentials), name, FNM_CASEFOLD))
		return;
	if (env.nmissed < HINTS_MAX)
		env.missed[env.nmissed] = entry;
	env.nmissed++;
}

/* Keeps or drops one variable.  HOME is kept: box reads it. */
static void
weigh(const char *entry, const cJSON *rules)
{
	const char	*name = name_of(entry);
	enum choice	 choice;

	if (name == NULL || is_kept(name))
		return;
	if ((choice = by_option(name)) == CHOICE_NONE && !env.clean)
		choice = by_policy(rules, name);
	if (choice == CHOICE_PASS || strcmp(name, "HOME") == 0 ||
	    (choice == CHOICE_NONE && !env.clean &&
	    listed(passed, NITEMS(passed), name, 0)))
		keep(entry);
	else if (choice == CHOICE_NONE)
		miss(entry, name);
}

/* The rules are the policy's; the first that matches counts. */
void
environment_choose(const cJSON *rules)
{
	char	**entry;
	size_t	  i;

	for (i = env.noptions; i-- > 0;)
		if (strchr(env.options[i], '=') != NULL &&
		    !is_kept(name_of(env.options[i])))
			keep(env.options[i]);
	for (entry = environ; *entry != NULL; entry++)
		weigh(*entry, rules);
}

/* Names for the daemon to record; -1 if there are more than it takes. */
int
environment_names(cJSON *list)
{
	const char	*name;
	size_t		 i, len = 0;

	for (i = 0; i < env.nkept; i++) {
		name = name_of(env.kept[i]);
		len += strlen(name) + 1;
		cJSON_AddItemToArray(list, cJSON_CreateString(name));
	}
	if (len <= ENVIRONMENT_LEN + 1)
		return 0;
	warnx("the names of the variables to be passed have more than %d "
	    "bytes in all; pass fewer with -e", ENVIRONMENT_LEN);
	return -1;
}

/* Tells the caller which variables were missing or stay out. */
void
environment_explain(void)
{
	size_t	i;

	for (i = 0; i < env.nasked; i++)
		if (strpbrk(env.options[i], "*=") == NULL &&
		    !is_kept(env.options[i]))
			warnx("-e %s: not set in your environment",
			    env.options[i]);
	if (env.nmissed == 0)
		return;
	fputs("egressctl: not passed into the sandbox: ", stderr);
	for (i = 0; i < env.nmissed && i < HINTS_MAX; i++)
		fprintf(stderr, "%s%s", i > 0 ? ", " : "",
		    name_of(env.missed[i]));
	if (env.nmissed > HINTS_MAX)
		fprintf(stderr, " and %zu more", env.nmissed - HINTS_MAX);
	fputs(" (-e NAME passes one)\n", stderr);
}

char *const *
environment_kept(void)
{
	static char	*none[] = { NULL };

	return env.kept != NULL ? env.kept : none;
}
