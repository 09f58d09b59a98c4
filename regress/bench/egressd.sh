#!/bin/bash
# SPDX-License-Identifier: ISC

# A peer for an interception benchmark that runs its peers as scripts: with
# EB_DIR (scratch), EB_PKI (root.pem of the origins; ca.pem and ca.key to mint
# with) and EB_PORT (where clients are redirected to), and _lib.sh beside it.
# EGRESSD names the program.  All processes run, the audit file is written and
# bodies are captured as by default.

CLASS=mint DESC="egressd: all processes, audit file on, 4 KiB capture on"
. "$(dirname "$0")/_lib.sh"; meta "$@"
install -m 600 "$EB_PKI/ca.key" "$EB_DIR/ca.key"
cat > "$EB_DIR/egressd.conf" <<C
uids 61200 - 61300
audit file "$EB_DIR/audit.log"
upstream trust file "$EB_PKI/root.pem"
hosts { $(sed -n 's/^\([0-9.]*\) \(.*test\)"\{0,1\}$/"\2" \1,/p' /etc/hosts) }
limit connections 20000
policy "bench" { allow host "**" to private }
session "bench" {
	listen on 0.0.0.0 port $EB_PORT transparent
	policy "bench"
	ca certificate "$EB_PKI/ca.pem" key "$EB_DIR/ca.key"
}
C
chmod 600 "$EB_DIR/egressd.conf"
exec "${EGRESSD:-egressd}" -d -f "$EB_DIR/egressd.conf" -s "$EB_DIR/s.sock"
