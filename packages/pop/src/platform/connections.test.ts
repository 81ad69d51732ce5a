/** The effect on a PoP's process when a server closes a connection. */
import { execFile } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const BODY = Buffer.alloc(64 * 1024, "a");
const CONNECTIONS = new URL("connections.ts", import.meta.url).href;

/** A bucket that closes each connection after its answer. */
const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.once("data", () => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\nconnection: close\r\n\r\n`);
    socket.end(BODY);
  });
});

beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** Runs a process that reads the answer half a second late, and resolves with what it printed. */
async function readLate(before: string): Promise<string> {
  const { port } = server.address() as AddressInfo;
  const script = `
    ${before}
    const response = await fetch("http://127.0.0.1:${port}/");
    await new Promise((resolve) => setTimeout(resolve, 500));
    console.log((await response.arrayBuffer()).byteLength);
    process.exit();
  `;
  const run = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  return run.then(
    ({ stdout }) => stdout.trim(),
    (error: { stderr: string }) => /Error.*/.exec(error.stderr)?.[0] ?? "",
  );
}

test("an answer that is read after its server has closed the connection is whole", async () => {
  const mended = `import { useOwnConnections } from ${JSON.stringify(CONNECTIONS)}; useOwnConnections();`;
  expect(await readLate(mended)).toBe(String(BODY.length));
});

// Once Node has the mend too, `connections.ts` can go.
const isMended = Number(process.versions["undici"]!.split(".")[0]) >= 8;
test.skipIf(isMended)("Node's own client ends the process there", async () => {
  expect(await readLate("")).toContain("ERR_ASSERTION");
});
