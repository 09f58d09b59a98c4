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
 * Builds with sanitizers only.  A confined process cannot be traced, which
 * the search for leaks needs, and its environment is empty, so the setting
 * stands here.
 */

#ifdef SANITIZE

const char	*__asan_default_options(void);

/* The linker is told to want this, and so takes the rest of the file. */
extern const int	 sanitize_here;
const int		 sanitize_here = 1;

const char *
__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1:handle_abort=0";
}

#else

/* ISO C wants something in a file. */
typedef int	 sanitize_unused;

#endif /* SANITIZE */
