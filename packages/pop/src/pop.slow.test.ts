/** A PoP on Node as a process: what survives a kill, and how it ends. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRequest, putObject, randomBytes, REGIONS, startBuckets, type BucketServer } from "@agarose/worker/testing";
import { startPopProcess, type PopProcess } from "../test/start-pop-process.ts";

const ADMIN_TOKEN = "admin-token-of-16+";
const content = randomBytes(400_000);
let folder: string;
let buckets: BucketServer;
let pop: PopProcess | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-pop-"));
  buckets = await startBuckets();
});
afterEach(async () => {
  await pop?.kill();
  await buckets.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(more: Record<string, string> = {}, onLog: (line: string) => void = () => {}): Promise<PopProcess> {
  const regions = REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }));
  const variables = {
    POP: "own",
    REGIONS: JSON.stringify(regions),
    ADMIN_TOKEN,
    UNSIGNED: "true",
    MANIFEST_TTL_SECONDS: "0",
    ...more,
  };
  return (pop = await startPopProcess({ variables, folder, periodMs: 0 }, onLog));
}

async function read(): Promise<{ kind: string | null; bytes: Buffer }> {
  const response = await fetch(`${pop!.url}/o/page`);
  return { kind: response.headers.get("x-agarose-read"), bytes: Buffer.from(await response.arrayBuffer()) };
}

interface Status {
  readonly epoch: number;
  readonly cache: { readonly objects: { readonly done: number; readonly stripes: number }[] };
  readonly isolate: { readonly readsWithMemory: number };
}

async function status(): Promise<Status> {
  const response = await fetch(`${pop!.url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  return (await response.json()) as Status;
}

test("the cache and the state are there after kill -9, and reads come from the disk", async () => {
  await putObject(buckets, "page", content);
  await start();
  await read();
  await pop!.runPeriod();
  const before = await status();
  expect(before.cache.objects).toHaveLength(1);
  await pop!.kill();
  expect(pop!.process.signalCode).toBe("SIGKILL");
  await start();
  expect(await status()).toMatchObject({ epoch: before.epoch, cache: before.cache });
  // On a busy machine the disk may be late, and a bucket asked beside it.
  const kinds: (string | null)[] = [];
  while (!kinds.includes("edge")) {
    const { kind, bytes } = await read();
    kinds.push(kind);
    expect(bytes.equals(content)).toBe(true);
    expect(["edge", "mixed"]).toContain(kind);
  }
});

test("a kill at any moment of a fill leaves a PoP that reads right and fills again", async () => {
  await putObject(buckets, "page", content, { stripeBytes: 20_000 });
  let killed = 0;
  for (const afterMs of [5, 40, 90, 160, 250]) {
    await start();
    await read();
    const period = pop!.runPeriod().then(
      () => "ended",
      () => "killed",
    );
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await pop!.kill();
    if ((await period) === "killed") killed++;
  }
  expect(killed, "periods that were cut off").toBeGreaterThan(0);
  await start();
  for (let i = 0; i < 3; i++) {
    expect((await read()).bytes.equals(content)).toBe(true);
    await pop!.runPeriod().catch(() => {});
  }
  const { objects } = (await status()).cache;
  expect(objects.every(({ done, stripes }) => done === stripes)).toBe(true);
  expect((await read()).bytes.equals(content)).toBe(true);
});

test.each([
  ["what memory holds outlives its files", {}, "edge"],
  ["without memory, each read is of the files", { MEMORY_BYTES: "0" }, "origin"],
])("%s", async (_name, variables, kind) => {
  await putObject(buckets, "page", content);
  await start(variables);
  await read();
  await pop!.runPeriod();
  // It looks for a new configuration every 5 s.
  await expect.poll(async () => (await read()).kind, { timeout: 60_000 }).toBe("edge");
  await rm(join(folder, "chunks"), { recursive: true });
  const after = await read();
  expect(after.bytes.equals(content)).toBe(true);
  expect(after.kind).toBe(kind);
});

test("a client that claims an address in Cloudflare's header is answered", async () => {
  await putObject(buckets, "page", content);
  await start();
  const response = await fetch(`${pop!.url}/o/page`, { headers: { "cf-connecting-ip": "198.51.100.7" } });
  expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true);
});

test("a chunk that is damaged on disk is not served", async () => {
  await putObject(buckets, "page", content);
  await start();
  await read();
  await pop!.runPeriod();
  await pop!.kill();
  const chunks = join(folder, "chunks");
  let damaged = 0;
  for (const shard of (await readdir(chunks)).filter((name) => name !== "new")) {
    for (const file of await readdir(join(chunks, shard))) {
      await writeFile(join(chunks, shard, file), randomBytes(30_000, 7));
      damaged++;
    }
  }
  expect(damaged).toBeGreaterThan(0);
  await start();
  expect((await read()).bytes.equals(content)).toBe(true);
});

test("a second process on the folder is refused, and the first one continues; after kill -9 the folder is free", async () => {
  await putObject(buckets, "page", content);
  const first = await start();
  const log: string[] = [];
  await expect(start({}, (line) => log.push(line))).rejects.toThrow("the PoP ended");
  await expect.poll(() => log.join("\n"), { timeout: 60_000 }).toContain("stop the process that uses it");
  await first.runPeriod();
  expect((await read()).bytes.equals(content)).toBe(true);
  await first.kill();
  await start();
  expect((await read()).bytes.equals(content)).toBe(true);
});

test("damaged state is an error with the file and what to do, and without its folder the PoP starts again", async () => {
  await putObject(buckets, "page", content);
  await start();
  await read();
  await pop!.runPeriod();
  await pop!.kill();
  const state = join(folder, "state", "PopState");
  for (const name of await readdir(state)) await writeFile(join(state, name), "damaged ".repeat(1_000));
  const log: string[] = [];
  await expect(start({}, (line) => log.push(line))).rejects.toThrow("the PoP ended");
  await expect
    .poll(() => log.join("\n"), { timeout: 60_000 })
    .toMatch(/pop\.sqlite cannot be used \(file is not a database\).*remove the PoP's whole folder/);
  await rm(folder, { recursive: true });
  await start();
  expect((await read()).bytes.equals(content)).toBe(true);
  await pop!.runPeriod();
  expect((await status()).cache.objects).toHaveLength(1);
});

/** Sends `text` over TCP and resolves to what comes back until the PoP closes the connection. */
function exchange(text: string): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(pop!.url);
    const socket = connect(Number(port), hostname);
    let answer = "";
    socket.on("data", (part) => (answer += part.toString("latin1")));
    // A too large body is cut off while it is still being sent.
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer));
    socket.write(text, "latin1");
  });
}

