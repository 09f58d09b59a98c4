/* SPDX-License-Identifier: ISC */

/*
 * The command's process runs this just before it becomes the command: what it
 * has besides the environment that box was given.  Our own words win: where
 * each kind of program looks for trust, and where the command is at home.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "exposure.h"
#include "boxenv.h"
#include "trustenv.h"

#define CA		BOX_TRUST_DIR "/ca.pem"
#define BUNDLE		BOX_TRUST_DIR "/bundle.pem"
#define JAVA_OPTIONS	TRUST_JAVA(BOX_TRUST_DIR "/ca.jks")

#define TRUST_ROW(name, value)	{ name, value },

static const struct {
	const char	*name;
	const char	*value;
} trust[] = {
	TRUST_VARIABLES(TRUST_ROW, BUNDLE, CA)
};

static void
env_put(const char *name, const char *value)
{
	if (setenv(name, value, 1) == -1)
		err(BOX_FAILED, "environment: %s", name);
}

/* The caller's options for Java stay, ours come last and so count. */
static void
env_java(void)
{
	const char	*old = getenv(TRUST_JAVA_VARIABLE);
	char		*both;

	if (asprintf(&both, "%s%s" JAVA_OPTIONS, old == NULL ? "" : old,
	    old == NULL || *old == '\0' ? "" : " ") == -1)
		err(BOX_FAILED, NULL);
	env_put(TRUST_JAVA_VARIABLE, both);
	free(both);
}

/* With hands, commands have what box was given for them, and only that. */
static void
env_given(void)
{
	char	**from, **to;
	size_t	 len = strlen(BOX_GIVEN);

	for (from = to = environ; *from != NULL; from++)
		if (strncmp(*from, BOX_GIVEN, len) == 0)
			*to++ = *from + len;
	*to = NULL;
}

void
env_set(const struct box *bx)
{
	char	*cwd;
	size_t	 i;

	if (bx->bx_hands != -1)
		env_given();
	for (i = 0; i < NITEMS(trust); i++)
		env_put(trust[i].name, trust[i].value);
	env_java();
	env_put("EGRESSD_SESSION", bx->bx_session);
	if (getenv("PATH") == NULL)
		env_put("PATH", "/usr/local/bin:/usr/bin:/bin");
	if ((cwd = getcwd(NULL, 0)) != NULL)
		env_put("PWD", cwd);
	free(cwd);
	if (bx->bx_home != NULL)
		env_put("HOME", bx->bx_home);
	if (bx->bx_root) {
		env_put("USER", "root");
		env_put("LOGNAME", "root");
	}
}
