import { AgaroseError, systemClock, systemSha256 } from "@agarose/core";
import { acceptUnsigned, encodeHashes, sealManifest, type Manifest, type ManifestDraft } from "@agarose/core/format";
import { describe, expect, test, vi } from "vitest";
import type { TaggedManifest } from "@agarose/core/sources";
import { FrontCache } from "./front-cache.ts";
import { ManifestStore, type Consistency } from "./manifest-store.ts";

const manifest = (key: string, generation = 1): Promise<Manifest> => sealManifest(draft(key, generation), systemSha256);

const draft = (key: string, generation: number): ManifestDraft => ({
  key,
  generation,
  upload: "0".repeat(32),
  blockBytes: 1024,
  bytes: 10,
  contentType: "text/plain",
  headers: {},
  modified: "2026-01-01T00:00:00Z",
  k: 1,
  m: 1,
  stripeBytes: 1024,
  sha256: "0".repeat(64),
  placement: ["a", "b"],
  hashes: [encodeHashes([new Uint8Array(32), new Uint8Array(32)])],
});

/** A Cache API that several isolates share. */
function fakeCache(): (() => Cache) & { evictAll: () => void } {
  const entries = new Map<string, Response>();
  const cache = {
    match: async (url: string) => entries.get(url)?.clone(),
    put: async (url: string, response: Response) => void entries.set(url, response),
  };
  return Object.assign(() => cache as unknown as Cache, { evictAll: () => entries.clear() });
}

const LIMITED = new AgaroseError("RATE_LIMITED", "too many keys that do not exist");

const readManifest = async (key: string): Promise<Manifest> => manifest(key);

function isolate(open: () => Cache, time: { ms: number }, ttlSeconds = 60) {
  const store = new ManifestStore({
    ttlSeconds,
    regions: new Set(["a", "b"]),
    frontCache: new FrontCache({ pop: "fra", host: () => "fra.example" }, systemClock, open),
    clock: systemClock,
    now: () => time.ms,
    trust: acceptUnsigned,
    sha256: systemSha256,
  });
  const background: Promise<unknown>[] = [];
  const lookups: string[] = [];
  const generationsMin: number[] = [];
  const knownGenerations: (number | undefined)[] = [];
  let isMajority = true;
  let postponed: (() => Promise<unknown>)[] | undefined;
  let answer: (key: string, consistency: Consistency) => Promise<Manifest> = readManifest;
  const context = {
    async find(key: string, generationMin: number, consistency: Consistency, known?: TaggedManifest) {
      lookups.push(`${consistency} ${key}`);
      generationsMin.push(generationMin);
      knownGenerations.push(known?.manifest.generation);
      const found = await answer(key, consistency);
      const isConfirmed = consistency === "strong" && isMajority;
      return {
        manifest: found,
        isConfirmed,
        ...(isConfirmed && { tags: new Map([["https://a", `"${found.generation}"`]]) }),
      };
    },
    waitUntil: (promise: Promise<unknown>) => void background.push(promise),
    later(task: () => Promise<unknown>) {
      if (postponed) postponed.push(task);
      else background.push(task().catch(() => {}));
    },
  };
  return {
    lookups,
    generationsMin,
    knownGenerations,
    get: (key: string) => store.get(key, context),
    /** The same by a client that may look no more keys up. */
    getLimited: (key: string) => store.get(key, { ...context, find: () => Promise.reject(LIMITED) }),
    refetch: (key: string) => store.refetch(key, context),
    answerWith: (find: (key: string) => Promise<Manifest>) => void (answer = find),
    answerByConsistency: (find: typeof answer) => void (answer = find),
    /** From now on no majority answers, and the first sound manifest has to do. */
    loseMajority: () => void (isMajority = false),
    settled: () => Promise.all(background),
    /** From now on no task runs that may run later, … */
    postpone: () => void (postponed = []),
    /** … until now. */
    runPostponed: async () => {
      for (const task of postponed!) await task().catch(() => {});
    },
    forget: (key: string) => store.forget((other) => other === key, [key]),
  };
}

const noCache = (): Cache => {
  throw new Error("no Cache API here");
};

test("a manifest is looked up and confirmed once within its time to live, and renewed by a majority after it", async () => {
  const time = { ms: 0 };
  const { get, lookups, settled } = isolate(noCache, time);
  await get("x");
  await settled();
  time.ms = 59_999;
  await get("x");
  expect(lookups).toEqual(["eventual x", "strong x"]);
  time.ms = 60_000;
  await get("x");
  expect(lookups).toEqual(["eventual x", "strong x", "strong x"]);
});

