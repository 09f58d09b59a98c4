%{
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
 * The grammar of egressd.conf(5), read by the parent alone.  Actions only
 * name what was found; making and judging it is the business of conf*.c.
 *
 * The lexer tells the braces of a block (OPEN, CLOSE) from those of a list,
 * inside which it leaves out newlines.  Each statement begins with a keyword,
 * so a newline between statements is optional, but it is where the parser
 * resumes after a mistake.
 */

#include "confparse.h"
%}

%pure-parser
%parse-param { struct parse *ps }
%lex-param { struct parse *ps }

%token	INVALID
%token	OPEN CLOSE
%token	ACCOUNTTOKEN ADDRESS AFTER AGENT ALLOW ANSWER API AUDIT BODY CA CACHE
%token	CAPTURE CERTIFICATE CLUSTER COMMAND CONCURRENCY CONTEXT CONTROL CUSTOM CWD
%token	DEADLINE DECIDE DECIDER DEFAULT DENIALS DENY DIRECTORY DNS EFFORT
%token	ENVIRONMENT EXEC EXPOSE FIELD FULL GIT GROUP HASH HEADER HOST HOSTS IMAGE IN INCLUDE
%token	INCLUSTER INSECURE KEY KUBECONFIG KUBERNETES LEVEL LIMIT LISTEN LOCAL LOG
%token	MAX MESSAGES METADATA METHOD MODE MODEL MOUNT NAMESPACE NARROW NOCASE ON
%token	OPERATOR OUT OWNER PASS PASSWORD PATH PAUSE PERSISTENT POLICY PORT
%token	PROMPT QUERY QUOTA READONLY READWRITE RECREATE REDACT REF REFUSE
%token	RESOLVER SANDBOX SCHEME SERVER SESSION SHOW SOCKET TCP TEMPERATURE TFILE
%token	TIMEOUT TO TOKEN TOKENS TRANSPARENT TRUST TTL UIDS UPSTREAM URL USER USES VIRTUAL WEBHOOK
%token	WITH WORKSPACE
%token	<text>		STRING MACRO
%token	<number>	NUMBER SIZE DURATION RANGE
%type	<text>		full cache
%type	<number>	duration size write port tcp nocase decider_kind sandbox_kind

%%

conf		: /* empty */
		| conf '\n'
		| conf macro
		| conf include
		| conf global
		| conf decider
		| conf policy
		| conf cluster
		| conf sandbox
		| conf session
		| conf error '\n'		{ yyerrok; lex_resync(ps); }
		;

include		: INCLUDE STRING	{ lex_include(ps, $<pos>1, $2); }
		;

macro		: MACRO '=' STRING {
			conf_word_add(ps, $<pos>3, $3, $<quoted>3);
			lex_macro_set(ps, $<pos>1, $1, false);
		}
		| MACRO '=' '{' word_l comma '}' {
			lex_macro_set(ps, $<pos>1, $1, true);
		}
		;

/* Lists. */

comma		: /* empty */
		| ','
		;

words		: word
		| '{' word_l comma '}'
		;
word_l		: words
		| word_l comma words
		;
word		: STRING	{ conf_word_add(ps, $<pos>1, $1, $<quoted>1); }
		;

pairs		: '{' pair_l comma '}'
		;
pair_l		: pair
		| pair_l comma pair
		;
pair		: STRING STRING	{ conf_pair_add(ps, $<pos>1, $1, $2); }
		;

ports		: port_item
		| '{' port_l comma '}'
		;
port_l		: ports
		| port_l comma ports
		;
port_item	: NUMBER	{ conf_rule_port(ps, $<pos>1, $1, $1); }
		| RANGE		{ conf_rule_port(ps, $<pos>1, $1, $<last>1); }
		| NUMBER '-' NUMBER {
			conf_rule_port(ps, $<pos>1, $1, $3);
		}
		;

/* Values. */

duration	: DURATION
		| NUMBER	{ $$ = value_unitless(ps, $<pos>1, $1); }
		;
size		: SIZE
		| NUMBER
		;
