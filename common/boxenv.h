/* SPDX-License-Identifier: ISC */

/*
 * What the parent and egressd-box agree on: in the environment of a box that
 * serves clients of the daemon, the variables of commands have this before
 * their names.
 */

#ifndef BOXENV_H
#define BOXENV_H

#define BOX_GIVEN	"EGRESSD_GIVEN_"

#endif
