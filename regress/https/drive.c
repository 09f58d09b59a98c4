/* SPDX-License-Identifier: ISC */

/*
 * The HTTPS client of common/https at the command line, for servers that are
 * easier written in Python than in C.  It runs confined as k8sd is, so that
 * what the libraries ask of the kernel is seen here too; and it prints what it
 * is told, a line of JSON for each.
 *
 *	drive call URL [option ...]
 *	drive ws URL [option ...]	a line of standard input is a message
 *	drive exec URL [option ...]	drive_exec.c
 */

#include <sys/socket.h>

#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/https/https.h"
#include "common/https/ws.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "drive.h"

#define LINES_MAX	16
#define LINE_LEN	65536

extern const struct sandbox	 k8sd_sandbox;

const char			*argument[LINES_MAX + 1];
size_t				 arguments;
const char			*headers[LINES_MAX + 1];
static const char		*protocols[LINES_MAX + 1];
static size_t			 headers_count, protocols_count;
static struct https_server	*server;
static struct https_request	 request = {
	.hr_method = "GET",
	.hr_headers = headers,
	.hr_answer_max = 65536,
	.hr_timeout_ms = 20000
};
static unsigned int		 times = 1;
static size_t			 pieces, bytes, stop_at;
static struct https_ws		*ws;

/* ---- what is printed ---- */

static struct jsonw	 out;

void
say_begin(void)
{
	jsonw_init(&out, SIZE_MAX / 4);
	jsonw_object(&out);
}

void
say_int(const char *name, long long value)
{
	jsonw_key(&out, name);
	jsonw_int(&out, value);
}

void
say_text(const char *name, const char *text, size_t len)
{
	jsonw_key(&out, name);
	jsonw_string(&out, text != NULL ? text : "", len);
}

void
say_end(void)
{
	const char	*text;
	size_t		 len;

	jsonw_end(&out);
	if ((text = jsonw_finish(&out, &len)) == NULL)
		errx(1, "jsonw");
	printf("%.*s\n", (int)len, text);
	fflush(stdout);
	jsonw_free(&out);
}

static void
say_answer(const struct https_answer *ha)
{
	static const char *const	 results[] = {
		[HTTPS_ANSWERED] = "answered",
		[HTTPS_FAILED] = "failed",
		[HTTPS_HUGE] = "huge",
		[HTTPS_LATE] = "late"
	};
	const char	*result = results[ha->ha_result];
	const char	*why = ha->ha_why != NULL ? ha->ha_why : "";

	say_begin();
	say_text("result", result, strlen(result));
	say_int("status", ha->ha_status);
	say_int("close", ha->ha_close);
	say_int("pieces", (long long)pieces);
	say_int("bytes", (long long)bytes);
	say_text("why", why, strlen(why));
	say_text("body", ha->ha_body, ha->ha_body_len);
	say_end();
}

/* ---- calls ---- */

static void
on_end(void *arg, const struct https_answer *ha)
{
	(void)arg;
	say_answer(ha);
	if (--times == 0)
		event_base_loopbreak(child_base);
	else
		https_begin(server, &request, on_end, NULL);
}

static int
on_data(void *arg, const char *data, size_t len)
{
	(void)arg, (void)data;
	pieces++;
	bytes += len;
	return stop_at != 0 && bytes >= stop_at ? -1 : 0;
}

/* ---- WebSockets ---- */

static char	 line[LINE_LEN];
static size_t	 line_len;

static void
on_input(evutil_socket_t fd, short what, void *arg)
{
	ssize_t	 n;
	char	*end;

	(void)what;
	if (ws == NULL || https_ws_room(ws) < sizeof(line) / 2) {
		event_del(*(struct event **)arg);
		return;
	}
	n = read(fd, line + line_len, sizeof(line) / 2 - line_len);
	if (n <= 0) {
		event_del(*(struct event **)arg);
		https_ws_close(ws, 1000);
		return;
	}
	line_len += (size_t)n;
	while ((end = memchr(line, '\n', line_len)) != NULL) {
		https_ws_send(ws, line, (size_t)(end - line));
		line_len -= (size_t)(end + 1 - line);
		memmove(line, end + 1, line_len);
	}
}

static struct event	*input;

static void
on_open(void *arg, size_t which)
{
	(void)arg;
	say_begin();
	say_int("open", (long long)which);
	say_end();
	input = event_new(child_base, 0, EV_READ | EV_PERSIST, on_input,
	    &input);
	event_add(input, NULL);
}

static void
on_piece(void *arg, const struct https_ws_piece *wp)
{
	(void)arg;
	pieces++;
	bytes += wp->wp_len;
	if (stop_at != 0)
		return;
	say_begin();
	say_text("piece", wp->wp_data, wp->wp_len);
	say_int("first", wp->wp_first);
	say_int("last", wp->wp_last);
	say_end();
}