port		: PORT NUMBER	{ $$ = value_port(ps, $<pos>2, $2); }
		;
write		: /* empty */	{ $$ = 0; }
		| READONLY	{ $$ = 0; }
		| READWRITE	{ $$ = 1; }
		;
full		: DENY		{ $$ = "deny"; }
		| STRING
		;

/* Statements outside of any block. */

global		: LOG LEVEL STRING {
			stmt_word(&ps->ps_global, $<pos>1, "log level", $3);
		}
		| UIDS RANGE {
			conf_global_uids(ps, $<pos>1, $2, $<last>2);
		}
		| UIDS NUMBER '-' NUMBER {
			conf_global_uids(ps, $<pos>1, $2, $4);
		}
		| CONTROL SOCKET STRING {
			conf_control_begin(ps, $<pos>1, $3);
		} control_opts {
			conf_control_end(ps, $<pos>1);
		}
		| AUDIT TFILE STRING {
			stmt_text(&ps->ps_global, $<pos>1, "audit file", $3);
		}
		| AUDIT ON FULL full {
			stmt_word(&ps->ps_global, $<pos>1, "audit on full",
			    $4);
		}
		| HOSTS pairs		{ conf_global_hosts(ps); }
		| RESOLVER {
			stmt_once(&ps->ps_global, $<pos>1, "resolver");
		} resolvers
		| UPSTREAM TRUST TFILE STRING {
			stmt_text(&ps->ps_global, $<pos>1,
			    "upstream trust file", $4);
			ps->ps_conf->cf_upstream_trust_pos = $<pos>1;
		}
		| ADDRESS DENY words	{ conf_global_address_deny(ps); }
		| ENVIRONMENT STRING words {
			conf_environment(ps, &ps->ps_conf->cf_environment,
			    $<pos>2, $2);
		}
		| LIMIT STRING NUMBER {
			conf_global_limit(ps, $<pos>1, $2, $3);
		}
		| TIMEOUT STRING duration {
			conf_global_timeout(ps, $<pos>1, $2, $3);
		}
		;

control_opts	: /* empty */
		| control_opts control_opt
		;
control_opt	: READONLY {
			stmt_once(&ps->ps_option, $<pos>1, "read-only");
		}
		| MODE NUMBER		{ conf_control_mode(ps, $<pos>1, $2); }
		| OWNER STRING {
			stmt_text(&ps->ps_option, $<pos>1, "owner", $2);
		}
		| GROUP STRING {
			stmt_text(&ps->ps_option, $<pos>1, "group", $2);
		}
		;

resolvers	: resolver
		| '{' resolver_l comma '}'
		;
resolver_l	: resolvers
		| resolver_l comma resolvers
		;
resolver	: STRING	{ conf_global_resolver(ps, $<pos>1, $1, 53); }
		| STRING port	{ conf_global_resolver(ps, $<pos>1, $1, $2); }
		;

/* What ends a block, and where a mistake in its last line ends. */

end		: CLOSE
		| error CLOSE		{ yyerrok; lex_resync(ps); }
		;

decider		: DECIDER STRING decider_kind {
			conf_decider_begin(ps, $<pos>1, $2, (unsigned int)$3);
		} decider_block {
			conf_decider_end(ps);
		}
		;
decider_kind	: AGENT		{ $$ = DECIDER_AGENT; }
		| WEBHOOK	{ $$ = DECIDER_WEBHOOK; }
		| EXEC		{ $$ = DECIDER_EXEC; }
		| SOCKET	{ $$ = DECIDER_SOCKET; }
		| OPERATOR	{ $$ = DECIDER_OPERATOR; }
		;
decider_block	: /* empty */
		| OPEN decider_l end
		;
decider_l	: /* empty */
		| decider_l '\n'
		| decider_l decider_stmt
		| decider_l error '\n'		{ yyerrok; lex_resync(ps); }
		;
