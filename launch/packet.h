/* SPDX-License-Identifier: ISC */

/*
 * The two ends of egressd-launch: the one that the parent starts asks, the one
 * that systemd starts does.
 */

#ifndef PACKET_H
#define PACKET_H

#include <sys/types.h>

#include <stdint.h>

#define EXIT_LAUNCH	127
#define WORD_END	'T'	/* to the launcher: end it */
#define PACKET_MAX	(160 * 1024)

/* A packet: this, then strings: user, directory, program, words, variables. */
struct packet {
	uint32_t	 pk_words;
	uint32_t	 pk_variables;
	uint32_t	 pk_umask;
	uint64_t	 pk_data;
	uint64_t	 pk_memory;
	uint64_t	 pk_processes;
	char		 pk_strings[];
};

int	 ask_run(int, char *[]);
int	 serve_run(int);

#endif /* PACKET_H */