test("requests that no honest client sends are answered or cut off, and the PoP continues", async () => {
  await putObject(buckets, "page", content);
  await start();
  const get = (path: string, ...headers: string[]): string =>
    ["GET " + path + " HTTP/1.1", "Host: pop", ...headers, "Connection: close", "", ""].join("\r\n");
  const smuggled = "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: pop\r\n\r\n";
  const cases: [what: string, request: string, status: number | undefined][] = [
    ["no host", "GET /healthz HTTP/1.1\r\n\r\n", 400],
    ["a host that is none", "GET /healthz HTTP/1.1\r\nHost: a b/c?d#e@f\r\nConnection: close\r\n\r\n", 400],
    ["another server's URL", get("ftp://elsewhere/healthz"), 400],
    ["a tunnel", "CONNECT elsewhere:443 HTTP/1.1\r\nHost: pop\r\n\r\n", undefined],
    ["an upgrade", get("/healthz", "Upgrade: websocket"), 200],
    ["a NUL", get("/o/a\0b"), 400],
    ["bytes that are no UTF-8", get("/o/%zz%E0%A4"), 400],
    ["a way out", get("/o/%2e%2e/%2e%2e/etc/passwd"), 404],
    ["a long path", get(`/o/${"a".repeat(15_000)}`), 400],
    ["an endless path", get(`/o/${"a".repeat(1_000_000)}`), 431],
    ["many headers", get("/healthz", ...Array.from({ length: 5_000 }, (_, i) => `a: ${i}`)), 431],
    ["two lengths", `POST /v1/purge HTTP/1.1\r\nHost: pop\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n`, 400],
    [
      "a length and chunks",
      `POST /v1/purge HTTP/1.1\r\nHost: pop\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${smuggled}`,
      400,
    ],
    ["a body of GET", get("/o/absent", `Content-Length: ${smuggled.length}`) + smuggled, 404],
    ["a key twice", get("/v1/plans?key=page&key=page"), 400],
    ["a thousand keys", get(`/v1/plans?${Array.from({ length: 1_000 }, (_, i) => `key=${i}`).join("&")}`), 400],
  ];
  for (const [what, request, expected] of cases) {
    const statuses = [...(await exchange(request)).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code));
    expect(statuses, what).toEqual(expected === undefined ? [] : [expected]);
  }
  expect((await read()).bytes.equals(content)).toBe(true);
});

test("clients that ask for a page of objects and read nothing hold up no other read, and memory comes back", async () => {
  const bodies = Array.from({ length: 15 }, (_, i) => randomBytes(120_000, i));
  for (const [i, body] of bodies.entries()) await putObject(buckets, `page/${i}`, body, { stripeBytes: 4_000_000 });
  await start();
  const query = bodies.map((_, i) => `key=${encodeURIComponent(`page/${i}`)}`).join("&");
  const withMemory = async (): Promise<number> => (await status()).isolate.readsWithMemory;
  const stalled = [];
  for (let i = 0; i < 20; i++) {
    stalled.push(await openRequest(pop!.url, { path: `/v1/plans?${query}&bodies=1`, times: 8 }));
  }
  await expect.poll(withMemory, { timeout: 60_000, message: "batches wait for their clients" }).toBeGreaterThan(0);
  const response = await fetch(`${pop!.url}/o/page/0`);
  expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(bodies[0]!))).toBe(true);
  for (const socket of stalled) socket.resetAndDestroy();
  await expect.poll(withMemory, { timeout: 60_000 }).toBe(0);
});