decider_stmt	: API STRING {
			stmt_word(&ps->ps_block, $<pos>1, "api", $2);
		}
		| URL STRING {
			stmt_text(&ps->ps_block, $<pos>1, "url", $2);
			ps->ps_decider->dc_url_pos = $<pos>1;
		}
		| INSECURE {
			stmt_flag(&ps->ps_block, $<pos>1, "insecure");
		}
		| HEADER STRING STRING {
			conf_decider_header(ps, $<pos>1, $2, $3);
		}
		| KEY HEADER STRING {
			conf_decider_key_header(ps, $<pos>1, $3);
		}
		| MODEL STRING {
			stmt_text(&ps->ps_block, $<pos>1, "model", $2);
		}
		| ANSWER STRING {
			stmt_word(&ps->ps_block, $<pos>1, "answer", $2);
		}
		| MAX TOKENS NUMBER {
			stmt_number(&ps->ps_block, $<pos>1, "max tokens", $3);
		}
		| TEMPERATURE STRING {
			conf_decider_temperature(ps, $<pos>1, $2);
		}
		| TEMPERATURE NUMBER {
			conf_decider_temperature(ps, $<pos>1, $<text>2);
		}
		| EFFORT STRING {
			conf_decider_effort(ps, $<pos>1, $2);
		}
		| EFFORT MAX {
			conf_decider_effort(ps, $<pos>1, $<text>2);
		}
		| KEY TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "key file", $3);
		}
		| PROMPT TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "prompt file", $3);
		}
		| TRUST TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "trust file", $3);
		}
		| COMMAND words {
			stmt_words(&ps->ps_block, $<pos>1, "command");
		}
		| PERSISTENT {
			stmt_flag(&ps->ps_block, $<pos>1, "persistent");
		}
		| USER STRING {
			stmt_text(&ps->ps_block, $<pos>1, "user", $2);
		}
		| PATH STRING {
			stmt_text(&ps->ps_block, $<pos>1, "path", $2);
		}
		| TIMEOUT duration {
			stmt_number(&ps->ps_block, $<pos>1, "timeout", $2);
		}
		| CONCURRENCY NUMBER {
			stmt_number(&ps->ps_block, $<pos>1, "concurrency",
			    $2);
		}
		;

policy		: POLICY STRING OPEN {
			conf_policy_begin(ps, $<pos>1, $2);
		} policy_l end {
			conf_policy_end(ps);
		}
		;
policy_l	: /* empty */
		| policy_l '\n'
		| policy_l policy_stmt
		| policy_l rule			{ conf_rule_end(ps); }
		| policy_l error '\n'		{ yyerrok; lex_resync(ps); }
		;
policy_stmt	: DEFAULT ALLOW	{ conf_policy_default(ps, $<pos>1, true); }
		| DEFAULT DENY	{ conf_policy_default(ps, $<pos>1, false); }
		| REFUSE WITH NUMBER {
			stmt_word(&ps->ps_block, $<pos>1, "refuse with",
			    $<text>3);
		}
		| REFUSE WITH STRING {
			stmt_word(&ps->ps_block, $<pos>1, "refuse with", $3);
		}
		| CAPTURE capture_l
		| QUOTA OUT size {
			stmt_number(&ps->ps_block, $<pos>1, "quota out", $3);
		}
		| PAUSE AFTER NUMBER DENIALS IN duration {
			conf_policy_pause(ps, $<pos>1, $3, $6);
		}
		| AUDIT ON FULL full {
			stmt_word(&ps->ps_block, $<pos>1, "audit on full",
			    $4);
		}
		| ENVIRONMENT STRING words {
			conf_environment(ps, &ps->ps_policy->pl_environment,
			    $<pos>2, $2);
		}
		;

capture_l	: capture
		| capture_l capture
		;
capture		: BODY size {
			stmt_number(&ps->ps_block, $<pos>1, "capture body",
			    $2);
		}
		| HASH {
			stmt_flag(&ps->ps_block, $<pos>1, "capture hash");
		}
		| REDACT {
			stmt_once(&ps->ps_block, $<pos>1, "capture redact");
			ps->ps_show = false;
		} redacts
		| SHOW {
			stmt_once(&ps->ps_block, $<pos>1, "capture show");
			ps->ps_show = true;
		} redacts
		;
