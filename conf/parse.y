/* SPDX-License-Identifier: ISC */

%{
/*
 * The grammar of egressd.conf(5), read by the parent and by egressctl.  Actions
 * only name what was found; making and judging it is the business of conf*.c.
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

%token	INVALID MISPLACED
%token	OPEN CLOSE
%token	ADDRESS AFTER ALLOW BELOW CA CAPTURE CERTIFICATE CLUSTER COMMAND CONTROL
%token	CUSTOM DECIDE DECIDER DEFAULT DENIALS DENY DNS ENVIRONMENT EXEC EXPOSE
%token	FIELD FOR GROUP HASH HEADER HOSTS IN INCLUDE KEY KUBERNETES LIMIT LISTEN
%token	LOCAL MODE MOUNT NARROW NOCASE ON OPTIONAL OWNCONTAINER OWNER PASS PAUSE
%token	POLICY PORT QUERY READONLY READWRITE REDACT RESOLVER SANDBOX SESSION
%token	SHOW SOCKET STALE TCP TIMEOUT TRANSPARENT UIDS USER VIRTUAL
	/* words of tables, by what follows them: of rules, and of others */
%token	<text>	C_COUNT C_FLAG C_MS C_PAIRS C_PATHS C_RAW C_SIZE C_TEXT C_WORDS
%token	<text>	O_COUNT O_FLAG O_MS O_NAMES O_PAIRS O_PREFIX O_RAW O_SIZE
%token	<text>	O_TEXT
%token	<text>	KIND
%token	<text>		STRING MACRO
%token	<number>	NUMBER SIZE DURATION RANGE
	/* `for' takes the users and groups that follow in its line */
%nonassoc FOR
%nonassoc USER GROUP
%type	<text>		prefix text raw flag ms size_word count decider_kind
%type	<text>		c_ms
%type	<number>	duration size write port tcp nocase sandbox_kind
%type	<number>	transparent optional

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
port_item	: NUMBER	{ conf_port_add(ps, $<pos>1, $1, $1); }
		| RANGE		{ conf_port_add(ps, $<pos>1, $1, $<last>1); }
		| NUMBER '-' NUMBER {
			conf_port_add(ps, $<pos>1, $1, $3);
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

/*
 * Options of which the grammar knows only the form of the value; their rows
 * know the rest.  A word of a rule's option begins no other statement in a
 * policy, but may stand anywhere else, and after a prefix.
 */

prefix		: O_PREFIX
		| KEY			{ $$ = "key"; }
		| CA			{ $$ = "ca"; }
		| CERTIFICATE		{ $$ = "certificate"; }
		| prefix O_PREFIX	{ $$ = conf_noun(ps, $1, $2); }
		| prefix ON		{ $$ = conf_noun(ps, $1, "on"); }
		;
text		: O_TEXT
		| prefix O_TEXT		{ $$ = conf_noun(ps, $1, $2); }
		| prefix C_TEXT		{ $$ = conf_noun(ps, $1, $2); }
		| prefix HEADER		{ $$ = conf_noun(ps, $1, "header"); }
		;
raw		: O_RAW
		| prefix O_RAW		{ $$ = conf_noun(ps, $1, $2); }
		| prefix C_RAW		{ $$ = conf_noun(ps, $1, $2); }
		;
flag		: O_FLAG
		| prefix O_FLAG		{ $$ = conf_noun(ps, $1, $2); }
		| prefix C_FLAG		{ $$ = conf_noun(ps, $1, $2); }
		;
ms		: O_MS
		| prefix O_MS		{ $$ = conf_noun(ps, $1, $2); }
		| prefix c_ms		{ $$ = conf_noun(ps, $1, $2); }
		;
size_word	: O_SIZE
		| prefix O_SIZE		{ $$ = conf_noun(ps, $1, $2); }
		| prefix C_SIZE		{ $$ = conf_noun(ps, $1, $2); }
		;
count		: O_COUNT
		| prefix O_COUNT	{ $$ = conf_noun(ps, $1, $2); }
		| prefix C_COUNT	{ $$ = conf_noun(ps, $1, $2); }
		| prefix GROUP		{ $$ = conf_noun(ps, $1, "group"); }
		;
c_ms		: C_MS
		| TIMEOUT	{ $$ = "timeout"; }
		;

option		: text STRING	{ stmt_text(ps->ps_now, $<pos>1, $1, $2); }
		| raw STRING	{ stmt_text(ps->ps_now, $<pos>1, $1, $2); }
		| flag		{ stmt_flag(ps->ps_now, $<pos>1, $1); }
		| ms duration	{ stmt_number(ps->ps_now, $<pos>1, $1, $2); }
		| ms STRING	{ stmt_off(ps->ps_now, $<pos>1, $1, $2); }
		| size_word size {
			stmt_number(ps->ps_now, $<pos>1, $1, $2);
		}
		| O_PAIRS pairs	{ stmt_pairs(ps->ps_now, $<pos>1, $1); }
		| O_NAMES words	{ stmt_names(ps->ps_now, $<pos>1, $1); }
		| count NUMBER	{ stmt_number(ps->ps_now, $<pos>1, $1, $2); }
		;
shared		: C_TEXT STRING	{ stmt_text(&ps->ps_block, $<pos>1, $1, $2); }
		| C_PATHS STRING {
			stmt_text(&ps->ps_block, $<pos>1, $1, $2);
		}
		| C_RAW STRING	{ stmt_text(&ps->ps_block, $<pos>1, $1, $2); }
		| C_FLAG	{ stmt_flag(&ps->ps_block, $<pos>1, $1); }
		| c_ms duration	{
			stmt_number(&ps->ps_block, $<pos>1, $1, $2);
		}
		| C_SIZE size	{
			stmt_number(&ps->ps_block, $<pos>1, $1, $2);
		}
		| C_COUNT NUMBER {
			stmt_number(&ps->ps_block, $<pos>1, $1, $2);
		}
		;

/* Statements outside of any block. */

global		: option
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
		| HOSTS pairs		{ conf_global_hosts(ps); }
		| RESOLVER {
			stmt_once(&ps->ps_global, $<pos>1, "resolver");
		} resolvers
		| ADDRESS DENY words	{ conf_global_address_deny(ps); }
		| ENVIRONMENT STRING words {
			conf_environment(ps, &ps->ps_conf->cf_environment,
			    $<pos>2, $2);
		}
		| LIMIT STRING NUMBER {
			conf_global_limit(ps, $<pos>1, $2, $3);
		}
		| DEFAULT SANDBOX STRING {
			stmt_text(&ps->ps_global, $<pos>1, "default sandbox",
			    $3);
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
		| OWNCONTAINER {
			stmt_flag(&ps->ps_option, $<pos>1, "own-container");
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

/* The end of a block, also after a mistake in its last line. */

end		: CLOSE
		| error CLOSE		{ yyerrok; lex_resync(ps); }
		;

decider		: DECIDER STRING decider_kind {
			conf_decider_begin(ps, $<pos>1, $2, $3);
		} decider_block {
			conf_decider_end(ps);
		}
		;
decider_kind	: KIND
		| EXEC		{ $$ = "exec"; }
		| SOCKET	{ $$ = "socket"; }
		| CONTROL	{ $$ = "control"; }
		;
decider_block	: /* empty */
		| OPEN decider_l end
		;
decider_l	: /* empty */
		| decider_l '\n'
		| decider_l decider_stmt
		| decider_l error '\n'		{ yyerrok; lex_resync(ps); }
		;
decider_stmt	: option
		| shared
		| HEADER STRING STRING {
			conf_decider_header(ps, $<pos>1, $2, $3);
		}
		| COMMAND words {
			stmt_words(&ps->ps_block, $<pos>1, "command",
			    &ps->ps_decider->dc_command);
		}
		| USER STRING {
			stmt_text(&ps->ps_block, $<pos>1, "user", $2);
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
		| option
		| CAPTURE capture_l
		| PAUSE AFTER NUMBER DENIALS IN duration {
			conf_policy_pause(ps, $<pos>1, $3, $6);
		}
		| ENVIRONMENT STRING words {
			conf_environment(ps, &ps->ps_policy->cp_environment,
			    $<pos>2, $2);
		}
		;

capture_l	: capture
		| capture_l capture
		;
capture		: C_SIZE size {
			stmt_number(&ps->ps_block, $<pos>1,
			    conf_noun(ps, "capture", $1), $2);
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
condition	: C_WORDS words		{ conf_cond(ps, $<pos>1, $1); }
		| C_PAIRS pairs		{ conf_cond(ps, $<pos>1, $1); }
		| PORT ports		{ conf_cond(ps, $<pos>1, "port"); }
		| C_PATHS nocase {
			ps->ps_nocase = $2;
		} words			{ conf_cond(ps, $<pos>1, $1); }
		| C_TEXT STRING {
			stmt_text(&ps->ps_option, $<pos>1, $1, $2);
		}
		| C_RAW STRING {
			stmt_text(&ps->ps_option, $<pos>1, $1, $2);
		}
		| C_FLAG {
			stmt_flag(&ps->ps_option, $<pos>1, $1);
		}
		| c_ms duration {
			stmt_number(&ps->ps_option, $<pos>1, $1, $2);
		}
		| C_SIZE size {
			stmt_number(&ps->ps_option, $<pos>1, $1, $2);
		}
		| C_COUNT NUMBER {
			stmt_number(&ps->ps_option, $<pos>1, $1, $2);
		}
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
cluster_stmt	: option
		| shared
		| EXEC words {
			stmt_words(&ps->ps_block, $<pos>1, "exec",
			    &ps->ps_cluster->cl_exec);
		}
		| USER STRING {
			stmt_text(&ps->ps_block, $<pos>1, "user", $2);
		}
		;

sandbox		: SANDBOX STRING sandbox_kind OPEN {
			conf_sandbox_begin(ps, $<pos>1, $2, (unsigned int)$3,
			    $<text>3);
		} sandbox_l end {
			conf_sandbox_end(ps);
		}
		;
sandbox_kind	: LOCAL		{ $$ = SANDBOX_LOCAL; }
		| VIRTUAL	{ $$ = SANDBOX_VIRTUAL; }
		| KUBERNETES	{ $$ = SANDBOX_KUBERNETES; }
		| CUSTOM STRING {
			$$ = SANDBOX_CUSTOM;
			$<text>$ = $2;
		}
		;
sandbox_l	: /* empty */
		| sandbox_l '\n'
		| sandbox_l sandbox_stmt
		| sandbox_l error '\n'		{ yyerrok; lex_resync(ps); }
		;
sandbox_stmt	: option
		| shared
		| POLICY STRING {
			conf_sandbox_policy(ps, $<pos>1, $2);
		}
		| EXPOSE STRING write {
			conf_sandbox_expose(ps, $<pos>1, $2, $3);
		}
		| MOUNT STRING ON STRING write {
			conf_sandbox_mount(ps, $<pos>1, $2, $4, $5);
		}
		| MOUNT BELOW STRING write {
			conf_sandbox_below(ps, $<pos>1, $3, $4);
		}
		| ENVIRONMENT pairs {
			stmt_variables(&ps->ps_block, $<pos>1, "environment",
			    &ps->ps_sandbox->sb_environment);
		}
		| CLUSTER STRING {
			conf_sandbox_cluster(ps, $<pos>1, $2);
		}
		| USER STRING {
			conf_sandbox_user(ps, $<pos>1, $2, $<quoted>2);
		}
		| ON STALE STRING {
			stmt_text(&ps->ps_block, $<pos>1, "on stale", $3);
		}
		| FOR starters %prec FOR
		| LIMIT limits
		;
starters	: starter
		| starters starter
		;
starter		: USER words	{ conf_sandbox_for(ps, $<pos>1, false); }
		| GROUP words	{ conf_sandbox_for(ps, $<pos>1, true); }
		;
limits		: limit
		| limits limit
		;
limit		: STRING NUMBER {
			conf_sandbox_limit(ps, $<pos>1, $1, $<text>2, $2,
			    false);
		}
		| STRING SIZE {
			conf_sandbox_limit(ps, $<pos>1, $1, $<text>2, $2,
			    false);
		}
		| STRING DURATION {
			conf_sandbox_limit(ps, $<pos>1, $1, $<text>2, $2,
			    true);
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
transparent	: /* empty */	{ $$ = 0; }
		| TRANSPARENT	{ $$ = 1; }
		;
optional	: /* empty */	{ $$ = 0; }
		| OPTIONAL	{ $$ = 1; }
		;
session_stmt	: LISTEN ON STRING port transparent optional {
			conf_session_listen(ps, $<pos>1, $3, $4, $5, $6);
		}
		| DNS ON STRING port optional {
			conf_session_dns(ps, $<pos>1, $3, $4, $5);
		}
		| POLICY STRING {
			conf_session_policy(ps, $<pos>1, $2);
		}
		| option
		| shared
		| CA CERTIFICATE STRING KEY STRING {
			conf_session_ca(ps, $<pos>1, $3, $5);
		}
		;
