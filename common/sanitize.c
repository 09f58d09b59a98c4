/* SPDX-License-Identifier: ISC */

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