test.each([
  ["alone", noCache],
  ["with a Cache API", fakeCache()],
])("regions that have confirmed a manifest are asked whether they still have it, %s", async (_name, cache) => {
  const time = { ms: 0 };
  const { get, knownGenerations, answerWith, loseMajority, settled } = isolate(cache, time);
  await get("x");
  await settled();
  answerWith((key) => manifest(key, 2));
  for (const ms of [60_000, 120_000]) {
    time.ms = ms;
    expect((await get("x")).generation).toBe(2);
  }
  expect(knownGenerations).toEqual([undefined, undefined, 1, 2]);
  loseMajority();
  for (const ms of [180_000, 200_000]) {
    time.ms = ms;
    await get("x");
    await settled();
  }
  expect(knownGenerations.slice(4, 6), "no region has confirmed the last one").toEqual([2, undefined]);
});

test("from half of its time on, a read renews a manifest beside itself, once, and no read waits for that", async () => {
  const time = { ms: 0 };
  const { get, lookups, answerWith, settled } = isolate(noCache, time);
  await get("x");
  await settled();
  time.ms = 29_999;
  await get("x");
  expect(lookups).toHaveLength(2);
  const late = Promise.withResolvers<Manifest>();
  answerWith(() => late.promise);
  time.ms = 30_000;
  for (let i = 0; i < 3; i++) expect((await get("x")).generation).toBe(1);
  await vi.waitFor(() => expect(lookups.slice(2)).toEqual(["strong x"]));
  late.resolve(await manifest("x", 2));
  await settled();
  time.ms = 59_000;
  expect((await get("x")).generation).toBe(2);
  expect(lookups, "it is young again").toHaveLength(3);
});

test.each(["fails", "finds no majority"])(
  "an early renewal that %s leaves a manifest its time, and no more",
  async (how) => {
    const time = { ms: 0 };
    const { get, lookups, answerWith, loseMajority, settled } = isolate(noCache, time);
    await get("x");
    await settled();
    if (how === "fails") answerWith(() => Promise.reject(new AgaroseError("NO_SOURCE", "no region answers")));
    else loseMajority();
    time.ms = 55_000;
    await get("x");
    await settled();
    const asked = lookups.length;
    time.ms = 59_999;
    await get("x");
    expect(lookups, "not again at once").toHaveLength(asked);
    answerWith(async (key) => manifest(key, 2));
    time.ms = 60_000;
    expect((await get("x")).generation).toBe(2);
  },
);

test("an isolate renews early by what another one has renewed", async () => {
  const time = { ms: 0 };
  const open = fakeCache();
  const [first, second] = [isolate(open, time), isolate(open, time)];
  for (const one of [first, second]) {
    await one.get("x");
    await one.settled();
  }
  const before = second.lookups.length;
  time.ms = 40_000;
  for (const one of [first, second]) {
    await one.get("x");
    await one.settled();
  }
  expect(first.lookups.at(-1)).toBe("strong x");
  expect(second.lookups).toHaveLength(before);
  time.ms = 69_000;
  second.answerWith(() => Promise.reject(new AgaroseError("INTERNAL", "it must not ask")));
  expect((await second.get("x")).key).toBe("x");
});

