/* SPDX-License-Identifier: ISC */

/*
 * Codes of errors on the control socket: what a client that is a program acts
 * by, while the message beside the code is for people.  controld gives them and
 * egressctl explains them.  egressd.sock(5) has them all, and
 * regress/build/words.py compares.
 */

#ifndef CODES_H
#define CODES_H

/* The request, or the connection that it came by. */
#define CODE_BAD_JSON		"bad_json"
#define CODE_BAD_REQUEST	"bad_request"
#define CODE_NOT_PERMITTED	"not_permitted"
#define CODE_TOO_LONG		"too_long"
#define CODE_TOO_MANY_CLIENTS	"too_many_clients"
#define CODE_TOO_MUCH		"too_much"
#define CODE_UNKNOWN_OP		"unknown_op"

/* What it names. */
#define CODE_BAD_SESSION	"bad_session"
#define CODE_NO_SUCH_QUESTION	"no_such_question"
#define CODE_SESSION_EXISTS	"session_exists"
#define CODE_UNKNOWN_DECIDER	"unknown_decider"
#define CODE_NOT_SUPPORTED	"not_supported"
#define CODE_OUT_OF_RANGE	"out_of_range"
#define CODE_TAKEN_OVER		"taken_over"
#define CODE_UNKNOWN_SANDBOX	"unknown_sandbox"
#define CODE_UNKNOWN_POLICY	"unknown_policy"
#define CODE_UNKNOWN_SESSION	"unknown_session"

/* Pods, and the cluster that they are in. */
#define CODE_BAD_HEARTBEAT	"bad_heartbeat"
#define CODE_CLUSTER_REFUSED	"cluster_refused"
#define CODE_CLUSTER_UNREACHABLE "cluster_unreachable"
#define CODE_DELETE_TIMEOUT	"delete_timeout"
#define CODE_FOLLOWED_ELSEWHERE	"followed_elsewhere"
#define CODE_FOREIGN_POD	"foreign_pod"
#define CODE_POD_DIFFERS	"pod_differs"
#define CODE_POD_FAILED		"pod_failed"
#define CODE_READY_TIMEOUT	"ready_timeout"
#define CODE_REMOTE_ERROR	"remote_error"
#define CODE_STALE_POD		"stale_pod"
#define CODE_UNEXPECTED_PHASE	"unexpected_phase"
#define CODE_UNKNOWN_CLUSTER	"unknown_cluster"
#define CODE_WORKSPACE_SOURCE	"workspace_source"

/* The daemon: it will not now, or cannot. */
#define CODE_BAD_CONFIGURATION	"bad_configuration"
#define CODE_BUSY		"busy"
#define CODE_INTERNAL		"internal"
#define CODE_MOUNT_FAILED	"mount_failed"
#define CODE_RELOAD_REFUSED	"reload_refused"
#define CODE_START_FAILED	"start_failed"
#define CODE_TOO_MANY_SESSIONS	"too_many_sessions"

#endif /* CODES_H */