redacts		: redact
		| '{' redact_l comma '}'
		;
redact_l	: redacts
		| redact_l comma redacts
		;
redact		: HEADER STRING {
			conf_policy_redact(ps, $<pos>1, REDACT_HEADER, $2);
		}
		| QUERY STRING {
			conf_policy_redact(ps, $<pos>1, REDACT_QUERY, $2);
		}
		| FIELD STRING {
			conf_policy_redact(ps, $<pos>1, REDACT_FIELD, $2);
		}
		;

rule		: ALLOW tcp {
			conf_rule_begin(ps, $<pos>1, RULE_ALLOW, $2);
		} conditions
		| DENY tcp {
			conf_rule_begin(ps, $<pos>1, RULE_DENY, $2);
		} conditions
		| PASS tcp {
			conf_rule_begin(ps, $<pos>1, RULE_PASS, $2);
		} conditions
		| DECIDE tcp words {
			conf_rule_begin(ps, $<pos>1, RULE_DECIDE, $2);
			conf_rule_deciders(ps);
		} conditions
		| NARROW tcp words {
			conf_rule_begin(ps, $<pos>1, RULE_NARROW, $2);
			conf_rule_deciders(ps);
		} conditions
		;
tcp		: /* empty */	{ $$ = 0; }
		| TCP		{ $$ = 1; }
		;
nocase		: /* empty */	{ $$ = 0; }
		| NOCASE	{ $$ = 1; }
		;
conditions	: /* empty */
		| conditions condition
		;
condition	: HOST words		{ conf_rule_hosts(ps, $<pos>1); }
		| PORT {
			stmt_once(&ps->ps_option, $<pos>1, "port");
		} ports
		| METHOD words		{ conf_rule_methods(ps, $<pos>1); }
		| PATH nocase words	{ conf_rule_paths(ps, $<pos>1, $2); }
		| SCHEME STRING {
			stmt_word(&ps->ps_option, $<pos>1, "scheme", $2);
		}
		| BODY size {
			stmt_number(&ps->ps_option, $<pos>1, "body", $2);
		}
		| TO words		{ conf_rule_to(ps, $<pos>1); }
		| TIMEOUT duration {
			stmt_number(&ps->ps_option, $<pos>1, "timeout", $2);
		}
		| CACHE cache {
			stmt_word(&ps->ps_option, $<pos>1, "cache", $2);
		}
		| TTL duration {
			stmt_number(&ps->ps_option, $<pos>1, "ttl", $2);
		}
		| USES NUMBER {
			stmt_number(&ps->ps_option, $<pos>1, "uses", $2);
		}
		| MESSAGES NUMBER {
			stmt_number(&ps->ps_option, $<pos>1, "messages", $2);
		}
		| METADATA pairs {
			stmt_pairs(&ps->ps_option, $<pos>1, "metadata");
		}
		;
cache		: HOST		{ $$ = "host"; }
		| STRING
		;

cluster		: CLUSTER STRING OPEN {
			conf_cluster_begin(ps, $<pos>1, $2);
		} cluster_l end {
			conf_cluster_end(ps);
		}
		;
cluster_l	: /* empty */
		| cluster_l '\n'
		| cluster_l cluster_stmt
		| cluster_l error '\n'		{ yyerrok; lex_resync(ps); }
		;
cluster_stmt	: INCLUSTER {
			stmt_flag(&ps->ps_block, $<pos>1, "in-cluster");
		}
		| KUBECONFIG STRING {
			stmt_text(&ps->ps_block, $<pos>1, "kubeconfig", $2);
		}
		| CONTEXT STRING {
			stmt_text(&ps->ps_block, $<pos>1, "context", $2);
		}
		| SERVER STRING {
			stmt_text(&ps->ps_block, $<pos>1, "server", $2);
		}
		| CA TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "ca file", $3);
		}
		| TOKEN TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "token file", $3);
		}
		| CERTIFICATE TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "certificate file",
			    $3);
		}
		| KEY TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "key file", $3);
		}
		| USER STRING {
			stmt_text(&ps->ps_block, $<pos>1, "user", $2);
		}
		| PASSWORD TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "password file",
			    $3);
		}
		| EXEC words {
			stmt_words(&ps->ps_block, $<pos>1, "exec");
		}
		;

