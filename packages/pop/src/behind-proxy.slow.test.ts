/** A PoP on Node behind a proxy that speaks TLS and HTTP/2 to the clients. */
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type ClientHttp2Session } from "node:http2";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { putObject, randomBytes, REGIONS, startBuckets, type BucketServer } from "@agarose/worker/testing";
import { startPopProcess, type PopProcess } from "../test/start-pop-process.ts";
import { startTlsProxy, type TlsProxy } from "../test/tls-proxy.ts";

const ADMIN_TOKEN = "admin-token-of-16+";
const WRONG_TOKENS = 12;
const content = randomBytes(3_000_000);
let folder: string;
let buckets: BucketServer;
let pop: PopProcess;
let proxy: TlsProxy;
const sessions: ClientHttp2Session[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-pop-tls-"));
  buckets = await startBuckets();
  const regions = REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }));
  const variables = { POP: "own", REGIONS: JSON.stringify(regions), ADMIN_TOKEN, UNSIGNED: "true" };
  pop = await startPopProcess({ variables, folder, periodMs: 0, behindProxy: true }, () => {});
  proxy = await startTlsProxy(pop.url);
  await putObject(buckets, "page", content);
});
afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  await proxy.close();
  await pop.kill();
  await buckets.close();
  await rm(folder, { recursive: true, force: true });
});

/** Opens a connection with HTTP/2 from an address of this machine. */
function client(localAddress = "127.0.0.1"): ClientHttp2Session {
  const { hostname, port } = new URL(proxy.url);
  const socket = connectTcp({ host: hostname, port: Number(port), family: 4, localAddress });
  const session = connect(proxy.url, {
    createConnection: () => connectTls({ socket, servername: hostname, ca: proxy.certificate, ALPNProtocols: ["h2"] }),
  });
  sessions.push(session);
  return session;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
}

function ask(session: ClientHttp2Session, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": path, ...headers });
    const parts: Buffer[] = [];
    let head: Record<string, string> = {};
    stream.once("response", (answered) => (head = answered as Record<string, string>));
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.once("error", reject);
    stream.once("end", () => resolve({ status: Number(head[":status"]), headers: head, bytes: Buffer.concat(parts) }));
  });
}

const wrongToken = { authorization: "Bearer wrong" };

async function readsUnderWay(): Promise<number> {
  const response = await fetch(`${pop.url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  return ((await response.json()) as { isolate: { readsWithMemory: number } }).isolate.readsWithMemory;
}

test("objects, ranges and conditions arrive over TLS and HTTP/2 as without a proxy", async () => {
  const session = client();
  const [whole, range, bundle] = await Promise.all([
    ask(session, "/o/page"),
    ask(session, "/o/page", { range: "bytes=1000-1999" }),
    ask(session, "/v1/read/page"),
  ]);
  expect(session.alpnProtocol).toBe("h2");
  expect(whole.status).toBe(200);
  expect(whole.bytes.equals(content)).toBe(true);
  expect(range.status).toBe(206);
  expect(range.bytes.equals(content.subarray(1_000, 2_000))).toBe(true);
  expect(bundle.status).toBe(200);
  const etag = whole.headers["etag"]!;
  expect(await ask(session, "/o/page", { "if-none-match": etag })).toMatchObject({ status: 304 });
  expect((await ask(session, "/o/absent")).headers["x-agarose-error"]).toBe("OBJECT_NOT_FOUND");
});

test("limits count the address that the proxy has added, and no address that a client claims", async () => {
  const guesser = client();
  const statuses: number[] = [];
  for (let i = 0; i < WRONG_TOKENS; i++) {
    const claim = { "x-forwarded-for": `198.51.100.${i}`, "cf-connecting-ip": `198.51.100.${i}` };
    statuses.push((await ask(guesser, "/v1/status", { ...wrongToken, ...claim })).status);
  }
  expect(statuses[0]).toBe(401);
  expect(statuses.at(-1)).toBe(429);
  // All of 127.0.0.0/8 is this machine.
  expect((await ask(client("127.0.0.2"), "/v1/status", wrongToken)).status).toBe(401);
});

test("the PoP ends the read of a client that leaves the proxy", async () => {
  const session = client();
  const streams = Array.from({ length: 4 }, () => session.request({ ":path": "/o/page" }).on("error", () => {}));
  await expect.poll(readsUnderWay, { timeout: 60_000 }).toBeGreaterThan(0);
  session.destroy();
  await expect.poll(readsUnderWay, { timeout: 60_000 }).toBe(0);
  expect(streams.every(({ destroyed }) => destroyed)).toBe(true);
  expect((await ask(client(), "/o/page")).bytes.equals(content)).toBe(true);
});

test("SIGTERM lets a body that the proxy is sending arrive whole", async () => {
  const session = client();
  const stream = session.request({ ":path": "/o/page" });
  let bytes = 0;
  const ended = new Promise<void>((resolve, reject) => stream.once("end", resolve).once("error", reject));
  await new Promise<void>((resolve) => {
    stream.on("data", (part: Buffer) => {
      bytes += part.length;
      resolve();
    });
  });
  const end = pop.end(30_000);
  await ended;
  await end;
  expect(bytes).toBe(content.length);
  expect((await ask(session, "/o/page")).status).toBe(502);
});
