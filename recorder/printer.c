/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: records on the daemon's standard output, for whoever
 * collects what a container says.  Who reads there is trusted with nothing: a
 * reader that is slow or stuck costs a queue of bounded size, and then lines
 * are left out, which the next one says.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event_struct.h>

#include "clock.h"
#include "log.h"
#include "recorder.h"

#define PRINTER_QUEUE_MAX	(256 * 1024)	/* bytes */

static struct {
	int		 pt_fd;		/* in force, or -1 */
	int		 pt_next;	/* of the generation to come */
	bool		 pt_plain;	/* it will be a file */
	bool		 pt_file;	/* never blocks, cannot be waited for */
	struct evbuffer	*pt_queue;
	struct event	 pt_ev;
	uint64_t	 pt_lost;	/* lines left out of late */
	uint64_t	 pt_first;	/* number of the first of these */
} printer = { .pt_fd = -1, .pt_next = -1 };

static struct event_base	*base;

void
printer_init(struct event_base *eb)
{
	base = eb;
	if ((printer.pt_queue = evbuffer_new()) == NULL)
		fatalx("%s", __func__);
}

bool
printer_listens(void)
{
	return printer.pt_fd != -1;
}

static void
printer_close(void)
{
	if (printer.pt_fd == -1)
		return;
	event_del(&printer.pt_ev);
	close(printer.pt_fd);
	printer.pt_fd = -1;
}

/* As much as is taken without waiting. */
static void
printer_write(void)
{
	if (evbuffer_get_length(printer.pt_queue) == 0 ||
	    evbuffer_write(printer.pt_queue, printer.pt_fd) != -1 ||
	    errno == EAGAIN || errno == EINTR)
		return;
	log_warn("standard output: no more records there");
	evbuffer_drain(printer.pt_queue,
	    evbuffer_get_length(printer.pt_queue));
	printer_close();
}

/* A line of its own, without number or hash: it is none of the chain. */
static void
printer_gap(void)
{
	if (printer.pt_lost == 0 ||
	    evbuffer_get_length(printer.pt_queue) > PRINTER_QUEUE_MAX / 2)
		return;
	log_info("standard output: %llu records from %llu on are left out",
	    (unsigned long long)printer.pt_lost,
	    (unsigned long long)printer.pt_first);
	evbuffer_add_printf(printer.pt_queue, "{\"kind\":\"gap\",\"at\":\"%s\","
	    "\"session_id\":null,\"reason\":\"" REASON_SLOW_FOLLOWER "\","
	    "\"first_seq\":%llu,\"lost\":%llu}\n", chain_time(clock_wall_ns()),
	    (unsigned long long)printer.pt_first,
	    (unsigned long long)printer.pt_lost);
	printer.pt_lost = 0;
}

static void
printer_on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	printer_write();
	printer_gap();
	if (printer.pt_fd != -1 && evbuffer_get_length(printer.pt_queue) > 0)
		event_add(&printer.pt_ev, NULL);
}

void
printer_send(const struct line *ln)
{
	size_t	 queued;

	if (printer.pt_fd == -1)
		return;
	queued = evbuffer_get_length(printer.pt_queue);
	if (printer.pt_lost > 0 || (queued > 0 &&
	    queued + ln->ln_len + 1 > PRINTER_QUEUE_MAX)) {
		if (printer.pt_lost++ == 0)
			printer.pt_first = ln->ln_link.li_seq;
	} else if (evbuffer_add(printer.pt_queue, ln->ln_text,
	    ln->ln_len + 1) == -1)
		fatal("%s", __func__);
	if (printer.pt_file)
		printer_write();
	else if (event_add(&printer.pt_ev, NULL) == -1)
		fatalx("%s: event_add", __func__);
}

/* ---- configuration ---- */

void
printer_begin(void)
{
	if (printer.pt_next != -1)
		close(printer.pt_next);
	printer.pt_next = -1;
}

int
printer_offer(int fd, bool plain)
{
	if (printer.pt_next != -1) {
		if (fd != -1)
			close(fd);
		return -1;
	}
	if (fd == -1)
		log_warnx("standard output: no free descriptor");
	printer.pt_next = fd;
	printer.pt_plain = plain;
	return 0;
}

/* Standard output is the same each time: lines that wait for it stay. */
void
printer_commit(void)
{
	printer_close();
	printer.pt_fd = printer.pt_next;
	printer.pt_next = -1;
	if (printer.pt_fd == -1) {
		evbuffer_drain(printer.pt_queue,
		    evbuffer_get_length(printer.pt_queue));
		return;
	}
	event_assign(&printer.pt_ev, base, printer.pt_fd, EV_WRITE,
	    printer_on_write, NULL);
	printer.pt_file = printer.pt_plain;
	if (!printer.pt_file && event_add(&printer.pt_ev, NULL) == -1)
		fatalx("%s: event_add", __func__);
}

/* The process ends: whoever reads gets what is taken at once. */
void
printer_flush(void)
{
	if (printer.pt_fd != -1)
		printer_write();
}
