/* SPDX-License-Identifier: ISC */

/*
 * egressd-kubeconfig: reads kubeconfig files and tells the parent what they
 * say of one context.  It lives for one answer and trusts nobody: a file may
 * be any user's.  What it takes from memory it gives back by ending.
 *
 * An answer is records: a word, the number of the file that it is from, a
 * length, a newline, so many bytes, a newline.  The last is "end", or "error"
 * with what is wrong; without either the parent takes nothing of it.
 */

#ifndef KUBECONFIG_H
#define KUBECONFIG_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>

#define FILES_MAX	16
#define FILE_LEN_MAX	(1024 * 1024)
#define FIRST_FD	3	/* the first file; the others follow */

enum node_kind {
	NODE_TEXT,
	NODE_LIST,
	NODE_MAP
};

TAILQ_HEAD(nodes, node);
struct node {
	TAILQ_ENTRY(node)	 nd_entry;
	enum node_kind		 nd_kind;
	unsigned int		 nd_file;
	unsigned int		 nd_line;
	const char		*nd_key;	/* in a map */
	const char		*nd_text;
	size_t			 nd_len;
	bool			 nd_quoted;
	struct nodes		 nd_children;
};

/* kubeconfig.c */
void	*must(void *);
void	 say(const char *, unsigned int, const void *, size_t);
void	 say_text(const char *, unsigned int, const char *);
/* Line 0: of the whole file. */
void	 fail(unsigned int, unsigned int, const char *, ...)
	    __attribute__((__noreturn__, __format__(printf, 3, 4)));

/* tree.c: NULL if the file has nothing in it. */
struct node	*tree_read(unsigned int, const unsigned char *, size_t);

/* select.c */
void	 answer(struct node **, unsigned int, const char *);

#endif /* KUBECONFIG_H */
