/* SPDX-License-Identifier: ISC */

/*
 * The hands of a sandbox: files and processes, for whoever is connected.  What
 * they say is egressd-box(5); hands.c tells how they do it.
 */

#ifndef HANDS_H
#define HANDS_H

struct hands_options {
	int		 ho_forward;	/* connect to ports of loopback */
	int		 ho_leave;	/* orphans, to the first process */
	const char	*ho_cwd;	/* entered already */
};

/* Serve connections that arrive on the channel until it ends. */
void	 hands_serve_channel(int, const struct hands_options *)
	    __attribute__((__noreturn__));

/* Serve one connection on two descriptors; the exit code. */
int	 hands_serve_pair(int, int, const struct hands_options *);

/* egressd-box hands [-Fk] [-d directory] */
int	 hands_main(int, char **);

#endif /* HANDS_H */
