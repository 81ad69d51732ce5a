import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { FakeNetwork, type Answer } from "../../test/fake-fetch.ts";
import { sampleObject, toyHash } from "../../test/objects/sample-object.ts";
import { SimulatedClock } from "../../test/simulated-clock.ts";
import { acceptUnsigned } from "../format/signature.ts";
import {
  encodeManifest,
  sealManifest,
  sealTombstone,
  type Manifest,
  type ManifestDraft,
} from "../format/manifest/index.ts";
import { readMajority, type MajorityRead, type MajorityReadOptions } from "./majority-read.ts";

const REGIONS = ["near", "middle", "far"];
const { manifest } = await sampleObject({ k: 2, m: 1, bytes: 100, stripeBytes: 100, regions: REGIONS });
const { key, modified } = manifest;
const draft = manifest as ManifestDraft;
const put = async (generation: number): Promise<Answer> => {
  const sealed = await sealManifest({ ...draft, generation, upload: String(generation).padStart(32, "0") }, toyHash);
  return { status: 200, body: encodeManifest(sealed), ms: 50 };
};
const removed = { status: 200, body: encodeManifest(await sealTombstone({ key, generation: 6, modified })), ms: 50 };
const [v4, v5, v6] = [await put(4), await put(5), await put(6)];
const ABSENT: Answer = { status: 404, ms: 50 };
const BROKEN: Answer = { status: 200, body: new TextEncoder().encode("{}"), ms: 50 };

type Answers = Readonly<Record<string, Answer>>;

/** Reads from regions that answer so, and checks that nothing is left behind. */
async function read(answers: readonly Answer[] | Answers, options: Partial<MajorityReadOptions> = {}) {
  const named: Answers = Array.isArray(answers)
    ? Object.fromEntries(REGIONS.map((name, index) => [name, answers[index]!]))
    : (answers as Answers);
  const clock = new SimulatedClock();
  const network = new FakeNetwork(
    (url) => named[new URL(url).hostname]!,
    (ms, signal) => (ms > 0 ? clock.sleep(ms, signal) : Promise.resolve()),
  );
  const regions = Object.keys(named).map((name, index) => {
    return { name, url: `https://${name}/bucket`, latency: { meanMs: 100 + 25 * index, sdMs: 10 } };
  });
  const checks = { sha256: toyHash, trust: acceptUnsigned, names: [...REGIONS, ...Object.keys(named)] };
  const reading = readMajority(key, { regions, fetch: network.fetch, clock, ...checks, ...options });
  const outcome = await clock.run(reading.catch((error: unknown) => rejectionOf(Promise.reject(error))));
  expect(clock.pendingTimers).toBe(0);
  for (const { init } of network.requests) expect(init.signal!.aborted).toBe(true);
  const conditions = network.requests.map(({ init }) => init.headers?.["if-none-match"]);
  return { outcome, hosts: network.hosts(), conditions, ms: clock.now() };
}

test("asks as many regions as a majority has, at once, and no more where they agree", async () => {
  const { outcome, hosts, ms } = await read([v5, v5, v5]);
  expect(outcome).toMatchObject({ record: { generation: 5 }, behind: [] });
  expect(hosts).toEqual(["near", "middle"]);
  expect(ms).toBe(50);
});

test("a region that has answered in time is not hedged while another one is awaited", async () => {
  const { outcome, hosts, ms } = await read([v5, { ...(v5 as object), status: 200, ms: 140 }, v5]);
  expect(outcome).toMatchObject({ record: { generation: 5 } });
  // The middle one is late at 155 ms, the near one would have been at 130.
  expect(hosts).toEqual(["near", "middle"]);
  expect(ms).toBe(140);
});

test("returns what a majority holds though the nearest region missed it, and names that region", async () => {
  const { outcome, hosts } = await read([v4, v5, v5]);
  expect(outcome).toMatchObject({ record: { generation: 5 }, behind: ["near"] });
  expect(hosts).toEqual(["near", "middle", "far"]);
});

test("a tombstone of a majority counts, whatever the nearest region still has", async () => {
  expect((await read([v5, removed, removed])).outcome).toMatchObject({ record: { deleted: true }, behind: ["near"] });
});

