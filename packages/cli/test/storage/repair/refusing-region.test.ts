/** Repairs while a region asks for fewer requests. */
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CONTROL_NAME } from "@agarose/storage/commit/control-record";
import { LEASE_MS } from "@agarose/storage/commit/fence";
import { startTestWorld, type World } from "../../world.ts";

const KEYS = Array.from({ length: 6 }, (_, n) => `k/${n}`);
/** Of one request, as writers send it. */
const TRIES = 3;

let world: World;
beforeEach(async () => {
  world = await startTestWorld();
  for (const key of KEYS) await world.put(key, randomBytes(5_000));
  // All lack a chunk, so that there is something to do beside the region that refuses.
  const chunks = (await world.names("chunks/")).filter((name) => name.startsWith("sydney/"));
  await world.store("sydney").remove(chunks.map((name) => name.slice("sydney/".length)));
});
afterEach(() => world.close());

/** Has a region answer 503 and ask for a pause. Returns what it was asked for. */
function refuse(region: string): string[] {
  const asked: string[] = [];
  world.faults.set(region, (request, response, name) => {
    asked.push(name);
    request.resume();
    response.writeHead(503, { "retry-after": "1", "content-type": "application/xml" });
    response.end("<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>");
    return true;
  });
  return asked;
}

async function expectRepaired(args: readonly string[]): Promise<void> {
  const { stdout, stderr } = await world.run(["repair", ...args, "--json"]);
  const { objects, failed } = JSON.parse(String(stdout)) as { objects: { chunksWritten: number }[]; failed: number };
  expect(failed, stderr).toBe(0);
  expect(objects.map(({ chunksWritten }) => chunksWritten)).toEqual(KEYS.map(() => 1));
}

/**
 * The requests to a region without those for the control record, which follow the clock and not the objects: one look
 * for each half of a lease.
 */
function besideLooks(asked: readonly string[], tookMs: number): string[] {
  const others = asked.filter((name) => name !== CONTROL_NAME);
  expect(asked.length - others.length).toBeLessThanOrEqual(TRIES * (1 + Math.ceil(tookMs / (LEASE_MS / 2))));
  return others;
}

test("only the first requests of a command wait for it, and not those of each object", async () => {
  const asked = refuse("tokyo");
  const startMs = performance.now();
  await expectRepaired(KEYS);
  expect(asked.length).toBeGreaterThan(0);
  const others = besideLooks(asked, performance.now() - startMs);
  // The listing, and the manifest of the first object, of which two readers ask.
  expect(others.length).toBeLessThanOrEqual(4 * TRIES);
  expect(new Set(others.filter((name) => name.startsWith("manifests/"))).size).toBeLessThanOrEqual(1);
});

test("a region that could not be listed is not asked for each object", async () => {
  const asked = refuse("tokyo");
  const startMs = performance.now();
  await expectRepaired([]);
  expect(asked.length).toBeGreaterThan(0);
  const others = besideLooks(asked, performance.now() - startMs);
  expect(others.filter((name) => name !== "")).toEqual([]);
  // Manifests and the notes for repairs are listed apart.
  expect(others.length).toBeLessThanOrEqual(2 * TRIES);
});
