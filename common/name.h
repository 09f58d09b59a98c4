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
 * Names, for whoever takes one from a person, a file or a socket.  Each
 * function returns NULL, or a constant text that completes "name: ".
 */

#ifndef NAME_H
#define NAME_H

/*
 * Names of objects and session ids.  They become parts of paths, arguments
 * and lines of logs, so none is a directory's own or an option.
 */
const char	*name_error(const char *);

/* The same for a variable of the environment. */
const char	*name_variable_error(const char *);

/* The same for several of them; '*' stands for any number of characters. */
const char	*name_pattern_error(const char *);

#endif /* NAME_H */
