/* SPDX-License-Identifier: ISC */

/*
 * A harness for unit tests, included by one file per program:
 *
 *	TEST(empty) { CHECK_INT(foo_len(""), 0); }
 *	TEST_MAIN("foo")
 *
 * Each case prints `ok foo.empty', `not ok foo.empty: why' or `skip ...'.  The
 * first failed check ends its case; the others still run.
 */

#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_CASES_MAX	128

enum test_result { TEST_OK, TEST_FAILED, TEST_SKIPPED };

struct test_case {
	const char	 *tc_name;
	void		(*tc_run)(void);
};

static struct test_case	 test_cases[TEST_CASES_MAX];
static size_t		 test_ncases;
static jmp_buf		 test_exit;
static char		 test_why[1024];

static inline void
test_register(const char *name, void (*run)(void))
{
	if (test_ncases == TEST_CASES_MAX)
		abort();
	test_cases[test_ncases].tc_name = name;
	test_cases[test_ncases++].tc_run = run;
}

__attribute__((__noreturn__, __format__(__printf__, 2, 3)))
static inline void
test_end(enum test_result result, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(test_why, sizeof(test_why), fmt, ap);
	va_end(ap);
	longjmp(test_exit, result);
}

/* Printable, quoted and short; two results stay valid at a time. */
static inline const char *
test_show(const void *data, size_t len)
{
	static char		 texts[2][4 * 64 + sizeof("\"\"...")];
	static int		 turn;
	const unsigned char	*bytes = data;
	char			*text = texts[turn ^= 1];
	size_t			 i, n;

	if (data == NULL)
		return "NULL";
	n = (size_t)snprintf(text, sizeof(texts[0]), "\"");
	for (i = 0; i < len && i < 64; i++)
		n += (size_t)snprintf(text + n, sizeof(texts[0]) - n,
		    bytes[i] >= ' ' && bytes[i] < 0x7f ? "%c" : "\\x%02x",
		    bytes[i]);
	snprintf(text + n, sizeof(texts[0]) - n, i < len ? "\"..." : "\"");
	return text;
}

static inline void
test_int(const char *file, int line, const char *expr, intmax_t got,
    intmax_t want)
{
	if (got != want)
		test_end(TEST_FAILED, "%s:%d: %s is %jd, not %jd", file, line,
		    expr, got, want);
}

static inline void
test_mem(const char *file, int line, const char *expr, const void *got,
    size_t gotlen, const void *want, size_t wantlen)
{
	if (got == NULL || want == NULL) {
		if (got == want)
			return;
	} else if (gotlen == wantlen && memcmp(got, want, gotlen) == 0)
		return;
	test_end(TEST_FAILED, "%s:%d: %s is %s, not %s", file, line, expr,
	    test_show(got, gotlen), test_show(want, wantlen));
}

static inline void
test_str(const char *file, int line, const char *expr, const char *got,
    const char *want)
{
	test_mem(file, line, expr, got, got == NULL ? 0 : strlen(got), want,
	    want == NULL ? 0 : strlen(want));
}

#define TEST(name)							\
	static void test_##name(void);					\
	__attribute__((__constructor__)) static void			\
	test_register_##name(void)					\
	{								\
		test_register(#name, test_##name);			\
	}								\
	static void							\
	test_##name(void)

#define CHECK(cond) do {						\
	if (!(cond))							\
		test_end(TEST_FAILED, "%s:%d: %s", __FILE__, __LINE__,	\
		    "false: " #cond);					\
} while (0)
/* With the datum of a table-driven case, as the line alone does not tell. */
#define CHECK_FOR(what, cond) do {					\
	if (!(cond))							\
		test_end(TEST_FAILED, "%s:%d: %s for %s", __FILE__,	\
		    __LINE__, "false: " #cond,				\
		    test_show(what, strlen(what)));			\
} while (0)
#define CHECK_INT(got, want)						\
	test_int(__FILE__, __LINE__, #got, (intmax_t)(got), (intmax_t)(want))
#define CHECK_STR(got, want)						\
	test_str(__FILE__, __LINE__, #got, got, want)
#define CHECK_MEM(got, gotlen, want, wantlen)				\
	test_mem(__FILE__, __LINE__, #got, got, gotlen, want, wantlen)
#define SKIP(...)	test_end(TEST_SKIPPED, __VA_ARGS__)

static inline int
test_run(const char *suite, const struct test_case *tc)
{
	switch (setjmp(test_exit)) {
	case TEST_OK:
		tc->tc_run();
		printf("ok %s.%s\n", suite, tc->tc_name);
		return 0;
	case TEST_SKIPPED:
		printf("skip %s.%s: %s\n", suite, tc->tc_name, test_why);
		return 0;
	default:
		printf("not ok %s.%s: %s\n", suite, tc->tc_name, test_why);
		return 1;
	}
}

static inline int
test_main(const char *suite)
{
	size_t	 i;
	int	 failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < test_ncases; i++)
		failed |= test_run(suite, &test_cases[i]);
	return failed;
}

#define TEST_MAIN(suite)						\
	int								\
	main(void)							\
	{								\
		return test_main(suite);				\
	}

#endif /* TEST_H */
