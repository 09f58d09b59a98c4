/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * egressctl: the commands.  Each says what it is called in the help, how
 * it runs, which fields its request carries and how its answer is shown.
 */

#include <string.h>

#include "egressctl.h"

static void
log_level_ask(const struct invocation *in, cJSON *request)
{
	cJSON_AddStringToObject(request, "level", in->in_level);
}

static void
events_ask(const struct invocation *in, cJSON *request)
{
	cJSON	*kinds;
	size_t	 i;

	if (in->in_session != NULL)
		cJSON_AddStringToObject(request, "session_id", in->in_session);
	if (in->in_nkinds == 0)
		return;
	kinds = cJSON_AddArrayToObject(request, "kinds");
	for (i = 0; i < in->in_nkinds; i++)
		cJSON_AddItemToArray(kinds,
		    cJSON_CreateString(in->in_kinds[i]));
}

static void
reload_put(const cJSON *answer)
{
	fputs("configuration loaded, generation ", stdout);
	json_put(stdout, json_get(answer, "generation"));
	putchar('\n');
}

static void
log_level_put(const cJSON *answer)
{
	fputs("log level ", stdout);
	json_put(stdout, json_get(answer, "log_level"));
	putchar('\n');
}

/* Another than its own; the command may be NULL. */
int
command_has_name(const struct command *command, const char *name)
{
	return command != NULL && command->co_other_name != NULL &&
	    strcmp(command->co_other_name, name) == 0;
}

static int
help_run(const struct invocation *in)
{
	(void)in;
	parser_list_commands(stdout);
	return 0;
}

const struct command command_status = {
	.co_synopsis = "status",
	.co_help = "show the daemon, its processes and its sessions",
	.co_other_name = "sessions",
	.co_run = command_ask,
	.co_op = "status",
	.co_show = status_put,
};

const struct command command_reload = {
	.co_synopsis = "reload",
	.co_help = "load the configuration file again",
	.co_run = command_ask,
	.co_op = "reload",
	.co_show = reload_put,
};

const struct command command_log_level = {
	.co_synopsis = "log level error|warn|info|debug",
	.co_help = "set how much the daemon logs",
	.co_run = command_ask,
	.co_op = "log.level",
	.co_ask = log_level_ask,
	.co_show = log_level_put,
};

const struct command command_events = {
	.co_synopsis = "events [session ID] [kind KIND ...]",
	.co_help = "follow the records as they are made",
	.co_run = command_follow,
	.co_op = "events.follow",
	.co_ask = events_ask,
};

const struct command command_ask_decider = {
	.co_synopsis = "ask [-m TEXT] DECIDER METHOD URL",
	.co_help = "put a question to a decider, and see",
	.co_run = command_ask,
	.co_op = "decider.ask",
	.co_ask = decider_ask,
	.co_show = decider_put,
	.co_slow = 1,
	.co_options = "m:",
	.co_option = decider_option,
};

const struct command command_test = {
	.co_synopsis = "test POLICY METHOD URL",
	.co_help = "show what a policy makes of a request",
	.co_run = test_run,
	.co_show = test_put,
};

const struct command command_verify = {
	.co_synopsis = "verify FILE ...",
	.co_help = "check the chain of audit files",
	.co_run = verify_run,
	.co_show = verify_put,
};

const struct command command_replay = {
	.co_synopsis = "replay [-p POLICY] FILE [session ID]",
	.co_help = "show what another policy would change",
	.co_run = replay_run,
	.co_show = replay_put,
	.co_options = "p:v",
	.co_option = replay_option,
};

const struct command command_pending = {
	.co_synopsis = "pending",
	.co_help = "show the questions that wait for an answer",
	.co_run = command_ask,
	.co_op = "pending.list",
	.co_show = pending_put,
};

const struct command command_answer = {
	.co_synopsis = "answer [-c] ID allow|deny [REASON]",
	.co_help = "answer one of them",
	.co_run = command_ask,
	.co_op = "pending.answer",
	.co_ask = answer_ask,
	.co_show = answer_put,
	.co_options = "c",
	.co_option = answer_option,
};

const struct command command_watch = {
	.co_synopsis = "watch",
	.co_help = "answer questions as they come",
	.co_run = watch_run,
	.co_op = "pending.wait",
};

const struct command command_cache_show = {
	.co_synopsis = "cache show [SESSION]",
	.co_help = "show the answers that are remembered",
	.co_run = command_ask,
	.co_op = "cache.list",
	.co_ask = cache_show_ask,
	.co_show = cache_show_put,
};

const struct command command_cache_clear = {
	.co_synopsis = "cache clear [SESSION [HOST]]",
	.co_help = "forget them",
	.co_run = command_ask,
	.co_op = "cache.clear",
	.co_ask = cache_clear_ask,
	.co_show = cache_clear_put,
};

const struct command command_message = {
	.co_synopsis = "message SESSION ROLE TEXT",
	.co_help = "tell deciders what was said in a session",
	.co_run = command_ask,
	.co_op = "session.message",
	.co_ask = message_ask,
};

const struct command command_metadata = {
	.co_synopsis = "metadata SESSION KEY=VALUE ...",
	.co_help = "tell deciders about a session",
	.co_run = command_ask,
	.co_op = "session.metadata",
	.co_ask = metadata_ask,
};

const struct command command_attack = {
	.co_synopsis = "attack [-lo] [-e ADDRESS] [CASE ...]",
	.co_help = "try to get out of the sandbox we run in",
	.co_run = attack_run,
	.co_show = attack_put,
	.co_options = "a:e:lo",
	.co_option = attack_option,
};

const struct command command_profile = {
	.co_synopsis = "profile [NAME]",
	.co_help = "list the profiles of run, or print the policy of one",
	.co_run = profile_run,
};

const struct command command_run = {
	.co_synopsis = "run [options] -- COMMAND ...",
	.co_help = "run a command in a sandbox, behind the gate",
	.co_run = run_run,
	.co_op = "session.start",
	.co_take = run_take,
};

const struct command command_help = {
	.co_synopsis = "help",
	.co_help = "list the commands",
	.co_run = help_run,
};