test("a version that only one of all regions holds was not acknowledged, so the one before is read", async () => {
  expect((await read([v6, v5, v5])).outcome).toMatchObject({ record: { generation: 5 }, behind: [] });
  expect((await read([v6, ABSENT, ABSENT])).outcome).toEqual({ record: undefined, behind: [] });
});

test.each(["refuse", "hang"] as const)(
  "while one region does not answer (%s) and the others disagree, it says that nobody can know, with both numbers",
  async (silent) => {
    const { outcome, ms } = await read([v6, v5, silent]);
    expect(outcome).toMatchObject({
      code: "READ_UNCERTAIN",
      details: {
        generation: 6,
        holders: 1,
        needed: 2,
        answered: 2,
        behind: ["middle"],
        regions: ["far"],
        unusable: [],
      },
    });
    expect(ms).toBeLessThan(1_000);
  },
);

test.each([
  ["three versions of which none is in a majority", [v6, v5, v4]],
  ["a version, its predecessor and a damaged copy", [v6, v5, BROKEN]],
])("the newest is uncertain where all regions answer: %s", async (_, answers) => {
  expect((await read(answers)).outcome).toMatchObject({
    code: "READ_UNCERTAIN",
    details: { generation: 6, holders: 1 },
  });
});

test.each(["refuse", "hang"] as const)(
  "fails with both numbers, and names the way to read all the same, when no majority answers: %s",
  async (silent) => {
    const { outcome } = await read([v5, silent, silent]);
    expect(outcome).toMatchObject({
      code: "NO_QUORUM",
      details: { answered: 1, needed: 2, regions: ["middle", "far"] },
    });
    expect((outcome as Error).message).toContain("--consistency eventual");
  },
);

test("two of three that refuse end the read once the third has answered", async () => {
  expect((await read([v5, "refuse", "refuse"])).ms).toBeLessThan(100);
});

test("a region that hangs delays a read by its expected time only", async () => {
  const { outcome, ms } = await read(["hang", v5, v5]);
  expect(outcome).toMatchObject({ record: { generation: 5 } });
  expect(ms).toBe(100 + 3 * 10 + 50);
});

test("when what replaces a region that hangs fails, the next one is asked at once", async () => {
  const answers = { near: "hang", middle: v5, far: v5, failing: { status: 503, ms: 50 }, last: v5 } as const;
  const { outcome, hosts, ms } = await read(answers);
  expect(outcome).toMatchObject({ record: { generation: 5 } });
  expect(hosts).toEqual(["near", "middle", "far", "failing", "last"]);
  // The near one is late at 130 ms, the one that replaces it fails at 180.
  expect(ms).toBe(230);
});

test("one damaged copy beside a majority does no harm, and is reported; damaged copies alone are the error", async () => {
  const unusable: string[] = [];
  const onUnusable = (region: string): void => void unusable.push(region);
  expect((await read([BROKEN, v5, v5], { onUnusable })).outcome).toMatchObject({ record: { generation: 5 } });
  expect(unusable).toEqual(["near"]);
  expect((await read([BROKEN, BROKEN, BROKEN])).outcome).toMatchObject({ code: "MANIFEST_INVALID" });
});

test("an object that all regions deny is not called absent", async () => {
  const denied: Answer = { status: 403, ms: 50 };
  expect((await read([denied, denied, denied])).outcome).toMatchObject({ code: "NO_SOURCE", details: { denied: 2 } });
  expect((await read([denied, ABSENT, ABSENT])).outcome).toMatchObject({ record: undefined });
});

test("a denial that arrives with the one that decided leaves no rejection that nobody handles", async () => {
  // The third region is requested because the first is late, and all three answer at the same time.
  const denied = [200, 200, 200 - 130].map((ms): Answer => ({ status: 403, ms }));
  const { outcome, hosts } = await read(denied);
  expect(outcome).toMatchObject({ code: "NO_SOURCE" });
  expect(hosts).toEqual(["near", "middle", "far"]);
  // A run in which a rejection stays unhandled until here fails, and a PoP on Node would have ended.
  await new Promise((resolve) => setTimeout(resolve));
});

