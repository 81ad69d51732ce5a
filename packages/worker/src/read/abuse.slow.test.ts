/**
 * An hour of abuse against the memory of one isolate. Real are the isolate's own structures: leases, manifests, limits
 * of clients, counts. Simulated are the clients, the buckets, the Cache API and the clock, so that an hour takes
 * seconds.
 */
import { AgaroseError, systemSha256 } from "@agarose/core";
import { acceptUnsigned } from "@agarose/core/format";
import { SimulatedClock } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { RateLimiter } from "../runtime/rate-limiter.ts";
import { ClientShares } from "../popularity/client-shares.ts";
import { COUNTED_KEYS_MAX, RequestTally } from "../popularity/request-tally.ts";
import { FrontCache } from "./front-cache.ts";
import { ManifestStore } from "./manifest-store.ts";
import { MemoryBudget, READ_BYTES_MAX } from "./limits/memory-budget.ts";

const SECONDS = 3_600;
const STRIPE_BYTES = 4 * 1024 * 1024;
/** Of 128 MB, less the 65 MiB that leases represent, which this test does not allocate. */
const HEAP_BYTES_MAX = 40 * 1024 * 1024;

interface NodeProcess {
  memoryUsage(): { heapUsed: number };
  getBuiltinModule(name: "node:v8"): { setFlagsFromString(flags: string): void };
  getBuiltinModule(name: "node:vm"): { runInNewContext(code: string): () => void };
}
const { process } = globalThis as unknown as { process: NodeProcess };
process.getBuiltinModule("node:v8").setFlagsFromString("--expose-gc");
const collectGarbage = process.getBuiltinModule("node:vm").runInNewContext("gc");

/** Bytes that are still in use. */
function retainedBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test("keeps an isolate in its memory and serves others, whatever some clients do", async () => {
  const clock = new SimulatedClock();
  const now = (): number => 1.8e12 + clock.now();
  const memory = new MemoryBudget(clock);
  const misses = new RateLimiter(clock, { burst: 60, perSecond: 1 });
  const shares = new ClientShares(now);
  const tally = new RequestTally(COUNTED_KEYS_MAX);
  const none = (): Cache => {
    throw new Error("no Cache API here");
  };
  const frontCache = new FrontCache({ pop: "fra", host: () => "fra.example" }, clock, none);
  const manifests = new ManifestStore({
    ttlSeconds: 60,
    regions: new Set(["a"]),
    frontCache,
    clock,
    now,
    trust: acceptUnsigned,
    sha256: systemSha256,
  });
  let lookups = 0;
  const find = async (key: string): Promise<never> => {
    lookups++;
    throw new AgaroseError("OBJECT_NOT_FOUND", `no object ${key}`);
  };
  let served = 0;
  let leases = 0;
  const heapBytes = retainedBytes();
  for (let second = 0; second < SECONDS; second++) {
    await clock.advance(1_000);
    const attacker = `203.0.113.${second % 8}`;
    // Clients that leave without a signal, or never read on: 12 MB of memory each second.
    for (let i = 0; i < 2; i++) {
      const lease = memory.tryAcquire({ version: `v${second}`, bytes: 1.5 * STRIPE_BYTES, client: attacker });
      if (lease) leases++;
    }
    // Keys that do not exist, all different and the longest there are, from every attacker and from new addresses.
    for (let i = 0; i < 20; i++) {
      const key = `${second}/${i}/${"x".repeat(900)}`;
      if (shares.admits(attacker, key)) tally.add(key);
      if (misses.isBlocked(attacker)) continue;
      await manifests.get(key, { find, waitUntil: () => {}, later: () => {} }).catch(() => {});
      await misses.spend(attacker);
      await misses.spend(`2001:db8:${second}:${i}/64`);
    }
    if (second % 2 === 0) tally.drain();
    if (second % 60 !== 0) continue;
    // A reader from elsewhere gets memory within the time that it may wait.
    const reading = memory.acquire({ version: "film", bytes: 1.5 * STRIPE_BYTES }, new AbortController().signal);
    const lease = await clock.run(reading);
    served++;
    lease.release();
  }
  expect(served).toBe(SECONDS / 60);
  expect(leases, "the fault fired: far more was asked for than there is").toBeGreaterThan(
    (10 * READ_BYTES_MAX) / (1.5 * STRIPE_BYTES),
  );
  expect(memory.expired).toBeGreaterThan(leases - 20);
  expect(lookups, "of 72,000 unknown keys").toBeLessThan(8 * (60 + clock.now() / 1_000) + 20);
  expect(misses.refused).toBeGreaterThan(0);
  expect(retainedBytes() - heapBytes).toBeLessThan(HEAP_BYTES_MAX);
});
