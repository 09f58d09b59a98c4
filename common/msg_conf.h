/* SPDX-License-Identifier: ISC */

/*
 * Start and configuration: what the parent tells a child about who it is, and
 * a generation as one transaction.  A child gets the slice of the
 * configuration that its duty needs and nothing else.
 */

/*
 * The first row, and so of the same number in every version.  uid 0: stay who
 * you are (started without privileges), no chroot.  life is another one each
 * time that the daemon starts.
 */
MSG(BOOT, boot, R_PARENT, R_CHILDREN, FD_NEVER, S_BOOT)
FIELDS(boot, STR(version, NAME_LEN) U8(role) U8(log_level) U8(log_marks)
    U32(uid) U32(gid) U64(life) STR(chroot, PATH_LEN) STR(session, SESSION_LEN))

/* The other end of a pair.  Session and instance name an engine. */
MSG(CHANNEL, channel, R_PARENT, R_CHILDREN, FD_MUST, S_UP)
FIELDS(channel, U8(peer) U32(instance) STR(session, SESSION_LEN)
    STR(policy, NAME_LEN))

MSG(LOG_LEVEL, log_level, R_PARENT, R_CHILDREN, FD_NEVER, S_UP)

/* The transaction: one for each generation. */
MSG(CONF_BEGIN, generation, R_PARENT, R_CHILDREN, FD_NEVER, S_SETUP | S_RUN)
MSG(CONF_END, generation, R_PARENT, R_CHILDREN, FD_NEVER, S_PREPARE)
MSG(CONF_COMMIT, generation, R_PARENT, R_CHILDREN, FD_NEVER, S_PREPARE)
MSG(CONF_ABORT, generation, R_PARENT, R_CHILDREN, FD_NEVER, S_PREPARE)
MSG(CONF_ACK, generation, R_CHILDREN, R_PARENT, FD_NEVER, S_PREPARE)
MSG(CONF_DONE, generation, R_CHILDREN, R_PARENT, FD_NEVER, S_COMMIT)

/*
 * why: for the log and for whoever asked for the reload.  Of engines only the
 * one without a session may say no, which weighs what others will use.
 */
MSG(CONF_NAK, conf_nak, R_CHILDREN, R_PARENT, FD_NEVER, S_PREPARE)
FIELDS(conf_nak, U64(generation) STR(why, PATH_LEN))

MSG(CONF_CONTROL, conf_control, R_PARENT, R_CONTROLD, FD_MUST, S_PREPARE)
FIELDS(conf_control, U8(read_only))

MSG(CONF_LIMITS, conf_limits, R_PARENT, R_CONTROLD, FD_NEVER, S_PREPARE)
FIELDS(conf_limits, U32(clients) U32(sessions))

MSG(CONF_PENDING, conf_pending, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE)
FIELDS(conf_pending, U32(max))

MSG(CONF_SESSION, conf_session, R_PARENT, R_CONTROLD | R_POLICYD | R_RECORDER,
    FD_NEVER, S_PREPARE)
FIELDS(conf_session, STR(session, NAME_LEN) STR(policy, NAME_LEN))

/* What controld must know of a policy, and how many rules it has. */
MSG(CONF_POLICY_NAME, conf_policy_name, R_PARENT, R_CONTROLD, FD_NEVER,
    S_PREPARE)
FIELDS(conf_policy_name, STR(name, NAME_LEN) U32(rules))

/*
 * A sandbox that clients may ask for: kind is one of sandbox_kind; restricted,
 * it is not for everybody.
 */
MSG(CONF_SANDBOX, conf_sandbox, R_PARENT, R_CONTROLD, FD_NEVER, S_PREPARE)
FIELDS(conf_sandbox, STR(name, NAME_LEN) U8(kind) U8(is_default)
    U8(restricted) STR(policy, NAME_LEN) STR(cwd, PATH_LEN) STR(user, NAME_LEN)
    U64(deadline_ms) U64(size) U64(memory) U32(processes) U64(file)
    U64(cpu_ms) U8(mountable))