static void
on_room(void *arg)
{
	(void)arg;
	event_add(input, NULL);
}

static void
on_ws_end(void *arg, const struct https_answer *ha)
{
	(void)arg;
	ws = NULL;
	say_answer(ha);
	event_base_loopbreak(child_base);
}

static const struct https_ws_calls	 calls = {
	.wc_open = on_open,
	.wc_piece = on_piece,
	.wc_room = on_room,
	.wc_end = on_ws_end
};

/* ---- options ---- */

static char *
file(const char *path, size_t *len)
{
	char	*text;
	ssize_t	 n;
	int	 fd;

	if ((fd = open(path, O_RDONLY)) == -1 ||
	    (text = calloc(1, LINE_LEN)) == NULL ||
	    (n = read(fd, text, LINE_LEN - 1)) == -1)
		err(1, "%s", path);
	close(fd);
	*len = (size_t)n;
	return text;
}

static void
give_certificate(const char *path)
{
	char	*cert, *key, *name;
	size_t	 certlen, keylen;

	if (asprintf(&name, "%.*s.key", (int)strlen(path) - 4, path) == -1)
		err(1, NULL);
	cert = file(path, &certlen);
	key = file(name, &keylen);
	if (https_server_certificate(server, cert, certlen, key, keylen) == -1)
		errx(1, "%s: cannot be used", path);
	free(cert);
	free(key);
	free(name);
}

static void
give_trust(const char *path)
{
	struct https_trust	*tr;
	char			*text;
	size_t			 len;

	text = file(path, &len);
	if ((tr = https_trust_new(text, len)) == NULL)
		errx(1, "%s: cannot be used", path);
	https_server_trust(server, tr);
	free(text);
}

static void
add(const char **list, size_t *count, const char *text)
{
	if (*count == LINES_MAX)
		errx(1, "too many");
	list[(*count)++] = text;
}

static void
option(const char *name, const char *value)
{
	if (strcmp(name, "ca") == 0)
		give_trust(value);
	else if (strcmp(name, "cert") == 0)
		give_certificate(value);
	else if (strcmp(name, "name") == 0) {
		if (https_server_name(server, value) == -1)
			errx(1, "%s: cannot be used", value);
	} else if (strcmp(name, "proxy") == 0) {
		if (https_server_proxy(server, value) == -1)
			errx(1, "%s: cannot be used", value);
	} else if (strcmp(name, "insecure") == 0)
		https_server_insecure(server);
	else if (strcmp(name, "stream") == 0)
		request.hr_data = on_data;
	else if (strcmp(name, "stop") == 0)
		stop_at = strtoul(value, NULL, 10);
	else if (strcmp(name, "idle") == 0)
		request.hr_idle_ms = strtoul(value, NULL, 10);
	else if (strcmp(name, "timeout") == 0)
		request.hr_timeout_ms = strtoul(value, NULL, 10);
	else if (strcmp(name, "times") == 0)
		times = (unsigned int)strtoul(value, NULL, 10);
	else if (strcmp(name, "path") == 0)
		request.hr_path = value;
	else if (strcmp(name, "header") == 0)
		add(headers, &headers_count, value);
	else if (strcmp(name, "protocol") == 0)
		add(protocols, &protocols_count, value);
	else if (strcmp(name, "arg") == 0)
		add(argument, &arguments, value);
	else
		errx(1, "%s: no such option", name);
}

/* NAME=VALUE */
static void
options(char *argv[])
{
	char	*value;

	for (; *argv != NULL; argv++) {
		if ((value = strchr(*argv, '=')) != NULL)
			*value++ = '\0';
		option(*argv, value != NULL ? value : "");
	}
}

int
main(int argc, char *argv[])
{
	static const struct identity	 nobody;	/* who we are already */

	if (argc < 3)
		errx(1, "usage: drive call|ws|exec URL [name=value ...]");
	if ((child_base = event_base_new()) == NULL)
		errx(1, "event_base_new");
	https_warm();
	if ((server = https_server_new(argv[2])) == NULL)
		errx(1, "%s: cannot be used", argv[2]);
	request.hr_path = "/";
	options(argv + 3);
	signal(SIGPIPE, SIG_IGN);
	sandbox_drop(&nobody);
	sandbox_enter(&k8sd_sandbox);
	if (strcmp(argv[1], "call") == 0)
		https_begin(server, &request, on_end, NULL);
	else if (strcmp(argv[1], "ws") == 0)
		ws = https_upgrade(server, &request, protocols, &calls, NULL);
	else
		drive_exec(server);
	event_base_dispatch(child_base);
	https_server_unref(server);
	return 0;
}