test("shows the first manifest before a majority has confirmed it, and how long each region took", async () => {
  const seen: unknown[] = [];
  const early: Answer = { ...(v4 as object), status: 200, ms: 10 };
  const { outcome } = await read([early, v5, v5], {
    onFirst: ({ generation }) => seen.push(generation),
    onRequest: (region, ms) => seen.push(region, ms),
  });
  expect(outcome).toMatchObject({ record: { generation: 5 } });
  expect(seen).toEqual(["near", 10, 4, "middle", 50, "far", 50]);
});

test("of five regions, three that agree settle it, however the others differ", async () => {
  const answers = { a: v6, b: v4, c: v5, d: v5, e: v5 };
  expect((await read(answers)).outcome).toMatchObject({ record: { generation: 5 }, behind: ["b"] });
  expect((await read({ ...answers, e: "hang" })).outcome).toMatchObject({ code: "READ_UNCERTAIN" });
});

test("an abort of the caller ends it", async () => {
  const signal = AbortSignal.abort();
  expect((await read([v5, v5, v5], { signal })).outcome).toMatchObject({ code: "ABORTED" });
});

test("a region that is asked because the others disagree gets its expected time, however late that is", async () => {
  const after = (answer: Answer, ms: number): Answer => ({ ...(answer as object), status: 200, ms });
  // Of five regions, two have missed the removal, and one more is asked after each answer.
  const answers = { a: after(v5, 110), b: after(removed, 110), c: after(v5, 145), d: after(removed, 140), e: removed };
  for (const ms of [50, 150, 200]) {
    const { outcome, hosts } = await read({ ...answers, e: after(removed, ms) });
    expect(outcome, `${ms} ms`).toMatchObject({ record: { deleted: true } });
    expect(hosts).toEqual(["a", "b", "c", "d", "e"]);
  }
  // Its expected time is 230 ms.
  const late = await read({ ...answers, e: after(removed, 300) });
  expect(late.outcome).toMatchObject({ code: "READ_UNCERTAIN" });
});

describe("a manifest that the caller knows", () => {
  const tags = new Map(REGIONS.map((name) => [`https://${name}/bucket`, `"${name} 5"`]));
  const known = { manifest: { ...manifest, generation: 5, upload: "5".padStart(32, "0") }, tags };
  const SAME: Answer = { status: 304, headers: { etag: '"anything"' }, ms: 50 };

  test("comes once from each region, which gives it a tag, and then only as a 304", async () => {
    const tagged = (name: string): Answer => ({ ...(v5 as object), status: 200, headers: { etag: `"${name} 5"` } });
    const first = (await read([tagged("near"), tagged("middle"), v5])).outcome as MajorityRead;
    expect(first.tags).toEqual(new Map([...tags].slice(0, 2)));
    const again = { manifest: first.record as Manifest, tags: first.tags! };
    const { outcome, conditions } = await read([SAME, SAME, v5], { known: again });
    expect(outcome).toEqual({ record: first.record, behind: [], tags: first.tags });
    expect(conditions).toEqual(['"near 5"', '"middle 5"']);
  });

  test("is replaced by a newer one that a majority has, and the region that still has it is behind", async () => {
    const newer: Answer = { ...(v6 as object), status: 200, headers: { etag: '"6"' } };
    const { outcome } = await read([SAME, newer, newer], { known });
    expect(outcome).toMatchObject({ record: { generation: 6 }, behind: ["near"] });
    const others = [...tags.keys()].slice(1);
    expect((outcome as MajorityRead).tags).toEqual(new Map(others.map((url) => [url, '"6"'])));
  });

  test("is not taken from a region that has never sent it, and a weak or an empty tag is none", async () => {
    const [weak, empty] = ['W/"5"', '""'].map((etag) => ({ ...(v5 as object), status: 200, headers: { etag } }));
    const { outcome, conditions } = await read([SAME, weak!, empty!], { known: { ...known, tags: new Map() } });
    expect(outcome).toMatchObject({ record: { generation: 5 }, behind: [], tags: new Map() });
    expect(conditions).toEqual([undefined, undefined, undefined]);
  });

  test("is gone where a majority has removed it", async () => {
    expect((await read([SAME, removed, removed], { known })).outcome).toMatchObject({ record: { deleted: true } });
    expect((await read([SAME, ABSENT, ABSENT], { known })).outcome).toEqual({ record: undefined, behind: [] });
  });
});
