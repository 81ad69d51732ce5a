/** The losses when a PoP on Node stops: counts at a kill, answers at SIGTERM. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRequest, putObject, randomBytes, REGIONS, startBuckets, type BucketServer } from "@agarose/worker/testing";
import { startPopProcess, type PopProcess } from "../test/start-pop-process.ts";

const ADMIN_TOKEN = "admin-token-of-16+";
let folder: string;
let buckets: BucketServer;
let pop: PopProcess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-pop-end-"));
  buckets = await startBuckets();
  await start();
});
afterEach(async () => {
  await pop.kill();
  await buckets.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(): Promise<void> {
  const regions = REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }));
  const variables = { POP: "own", REGIONS: JSON.stringify(regions), ADMIN_TOKEN, UNSIGNED: "true" };
  pop = await startPopProcess({ variables, folder, periodMs: 0 }, () => {});
}

async function read(key: string): Promise<void> {
  await (await fetch(`${pop.url}/o/${key}`)).arrayBuffer();
}

/** Requests of the running period that are on the disk: those that a process would find after a kill now. */
async function savedRequests(key: string): Promise<number> {
  const shards = join(folder, "state", "RequestMonitor");
  const files = (await readdir(shards)).filter((name) => name.endsWith(".sqlite"));
  const counts = files.flatMap((file) => {
    const database = new DatabaseSync(join(shards, file), { readOnly: true });
    try {
      const rows = database.prepare("SELECT bytes FROM counts").all() as { bytes: Uint8Array }[];
      return rows.flatMap(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)) as [string, number][]);
    } finally {
      database.close();
    }
  });
  return counts.filter(([counted]) => counted === key).reduce((sum, [, requests]) => sum + requests, 0);
}

async function popularity(key: string): Promise<number | undefined> {
  const response = await fetch(`${pop.url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  const { lastPeriod } = (await response.json()) as {
    lastPeriod: { popular: { key: string; popularity: number }[] };
  };
  return lastPeriod.popular.find((entry) => entry.key === key)?.popularity;
}

test("after kill -9, the next period knows every read that was counted before the last seconds", async () => {
  await putObject(buckets, "page", randomBytes(2_000));
  await putObject(buckets, "late", randomBytes(2_000));
  let reads = 0;
  // Batches reach the disk two seconds after a read, and then at most every five seconds: both are waited for.
  const counted = async (): Promise<number> => {
    await read("page");
    reads++;
    return savedRequests("page");
  };
  await expect.poll(counted, { timeout: 60_000, interval: 500 }).toBeGreaterThan(0);
  const first = await savedRequests("page");
  await expect.poll(counted, { timeout: 60_000, interval: 500 }).toBeGreaterThan(first);
  const kept = await savedRequests("page");
  // These are of the last seconds.
  await read("late");
  await pop.kill();
  expect(pop.process.signalCode).toBe("SIGKILL");
  await start();
  await pop.runPeriod();
  const found = (await popularity("page")) ?? 0;
  // The newest period weighs 0.8.
  expect(found).toBeGreaterThanOrEqual(0.8 * kept - 0.001);
  expect(found).toBeLessThanOrEqual(0.8 * reads + 0.001);
  expect(await popularity("late"), "what was not on the disk is lost").toBeUndefined();
});

/** More than what the system's buffers take for a client that reads nothing. */
const LARGE_BYTES = 16_000_000;

/** A bundle carries what is cached, and a new process knows of it at its first read. */
async function putLarge(route: string): Promise<void> {
  await putObject(buckets, "large", randomBytes(LARGE_BYTES), { stripeBytes: 4_000_000 });
  if (route === "/o/") return;
  await read("large");
  await pop.runPeriod();
  await pop.kill();
  await start();
}

/** Opens an answer of which the client has taken only the beginning. */
async function openLarge(route: string): Promise<Socket> {
  const socket = await openRequest(pop.url, { path: `${route}large` });
  expect(socket.bytesRead).toBeLessThan(LARGE_BYTES / 2);
  return socket;
}

/** Takes the rest. Resolves to the bytes that came, with those of the head, when the connection ends. */
function takeRest(socket: Socket): Promise<number> {
  const ended = new Promise<number>((resolve) => socket.once("close", () => resolve(socket.bytesRead)));
  socket.resume();
  return ended;
}

const isClosed = (): Promise<boolean> =>
  fetch(`${pop.url}/healthz`).then(
    () => false,
    () => true,
  );

test.each(["/o/", "/v1/read/"])("a PoP that ends sends the slow answer of %s to its end", async (route) => {
  await putLarge(route);
  const socket = await openLarge(route);
  const ended = pop.end(60_000);
  await expect.poll(isClosed, { message: "it takes no new requests" }).toBe(true);
  expect(pop.process.exitCode).toBeNull();
  expect(await takeRest(socket)).toBeGreaterThan(LARGE_BYTES);
  await ended;
  expect(pop.process.exitCode).toBe(0);
});

test.each(["/o/", "/v1/read/"])(
  "a client of %s that takes nothing until the end gets an error, not a short body",
  async (route) => {
    await putLarge(route);
    const response = await fetch(`${pop.url}${route}large`);
    const reader = response.body!.getReader();
    let bytes = (await reader.read()).value!.length;
    await pop.end(100);
    expect(pop.process.exitCode).toBe(0);
    const rest = async (): Promise<void> => {
      for (let part = await reader.read(); !part.done; part = await reader.read()) bytes += part.value.length;
    };
    await expect(rest()).rejects.toThrow("terminated");
    expect(bytes, "the answer was cut off").toBeLessThan(LARGE_BYTES);
  },
);