/* Rules follow their policy, conditions their rule, options each of them. */
MSG(CONF_POLICY, conf_policy, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE)
FIELDS(conf_policy, STR(name, NAME_LEN) U8(allow))

MSG(CONF_RULE, conf_rule, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE)
FIELDS(conf_rule, U32(index) U8(kind) U8(tcp))

/*
 * Of the policy, rule or decider sent before it: the place of the option in
 * its table (option.h), and a number or a text.
 */
MSG(CONF_OPTION, conf_option, R_PARENT, R_POLICYD | R_DECIDERD | R_ENGINE,
    FD_NEVER, S_PREPARE)
FIELDS(conf_option, U8(of) U8(row) U64(number) STR(text, PATH_LEN))

/* A host, path, method, prefix or decider; ports; metadata has a value. */
MSG(CONF_COND, conf_cond, R_PARENT, R_POLICYD, FD_NEVER, S_PREPARE)
FIELDS(conf_cond, U8(kind) U16(first) U16(last) STR(text, PATH_LEN)
    STR(value, PATH_LEN))

/* Patterns of the policy sent before; the first that matches counts. */
MSG(CONF_ENVIRONMENT, conf_environment, R_PARENT, R_CONTROLD, FD_NEVER,
    S_PREPARE)
FIELDS(conf_environment, U8(pass) STR(pattern, NAME_LEN))

/* What policyd must know of a decider: not where it is, nor its key. */
MSG(CONF_DECIDER_NAME, conf_decider_name, R_PARENT, R_POLICYD, FD_NEVER,
    S_PREPARE)
FIELDS(conf_decider_name, STR(name, NAME_LEN) U8(kind) U64(timeout_ms)
    U32(concurrency))

/* show: a name that would be hidden otherwise is to be shown. */
MSG(CONF_REDACT, conf_redact, R_PARENT, R_POLICYD | R_RECORDER, FD_NEVER,
    S_PREPARE)
FIELDS(conf_redact, STR(policy, NAME_LEN) U8(kind) U8(show) STR(name, NAME_LEN))

MSG(CONF_AUDIT, conf_audit, R_PARENT, R_RECORDER, FD_MUST, S_PREPARE)
FIELDS(conf_audit, STR(path, PATH_LEN))

MSG(CONF_AUDIT_SAME, empty, R_PARENT, R_RECORDER, FD_NEVER, S_PREPARE)
MSG(CONF_TIP, empty, R_PARENT, R_RECORDER, FD_MUST, S_PREPARE)

/* plain: a file, which never blocks and cannot be waited for. */
MSG(CONF_STDOUT, conf_stdout, R_PARENT, R_RECORDER, FD_MUST, S_PREPARE)
FIELDS(conf_stdout, U8(plain))

/* The audit file is a spool of so many bytes; here is what is acknowledged. */
MSG(CONF_SPOOL, conf_spool, R_PARENT, R_RECORDER, FD_MUST, S_PREPARE)
FIELDS(conf_spool, U64(size))

/* A policy whose sessions go on while records are lost. */
MSG(CONF_GAP, conf_gap, R_PARENT, R_RECORDER, FD_NEVER, S_PREPARE)
FIELDS(conf_gap, STR(policy, NAME_LEN))

/* mark: of the sockets from here on; those of another one are given back. */
MSG(CONF_DIAL, conf_dial, R_PARENT, R_DIALER, FD_NEVER, S_PREPARE)
FIELDS(conf_dial, U64(timeout_ms) U32(mark))

MSG(CONF_HOST, conf_host, R_PARENT, R_DIALER, FD_NEVER, S_PREPARE)
FIELDS(conf_host, STR(name, HOST_LEN) STR(address, ADDRESS_LEN))

