#!/usr/bin/env node
// SPDX-License-Identifier: ISC
// A sandbox of egressd without a library: start it, write a file, run a command,
// print what it says, stop it.  JSON in lines, egressd.sock(5), then frames,
// egressd-box(5).  The socket is the first argument, or in EGRESSD_SOCKET.
import { once } from 'node:events';
import { connect } from 'node:net';

const [CALL, RESULT, ERROR, DATA, DATA_ERR, END, CREDIT] = [1, 2, 3, 4, 5, 6, 7];
const path = process.argv[2] ?? process.env.EGRESSD_SOCKET ?? '/run/egressd.sock';
const u32 = (n) => Buffer.from([n >>> 24, n >> 16, n >> 8, n]);

async function take(socket, size) {
	for (let bytes; size > 0; await once(socket, 'readable'))
		if ((bytes = socket.read(size)) !== null)
			return bytes;
	return Buffer.alloc(0);
}

async function ask(socket, op, members) {
	socket.write(JSON.stringify({ id: 1, op, ...members }) + '\n');
	const line = [];
	while (line.at(-1) !== 10)
		line.push(...await take(socket, 1));
	const answer = JSON.parse(Buffer.from(line));
	if (!answer.ok)
		throw new Error(`${op}: ${answer.error.message}`);
	return answer;
}

const send = (socket, kind, body) =>
	socket.write(Buffer.concat([u32(body.length), u32(1), u32(kind << 24), body]));

async function call(socket, members, data) {	// an operation, to its end
	send(socket, CALL, Buffer.from(JSON.stringify(members)));
	if (data !== undefined)	{	// up to 65536 bytes a frame
		send(socket, DATA, Buffer.from(data));
		send(socket, END, Buffer.alloc(0));
	}
	for (;;) {
		const head = await take(socket, 12), kind = head[8];
		const body = await take(socket, head.readUInt32BE(0));
		if (kind === DATA || kind === DATA_ERR) {
			process.stdout.write(body);
			send(socket, CREDIT, u32(body.length));
		} else if (kind === ERROR)
			throw new Error(`${members.op}: ${body}`);
		else if (kind === RESULT && head.readUInt32BE(4) !== 0)	// 0: hello
			return JSON.parse(body);
	}
}

const control = connect(path), sandbox = connect(path);
const { session_id } = await ask(control, 'session.start', { caller_cwd: process.cwd() });
await ask(sandbox, 'session.attach', { session_id });
await call(sandbox, { op: 'write', path: 'hello.txt' }, 'hello from the sandbox\n');
const result = await call(sandbox, { op: 'exec', command: 'cat hello.txt; rm hello.txt' });
await ask(control, 'session.stop', { session_id });
process.exit(result.exit_code ?? 1);
