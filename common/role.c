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
 * Every process runs this.
 */

#include <stddef.h>

#include "msgtab.h"
#include "role.h"

static const char *const role_names[ROLE_MAX] = {
	[ROLE_PARENT] = "parent",
	[ROLE_POLICYD] = "policyd",
	[ROLE_RECORDER] = "recorder",
	[ROLE_DIALER] = "dialer",
	[ROLE_DECIDERD] = "deciderd",
	[ROLE_K8SD] = "k8sd",
	[ROLE_ENGINE] = "tlsengine",
	[ROLE_BOX] = "box",
};

const char *
role_name(uint32_t role)
{
	return role < ROLE_MAX ? role_names[role] : NULL;
}

static const char *const record_names[RECORD_KIND_MAX] = {
	[RECORD_REQUEST_OPENED] = "request_opened",
	[RECORD_REQUEST_ALLOWED] = "request_allowed",
	[RECORD_REQUEST_DENIED] = "request_denied",
	[RECORD_REQUEST_CLOSED] = "request_closed",
	[RECORD_REQUEST_FAILED] = "request_failed",
	[RECORD_DECIDER_FAILURE] = "decider_failure",
	[RECORD_SESSION_STARTED] = "session_started",
	[RECORD_SESSION_ENDED] = "session_ended",
	[RECORD_CONNECTION_REFUSED] = "connection_refused",
	[RECORD_NAME_ASKED] = "name_asked",
	[RECORD_GAP] = "gap",
	[RECORD_FILE_OPENED] = "file_opened",
};

const char *
record_kind_name(uint32_t kind)
{
	return kind < RECORD_KIND_MAX ? record_names[kind] : NULL;
}
