/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for kubeconfig/: whatever a file says, there is an answer of
 * known words, or an error of bounded length.  The program ends after one
 * answer and frees nothing, so all that it took is given back here.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kubeconfig/kubeconfig.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);
int	 __sanitizer_install_malloc_and_free_hooks(
	    void (*)(const volatile void *, size_t),
	    void (*)(const volatile void *));

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)
#define TAKEN		(1 << 20)

static const volatile void	*taken[TAKEN];
static size_t			 ntaken;
static int			 running;
static jmp_buf			 out;

/* ---- what was taken ---- */

static void
on_malloc(const volatile void *p, size_t size)
{
	(void)size;
	if (running && p != NULL) {
		REQUIRE(ntaken < TAKEN);
		taken[ntaken++] = p;
	}
}

static void
on_free(const volatile void *p)
{
	size_t	 i;

	/* Blocks that are freed were mostly taken a moment ago. */
	for (i = running ? ntaken : 0; i > 0; i--)
		if (taken[i - 1] == p) {
			taken[i - 1] = taken[--ntaken];
			return;
		}
}

static void
give_back(void)
{
	running = 0;
	while (ntaken > 0)
		free((void *)(uintptr_t)taken[--ntaken]);
}

/* ---- kubeconfig.c's part ---- */

void *
must(void *p)
{
	REQUIRE(p != NULL);
	return p;
}

void
say(const char *word, unsigned int file, const void *data, size_t len)
{
	REQUIRE(word[0] >= 'a' && word[0] <= 'z' && strlen(word) < 32);
	REQUIRE(file < FILES_MAX && (data != NULL || len == 0));
	REQUIRE(len <= FILE_LEN_MAX);
}

void
say_text(const char *word, unsigned int file, const char *text)
{
	say(word, file, text, strlen(text));
}

void
fail(unsigned int file, unsigned int line, const char *fmt, ...)
{
	char	 text[512];
	va_list	 ap;

	(void)line;
	REQUIRE(file < FILES_MAX);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	longjmp(out, 1);
}

/* A byte says of how many files, and whether a context is asked for. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int	 hooked;
	struct node	*roots[2] = { NULL, NULL };
	size_t		 half;

	if (!hooked)
		hooked = __sanitizer_install_malloc_and_free_hooks(on_malloc,
		    on_free);
	REQUIRE(hooked);
	if (size == 0)
		return 0;
	running = 1;
	if (setjmp(out) == 0) {
		half = data[0] & 1 ? (size - 1) / 2 : size - 1;
		roots[0] = tree_read(0, data + 1, half);
		roots[1] = tree_read(1, data + 1 + half, size - 1 - half);
		answer(roots, 2, data[0] & 2 ? "dev" : "");
	}
	give_back();
	return 0;
}