sandbox		: SANDBOX STRING sandbox_kind OPEN {
			conf_sandbox_begin(ps, $<pos>1, $2, (unsigned int)$3,
			    $<text>3);
		} sandbox_l end {
			conf_sandbox_end(ps);
		}
		;
sandbox_kind	: LOCAL		{ $$ = CONF_SANDBOX_LOCAL; }
		| VIRTUAL	{ $$ = CONF_SANDBOX_VIRTUAL; }
		| KUBERNETES	{ $$ = CONF_SANDBOX_KUBERNETES; }
		| CUSTOM STRING {
			$$ = CONF_SANDBOX_CUSTOM;
			$<text>$ = $2;
		}
		;
sandbox_l	: /* empty */
		| sandbox_l '\n'
		| sandbox_l sandbox_stmt
		| sandbox_l error '\n'		{ yyerrok; lex_resync(ps); }
		;
sandbox_stmt	: POLICY STRING {
			conf_sandbox_policy(ps, $<pos>1, $2);
		}
		| CWD STRING {
			stmt_text(&ps->ps_block, $<pos>1, "cwd", $2);
		}
		| EXPOSE STRING write {
			conf_sandbox_expose(ps, $<pos>1, $2, $3);
		}
		| MOUNT STRING ON STRING write {
			conf_sandbox_mount(ps, $<pos>1, $2, $4, $5);
		}
		| ENVIRONMENT pairs {
			stmt_pairs(&ps->ps_block, $<pos>1, "environment");
		}
		| DEADLINE duration {
			stmt_number(&ps->ps_block, $<pos>1, "deadline", $2);
		}
		| CLUSTER STRING {
			conf_sandbox_cluster(ps, $<pos>1, $2);
		}
		| NAMESPACE STRING {
			conf_sandbox_namespace(ps, $<pos>1, $2);
		}
		| IMAGE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "image", $2);
		}
		| WORKSPACE GIT STRING {
			stmt_text(&ps->ps_block, $<pos>1, "workspace git",
			    $3);
		}
		| REF STRING {
			stmt_text(&ps->ps_block, $<pos>1, "ref", $2);
		}
		| ACCOUNTTOKEN STRING {
			stmt_word(&ps->ps_block, $<pos>1,
			    "service-account-token", $2);
		}
		| RECREATE STRING {
			stmt_word(&ps->ps_block, $<pos>1, "recreate", $2);
		}
		;

session		: SESSION STRING OPEN {
			conf_session_begin(ps, $<pos>1, $2);
		} session_l end {
			conf_session_end(ps);
		}
		;
session_l	: /* empty */
		| session_l '\n'
		| session_l session_stmt
		| session_l error '\n'		{ yyerrok; lex_resync(ps); }
		;
session_stmt	: LISTEN ON STRING port {
			conf_session_listen(ps, $<pos>1, $3, $4, false);
		}
		| LISTEN ON STRING port TRANSPARENT {
			conf_session_listen(ps, $<pos>1, $3, $4, true);
		}
		| DNS ON STRING port {
			conf_session_dns(ps, $<pos>1, $3, $4);
		}
		| POLICY STRING {
			conf_session_policy(ps, $<pos>1, $2);
		}
		| TRUST DIRECTORY STRING {
			stmt_text(&ps->ps_block, $<pos>1, "trust directory",
			    $3);
		}
		| CA CERTIFICATE STRING KEY STRING {
			conf_session_ca(ps, $<pos>1, $3, $5);
		}
		| UPSTREAM TRUST TFILE STRING {
			stmt_text(&ps->ps_block, $<pos>1,
			    "upstream trust file", $4);
		}
		;
