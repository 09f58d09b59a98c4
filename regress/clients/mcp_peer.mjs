// SPDX-License-Identifier: ISC

// A client of the Model Context Protocol, by the SDK whose two files are
// named: lists and calls every tool of a server.  The last line that it prints
// is what it got, as JSON.
//
//	node mcp_peer.mjs index stdio version server [argument ...]

import { pathToFileURL } from "node:url";

const [index, stdio, version, command, ...args] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(index));
const { StdioClientTransport } = await import(pathToFileURL(stdio));
const second = version !== "v1";
const options = version === "modern" ?
    { versionNegotiation: { mode: { pin: "2026-07-28" } } } :
    version === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "regress", version: "1" }, options);
const transport = new StdioClientTransport({ command, args, env: process.env });
await client.connect(transport);

const got = { calls: {}, progress: [] };
const call = (name, given, more) => second ?
    client.callTool({ name, arguments: given }, more) :
    client.callTool({ name, arguments: given }, undefined, more);

got.server = client.getServerVersion()?.name;
got.tools = (await client.listTools()).tools.map((tool) => tool.name);
const script = [
    ["write", { path: "a.txt", content: "one two\n" }],
    ["edit", { path: "a.txt", old: "two", new: "2" }],
    ["read", { path: "a.txt" }],
    ["exec", { command: "cat a.txt; echo err >&2" }],
    ["mkdir", { path: "d" }],
    ["glob", { pattern: "*" }],
    ["grep", { pattern: "one" }],
    ["list", {}],
    ["stat", { path: "a.txt" }],
    ["remove", { path: "d" }],
];
for (const [name, given] of script) {
    const result = await call(name, given);
    got.calls[name] = [result.isError, result.structuredContent,
        result.content.map((part) => part.type)];
}
got.failed = (await call("read", { path: "missing" })).isError;
got.resources = (await client.listResources()).resources.length;
const uri = (await client.listResources()).resources[0].uri;
got.text = (await client.readResource({ uri })).contents[0].text;
// The command ends when its progress was heard: an answer that comes together
// with a notification may be taken first.
await call("exec", {
    command: "echo x; until test -e heard; do sleep 0.1; done; rm heard"
}, { onprogress: (progress) => {
    if (got.progress.push(progress) === 1)
        call("write", { path: "heard", content: "" });
} });

// One that is given up is not answered, and is in nobody's way.
const controller = new AbortController();
const slow = call("exec", { command: "echo x; sleep 600" }, {
    signal: controller.signal, onprogress: () => controller.abort("enough") });
got.cancelled = await slow.then(() => "no", () => "yes");
got.several = (await Promise.all([...Array(20).keys()].map((n) =>
    call("exec", { command: `echo ${n}` })))).map((result) =>
    result.structuredContent.stdout.trim());
try {
    await call("nonsense", {});
} catch (error) {
    got.unknown = error.code;
}
await client.close();
console.log(JSON.stringify(got));