MSG(CONF_RESOLVER, conf_resolver, R_PARENT, R_DIALER | R_DECIDERD | R_K8SD,
    FD_NEVER, S_PREPARE)
FIELDS(conf_resolver, STR(address, ADDRESS_LEN) U16(port))

MSG(CONF_DENY_NET, conf_deny_net, R_PARENT, R_DIALER, FD_NEVER, S_PREPARE)
FIELDS(conf_deny_net, STR(prefix, ADDRESS_LEN))

/* Its options follow. */
MSG(CONF_DECIDER, conf_decider, R_PARENT, R_DECIDERD, FD_NEVER, S_PREPARE)
FIELDS(conf_decider, STR(name, NAME_LEN) U8(kind))

/* A header field of the decider sent before. */
MSG(CONF_HEADER, conf_header, R_PARENT, R_DECIDERD, FD_NEVER, S_PREPARE)
FIELDS(conf_header, STR(name, NAME_LEN) STR(value, PATH_LEN))

/* One that a sandbox uses; its files follow.  auth is one of cluster_auth. */
MSG(CONF_CLUSTER, conf_cluster, R_PARENT, R_K8SD, FD_NEVER, S_PREPARE)
FIELDS(conf_cluster, STR(name, NAME_LEN) STR(server, PATH_LEN)
    STR(space, NAME_LEN) STR(tls_name, HOST_LEN) STR(proxy, PATH_LEN)
    STR(user, PATH_LEN) U8(auth) U8(insecure))

/*
 * A sandbox of the kind kubernetes; texts and lists of it follow.  A user or
 * group of UINT32_MAX was not said; delete is one of enum pod_delete.
 */
MSG(CONF_POD, conf_pod, R_PARENT, R_K8SD, FD_NEVER, S_PREPARE)
FIELDS(conf_pod, STR(name, NAME_LEN) STR(cluster, NAME_LEN)
    STR(policy, NAME_LEN) U64(git_timeout_ms) U64(deadline_ms)
    U64(heartbeat_ms) U64(ready_timeout_ms) U32(run_as_user) U32(run_as_group)
    U32(fs_group) U8(account_token) U8(read_only_root) U8(recreate) U8(delete)
    U8(forward) U8(ungated) U8(overlay) U8(network_policy))

MSG(CONF_POD_TEXT, conf_pod_text, R_PARENT, R_K8SD, FD_NEVER, S_PREPARE)
FIELDS(conf_pod_text, U8(what) STR(key, PATH_LEN) STR(value, TEXT_LEN))

/* Key, prompt, token, certificate, ...: of the object sent before it. */
MSG(CONF_FILE, conf_file, R_PARENT, R_DECIDERD | R_K8SD | R_ENGINE, FD_MUST,
    S_PREPARE)
FIELDS(conf_file, U8(what))

/*
 * asks: the policy has rules about connections, not only about requests.
 * waits: nobody is served before TRUST_WRITTEN.
 */
MSG(CONF_ENGINE, conf_engine, R_PARENT, R_ENGINE, FD_NEVER, S_PREPARE)
FIELDS(conf_engine, STR(policy, NAME_LEN) U8(asks) U8(waits) U32(connections)
    U64(handshake_ms) U64(head_ms) U64(response_ms) U64(idle_ms) U64(tunnel_ms)
    U64(total_ms))

/* A CA to be weighed: its files follow, their names are for the refusal. */
MSG(CONF_WEIGH, conf_weigh, R_PARENT, R_ENGINE, FD_NEVER, S_PREPARE)
FIELDS(conf_weigh, STR(session, NAME_LEN) STR(certificate, PATH_LEN)
    STR(key, PATH_LEN))

/* A bound socket: one of listen_kind. */
MSG(CONF_LISTEN, conf_listen, R_PARENT, R_ENGINE, FD_MUST, S_PREPARE)
FIELDS(conf_listen, U8(kind) U8(transparent))
