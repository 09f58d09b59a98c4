/* SPDX-License-Identifier: ISC */

/*
 * egressctl: says what went wrong and what to do about it.
 */

#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "codes.h"
#include "egressctl.h"
#include "show.h"

static const struct {
	const char	*code;
	const char	*hint;
	const char	*said;		/* only if the message has this */
} hints[] = {
	{ CODE_BUSY, "a reload is under way; try again", "" },
	{ CODE_NO_SUCH_QUESTION, "it was answered already or has timed out; "
	    "\"egressctl pending\" lists what still waits", "" },
	{ CODE_SESSION_EXISTS, "give the session another name with -n",
	    "" },
	{ CODE_START_FAILED, "egressd's log may say more", "" },
	{ CODE_UNKNOWN_POLICY, "name one of these with -p", "" },
	{ CODE_NOT_PERMITTED, "a read-only socket serves status and events "
	    "only; use -s to name the other one", "read-only socket" },
	{ CODE_TOO_MANY_CLIENTS, "wait for another client to leave", "" },
	{ CODE_UNKNOWN_OP, "egressd is older than this egressctl", "" },
};

static void
explain_permission(const char *path)
{
	const struct group	*gr;
	const struct passwd	*pw;
	struct stat		 st;

	if (stat(path, &st) == -1) {
		warnx("%s: permission denied on the way to the socket", path);
		return;
	}
	pw = getpwuid(st.st_uid);
	gr = getgrgid(st.st_gid);
	warnx("%s: permission denied: the socket has mode %04o, owner %s (%u), "
	    "group %s (%u); become one of them", path,
	    (unsigned int)(st.st_mode & 07777),
	    pw != NULL ? pw->pw_name : "?", (unsigned int)st.st_uid,
	    gr != NULL ? gr->gr_name : "?", (unsigned int)st.st_gid);
}

static void
explain_refused(const char *path)
{
	struct stat	st;

	if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		warnx("%s: not a socket; name egressd's with -s", path);
	else
		warnx("%s: nobody listens on this socket: egressd is not "
		    "running (start it with \"systemctl start egressd\") or "
		    "uses another one (name it with -s)", path);
}

void
explain_connect(const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		warnx("%s: no such socket: egressd is not running (start it "
		    "with \"systemctl start egressd\") or uses another one "
		    "(name it with -s)", path);
		break;
	case ECONNREFUSED:
		explain_refused(path);
		break;
	case EACCES:
	case EPERM:
		explain_permission(path);
		break;
	case EAGAIN:
		warnx("%s: egressd does not accept connections; it seems "
		    "stuck", path);
		break;
	default:
		warnx("%s: %s", path, strerror(error));
		break;
	}
}

/* A daemon that stops takes its socket away before it hangs up. */
void
explain_hung_up(const struct client *cl)
{
	if (cl->cl_own) {
		warnx("the private egressd has ended");
		return;
	}
	if (access(cl->cl_path, F_OK) == -1 && errno == ENOENT) {
		warnx("egressd hung up without an answer: it is stopping");
		return;
	}
	if (cl->cl_answered) {
		explain_stopped();
		return;
	}
	warnx("egressd hung up without an answer: it does so to a client "
	    "whose user may not use this socket, and to one that lives in a "
	    "sandbox; egressd's log says which");
}

/* The daemon had answered before it hung up. */
void
explain_stopped(void)
{
	warnx("egressd hung up: it has stopped or restarted");
}

void
explain_refusal(const struct command *command, const cJSON *answer)
{
	const cJSON	*error = json_get(answer, "error"), *line;
	const char	*code = json_string(error, "code");
	const char	*message = json_string(error, "message");
	size_t		 i;

	/* Without a prefix, so that editors find file and line in front. */
	cJSON_ArrayForEach(line, json_get(error, "errors")) {
		json_put(stderr, line);
		fputc('\n', stderr);
	}
	fprintf(stderr, "egressctl: %s: ", command->co_op);
	if (cJSON_GetArraySize(json_get(error, "errors")) == 0) {
		json_put(stderr, json_get(error, "message"));
		fputs(" (", stderr);
		visible_put(stderr, code, VISIBLE_TEXT);
		fputs(")\n", stderr);
	} else {
		fputs("refused (", stderr);
		visible_put(stderr, code, VISIBLE_TEXT);
		fputs("), nothing was changed\n", stderr);
	}
	for (i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcmp(code, hints[i].code) == 0 && message != NULL &&
		    strstr(message, hints[i].said) != NULL)
			fprintf(stderr, "egressctl: %s\n", hints[i].hint);
}