test("a look-up that died with its invocation does not keep a key from being renewed", async () => {
  vi.useFakeTimers();
  try {
    const time = { ms: 0 };
    const { get, answerWith } = isolate(noCache, time);
    await get("x");
    answerWith(() => new Promise(() => {}));
    time.ms = 60_000;
    const waiting = get("x");
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await waiting).generation).toBe(1);
    answerWith((key) => manifest(key, 2));
    await vi.advanceTimersByTimeAsync(9_000);
    expect((await get("x")).generation).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

test("what a majority says takes the place of what the first region said, a removal too", async () => {
  for (const says of ["newer", "removed"]) {
    const { get, answerByConsistency, settled } = isolate(fakeCache(), { ms: 0 });
    answerByConsistency(async (key, consistency) => {
      if (consistency === "eventual") return manifest(key, 1);
      if (says === "newer") return manifest(key, 2);
      throw new AgaroseError("OBJECT_NOT_FOUND", "a tombstone", { generation: 2 });
    });
    expect((await get("x")).generation).toBe(1);
    await settled();
    if (says === "newer") expect((await get("x")).generation).toBe(2);
    else await expect(get("x")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  }
});

test("what was found without a majority is held for ten seconds, also where one was asked for", async () => {
  const time = { ms: 0 };
  const { get, lookups, loseMajority, settled } = isolate(noCache, time);
  loseMajority();
  await get("x");
  await settled();
  time.ms = 10_000;
  await get("x");
  time.ms = 20_000;
  await get("x");
  expect(lookups).toEqual(["eventual x", "strong x", "strong x", "strong x"]);
});

test("what no majority could confirm is used for ten seconds, and then a read waits for one", async () => {
  const time = { ms: 0 };
  const { get, lookups, answerByConsistency, settled } = isolate(noCache, time);
  answerByConsistency((key, consistency) =>
    consistency === "eventual" ? manifest(key) : Promise.reject(new AgaroseError("NO_SOURCE", "no majority")),
  );
  await get("x");
  await settled();
  time.ms = 9_999;
  await get("x");
  expect(lookups).toEqual(["eventual x", "strong x"]);
  answerByConsistency((key) => manifest(key, 2));
  time.ms = 10_000;
  expect((await get("x")).generation).toBe(2);
});

test("concurrent misses share one lookup, also when it fails, and a failure is not remembered", async () => {
  const { get, lookups, answerWith } = isolate(noCache, { ms: 0 });
  const refused = new AgaroseError("NO_SOURCE", "no region answers");
  answerWith(() => Promise.reject(refused));
  const results = await Promise.allSettled([get("x"), get("x"), get("x")]);
  expect(results.map((result) => result.status === "rejected" && result.reason)).toEqual([refused, refused, refused]);
  expect(lookups).toEqual(["eventual x"]);
  answerWith(async (key) => manifest(key));
  expect((await get("x")).key).toBe("x");
});

test("another isolate finds the manifest in the Cache API, and it does not live longer there", async () => {
  const time = { ms: 0 };
  const open = fakeCache();
  const first = isolate(open, time);
  await first.get("x");
  await first.settled();
  time.ms = 50_000;
  const second = isolate(open, time);
  expect((await second.get("x")).key).toBe("x");
  expect(second.lookups).toEqual([]);
  time.ms = 61_000;
  await second.get("x");
  expect(second.lookups).toEqual(["strong x"]);
});

test("a manifest is shared with other isolates when no read waits any more, and not if it was forgotten by then", async () => {
  const cache = fakeCache();
  const time = { ms: 0 };
  const [one, other] = [isolate(cache, time), isolate(cache, time)];
  one.postpone();
  for (const key of ["x", "y"]) await one.get(key);
  await one.forget("y");
  // Nor is it found once more.
  const down = new AgaroseError("NO_SOURCE", "no region answers");
  one.answerWith((key) => (key === "y" ? Promise.reject(down) : readManifest(key)));
  await one.runPostponed();
  for (const key of ["x", "y"]) await other.get(key);
  await other.settled();
  expect(one.lookups).toEqual(["eventual x", "eventual y", "strong x", "strong y"]);
  expect(other.lookups).toEqual(["eventual y", "strong y"]);
});

test("a refetch asks the buckets, and later reads use their answer", async () => {
  const { get, refetch, answerWith } = isolate(noCache, { ms: 0 });
  await get("x");
  answerWith(async (key) => manifest(key, 2));
  expect((await get("x")).generation).toBe(1);
  expect((await refetch("x")).generation).toBe(2);
  expect((await get("x")).generation).toBe(2);
});

test("an expired manifest is used while no bucket answers, who are asked again after five seconds", async () => {
  const time = { ms: 0 };
  const { get, lookups, answerWith } = isolate(noCache, time);
  await get("x");
  time.ms = 60_000;
  answerWith(() => Promise.reject(new AgaroseError("NO_SOURCE", "no region answers")));
  expect((await get("x")).key).toBe("x");
  const asked = lookups.length;
  time.ms += 4_999;
  await get("x");
  expect(lookups).toHaveLength(asked);
  time.ms += 1;
  answerWith(async (key) => manifest(key, 2));
  expect((await get("x")).generation).toBe(2);
});

test("an expired manifest of another isolate serves the same purpose", async () => {
  const time = { ms: 0 };
  const open = fakeCache();
  const first = isolate(open, time);
  await first.get("x");
  await first.settled();
  time.ms = 3_600_000;
  const second = isolate(open, time);
  second.answerWith(() => Promise.reject(new AgaroseError("READ_TIMEOUT", "regions hang")));
  expect((await second.get("x")).key).toBe("x");
});

test.each(["OBJECT_NOT_FOUND", "MANIFEST_NEWER"] as const)("an expired manifest does not cover up %s", async (code) => {
  const time = { ms: 0 };
  const { get, answerWith } = isolate(noCache, time);
  await get("x");
  time.ms = 60_000;
  answerWith(() => Promise.reject(new AgaroseError(code, "an answer")));
  await expect(get("x")).rejects.toMatchObject({ code });
});

test("a refetch that no bucket answers fails no read that has an expired manifest", async () => {
  const time = { ms: 0 };
  const { get, refetch, answerWith } = isolate(noCache, time);
  await get("x");
  time.ms = 60_000;
  answerWith(() => Promise.reject(new AgaroseError("READ_TIMEOUT", "regions hang")));
  const [refetched, read] = await Promise.allSettled([refetch("x"), get("x")]);
  expect(refetched).toMatchObject({ status: "rejected", reason: { code: "READ_TIMEOUT" } });
  expect(read).toMatchObject({ status: "fulfilled", value: { key: "x" } });
});

describe("a client that may look no more keys up", () => {
  test("does not fail the reads of others that join its look-up", async () => {
    const { get, getLimited, lookups } = isolate(fakeCache(), { ms: 0 });
    const [limited, ...others] = await Promise.allSettled([getLimited("x"), get("x"), get("x")]);
    expect(limited).toMatchObject({ status: "rejected", reason: { code: "RATE_LIMITED" } });
    for (const other of others) expect(other).toMatchObject({ status: "fulfilled", value: { key: "x" } });
    expect(lookups.length).toBeGreaterThan(0);
  });

  test("reads what this isolate knows, and keeps no one else from renewing it", async () => {
    const time = { ms: 0 };
    const { get, getLimited, answerWith } = isolate(noCache, time);
    await get("x");
    answerWith(async (key) => manifest(key, 2));
    time.ms = 60_000;
    expect((await getLimited("x")).generation).toBe(1);
    expect((await get("x")).generation).toBe(2);
  });
});

test("a read does not wait for buckets that hang longer than a moment when it has an expired manifest", async () => {
  const time = { ms: 0 };
  const { get, answerWith } = isolate(noCache, time);
  await get("x");
  time.ms = 60_000;
  answerWith(() => new Promise(() => {}));
  expect((await get("x")).key).toBe("x");
});

test("with a time to live of 0 every request asks the buckets", async () => {
  const { get, lookups } = isolate(fakeCache(), { ms: 5 }, 0);
  await get("x");
  await get("x");
  expect(lookups).toHaveLength(2);
});

test("memory is bounded: the manifests used longest ago go first", async () => {
  const { get, lookups, answerWith, settled } = isolate(noCache, { ms: 0 });
  // About 60 kB each, so that 200 fit and 300 do not.
  const headers = { "x-amz-meta-long": "x".repeat(60_000) };
  answerWith(async (key) => ({ ...(await manifest(key)), headers }));
  const many = Array.from({ length: 200 }, (_, i) => `many/${i}`);
  for (const key of ["a", "b", ...many, "a", ...many.slice(0, 100).map((other) => `${other}/more`)]) {
    await get(key);
    await settled();
  }
  const first = (): string[] => lookups.filter((lookup) => lookup.startsWith("eventual"));
  expect(first()).toHaveLength(302);
  await get("a");
  expect(first()).toHaveLength(302);
  await get("b");
  expect(first().slice(302)).toEqual(["eventual b"]);
});

test("what is remembered of keys without an object is bounded: those asked for longest ago go first", async () => {
  const one = isolate(noCache, { ms: 0 });
  one.answerWith(async () => {
    throw new AgaroseError("OBJECT_NOT_FOUND", "no such object");
  });
  const keys = Array.from({ length: 3_000 }, (_, i) => `${"x".repeat(900)}/${i}`);
  for (const key of keys) await expect(one.get(key)).rejects.toThrow("no such object");
  expect(one.lookups).toHaveLength(keys.length);
  await expect(one.get(keys.at(-1)!)).rejects.toThrow("a moment ago");
  expect(one.lookups).toHaveLength(keys.length);
  // 2 MiB hold about 1,100 of them.
  await expect(one.get(keys[0]!)).rejects.toThrow("no such object");
  expect(one.lookups).toHaveLength(keys.length + 1);
});

test("a key that is none is refused before anything is asked", async () => {
  const { get, lookups } = isolate(noCache, { ms: 0 });
  await expect(get("..")).rejects.toMatchObject({ code: "KEY_INVALID" });
  expect(lookups).toEqual([]);
});

describe("does not go back behind the newest generation seen", () => {
  const HOUR_MS = 3_600_000;
  const removed = async (): Promise<Manifest> => {
    throw new AgaroseError("OBJECT_NOT_FOUND", "a tombstone", { generation: 3 });
  };

  test("for what another isolate, which had not seen it, put into the Cache API", async () => {
    const time = { ms: 0 };
    const open = fakeCache();
    const [seen, fresh] = [isolate(open, time), isolate(open, time)];
    seen.answerWith((key) => manifest(key, 2));
    await seen.get("a");
    await seen.settled();
    open.evictAll();
    time.ms = HOUR_MS;
    // It asks a bucket that was rolled back, and knows nothing better.
    expect((await fresh.get("a")).generation).toBe(1);
    await fresh.settled();
    expect((await seen.get("a")).generation).toBe(2);
    // The first look, the majority that confirms it, and the renewal.
    expect(seen.generationsMin).toEqual([0, 2, 2]);
  });

  test("when the isolate starts again: the Cache API has kept it beyond its time to live", async () => {
    const time = { ms: 0 };
    const open = fakeCache();
    const before = isolate(open, time);
    before.answerWith((key) => manifest(key, 2));
    await before.get("a");
    await before.settled();
    time.ms = HOUR_MS;
    const restarted = isolate(open, time);
    restarted.answerWith((key) => manifest(key, 2));
    await restarted.get("a");
    expect(restarted.generationsMin).toEqual([2]);
  });

  test("when a slower lookup comes back from a region that knew less", async () => {
    const one = isolate(noCache, { ms: 0 });
    const slow = Promise.withResolvers<Manifest>();
    one.answerWith(() => slow.promise);
    const first = one.refetch("a");
    one.answerWith((key) => manifest(key, 2));
    expect((await one.refetch("a")).generation).toBe(2);
    slow.resolve(await manifest("a", 1));
    expect((await first).generation).toBe(2);
    expect((await one.get("a")).generation).toBe(2);
  });

  test.each(["replaced", "removed"])("when a slower lookup fails, after the object was %s", async (how) => {
    const time = { ms: 0 };
    const one = isolate(noCache, time);
    await one.get("a");
    await one.settled();
    time.ms = HOUR_MS;
    const slow = Promise.withResolvers<Manifest>();
    one.answerWith(() => slow.promise);
    const first = one.get("a").catch(({ code }: AgaroseError) => code);
    await vi.waitFor(() => expect(one.lookups).toHaveLength(3));
    one.answerWith(how === "removed" ? removed : (key) => manifest(key, 2));
    await one.refetch("a").catch(() => {});
    slow.reject(new AgaroseError("READ_TIMEOUT", "no region answers"));
    const answers = [await first, await one.get("a").catch(({ code }: AgaroseError) => code)];
    const shown = answers.map((answer) => (typeof answer === "string" ? answer : answer.generation));
    expect(shown).toEqual(how === "removed" ? ["OBJECT_NOT_FOUND", "OBJECT_NOT_FOUND"] : [2, 2]);
  });

  test("unless the buckets say so, by a majority", async () => {
    const one = isolate(noCache, { ms: 0 });
    one.answerWith((key) => manifest(key, 2));
    await one.get("a");
    one.answerWith((key) => manifest(key, 1));
    expect((await one.refetch("a")).generation).toBe(1);
    expect(one.generationsMin).toEqual([0, 2, 2]);
  });

  test("of a removed object, in memory and after a restart, and not while buckets do not answer", async () => {
    const time = { ms: 0 };
    const open = fakeCache();
    const before = isolate(open, time);
    before.answerWith((key) => manifest(key, 2));
    await before.get("a");
    before.answerWith(removed);
    time.ms = HOUR_MS;
    await expect(before.get("a")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    await before.settled();
    const restarted = isolate(open, time);
    time.ms += HOUR_MS;
    for (const one of [before, restarted]) {
      one.answerWith(async () => {
        throw new AgaroseError("NO_SOURCE", "all are down");
      });
      await expect(one.get("a")).rejects.toMatchObject({ code: "NO_SOURCE" });
      expect(one.generationsMin.at(-1)).toBe(3);
    }
    restarted.answerWith((key) => manifest(key, 4));
    expect((await restarted.get("a")).generation, "it may be put again").toBe(4);
  });
});
