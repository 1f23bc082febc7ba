// A stdio MCP server on V8. V8 compiles its tool to machine code, because the tool runs
// long. A sandbox without writable and executable memory would end the process.
const tools = [{ name: "sum", inputSchema: { type: "object" } }];

function sum() {
  let total = 0;
  for (let i = 0; i < 1e7; i += 1) total += i % 7;
  return { content: [{ type: "text", text: `${total} with ${require("os").cpus().length > 0}` }] };
}

function answer(method, params) {
  if (method === "initialize") {
    const serverInfo = { name: "node", version: process.version };
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === "tools/list") return { tools };
  if (method === "tools/call") return sum();
  return {};
}

require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answer(method, params) }));
  });
