import { describe, expect, test } from "vitest";
import { CountingSignal } from "../../test/counting-signal.ts";
import { rejectionOf } from "../../test/errors.ts";
import { FakeNetwork, type Answer } from "../../test/fake-fetch.ts";
import { testPublisher } from "../../test/objects/publisher.ts";
import { sampleObject, toyHash } from "../../test/objects/sample-object.ts";
import { SimulatedClock } from "../../test/simulated-clock.ts";
import { findManifest, type FindManifestOptions } from "./manifest-source.ts";
import type { AgaroseError } from "../errors.ts";
import { acceptUnsigned, trustPublishers } from "../format/signature.ts";
import {
  encodeManifest,
  MANIFEST_BYTES_MAX,
  sealManifest,
  sealTombstone,
  type Manifest,
  type ManifestDraft,
} from "../format/manifest/index.ts";

const REGIONS = ["near", "middle", "far", "farther", "farthest"];
const { manifest } = await sampleObject({ k: 2, m: 1, bytes: 100, stripeBytes: 100, regions: REGIONS });
const draft = manifest as ManifestDraft;
const generations = {
  1: await sealManifest({ ...draft, generation: 1 }, toyHash),
  5: await sealManifest({ ...draft, generation: 5 }, toyHash),
};
const tombstone = await sealTombstone({ key: manifest.key, generation: 3, modified: manifest.modified });
const FOUND = { status: 200, body: encodeManifest(manifest), ms: 50 };
const ABSENT = { status: 404, ms: 50 };

describe("findManifest", () => {
  test("takes it from the nearest region without another request", async () => {
    const world = new World(() => FOUND);
    expect(await world.find()).toEqual(manifest);
    expect(world.network.requests.map(({ url }) => url)).toEqual([
      "https://near/bucket/manifests/photos/cat.jpg%21.json",
    ]);
    world.expectClean();
  });

  test("counts the 403 of a region as absent beside others that answer 404", async () => {
    const world = new World((host) => (host === "near" ? ABSENT : { status: 403, ms: 50 }));
    expect((await rejectionOf(world.find())).code).toBe("OBJECT_NOT_FOUND");
    world.expectClean();
  });

  test("fails with NO_SOURCE when all regions answer 403: a wrong policy looks the same as an absent object", async () => {
    const world = new World(() => ({ status: 403, ms: 50 }));
    expect(await rejectionOf(world.find())).toMatchObject({ code: "NO_SOURCE", details: { denied: 5, regions: 5 } });
    world.expectClean();
  });

  test.each(["hang", "refuse"] as const)(
    "fails with NO_SOURCE when the others answer 403 and one region does not answer: %s",
    async (answer) => {
      const world = new World((host) => (host === "middle" ? answer : { status: 403, ms: 50 }));
      expect(await rejectionOf(world.find())).toMatchObject({ code: "NO_SOURCE", details: { denied: 4, regions: 5 } });
      expect(world.network.hosts()).toContain("middle");
      world.expectClean();
    },
  );

  test("asks the next region at once when one fails", async () => {
    const world = new World((host) => (host === "near" || host === "middle" ? "refuse" : FOUND));
    expect(await world.find()).toEqual(manifest);
    expect(world.network.hosts()).toEqual(["near", "middle", "far"]);
    expect(world.clock.now()).toBe(50);
    world.expectClean();
  });

  test("asks the next region once one is late, and aborts the late one", async () => {
    const world = new World((host) => (host === "near" ? "hang" : FOUND));
    expect(await world.find()).toEqual(manifest);
    expect(world.network.hosts()).toEqual(["near", "middle"]);
    // A mean of 100 ms and three spreads of 10, then 50 ms for the answer.
    expect(world.clock.now()).toBe(180);
    expect(world.network.requests[0]!.init.signal!.aborted).toBe(true);
    world.expectClean();
  });

  const unusable: Record<string, [Answer, string]> = {
    "is truncated": [{ status: 200, body: encodeManifest(manifest).subarray(0, 99) }, "MANIFEST_INVALID"],
    "is empty": [{ status: 200 }, "MANIFEST_INVALID"],
    "is of another key": [{ status: 200, body: encodeManifest({ ...manifest, key: "other" }) }, "MANIFEST_INVALID"],
    "is of a newer format": [{ status: 200, body: encodeManifest({ ...manifest, agarose: 3 as 2 }) }, "MANIFEST_NEWER"],
    "is huge": [{ status: 200, body: new Uint8Array(MANIFEST_BYTES_MAX + 11) }, "MANIFEST_TOO_LARGE"],
    "has a code that is none": [{ status: 200, body: encodeManifest({ ...manifest, k: 0 }) }, "CODE_INVALID"],
    "points outside": [
      { status: 200, body: encodeManifest({ ...manifest, placement: ["near", "elsewhere", "outside"] }) },
      "REGION_UNKNOWN",
    ],
  };
  for (const [what, [answer, code]] of Object.entries(unusable)) {
    test(`passes over a copy that ${what}, and reports ${code} when all do`, async () => {
      const world = new World((host) => (host === "near" ? answer : FOUND));
      expect(await world.find()).toEqual(manifest);
      const all = new World((host) => (host === "near" ? answer : ABSENT));
      expect((await rejectionOf(all.find())).code).toBe(code);
    });
  }

  test("does not read a copy that is too large to its end", async () => {
    const world = new World((host) =>
      host === "near" ? { status: 200, body: new Uint8Array(2 * MANIFEST_BYTES_MAX) } : FOUND,
    );
    await world.find();
    expect(world.network.requests[0]!.bodyCancelled).toBe(true);
  });

  test("reads nothing of a copy that is announced as too large", async () => {
    const headers = { "content-length": String(MANIFEST_BYTES_MAX + 1) };
    const world = new World((host) =>
      host === "near" ? { status: 200, headers, body: new Uint8Array(1_000) } : FOUND,
    );
    await world.find();
    expect(world.network.requests[0]).toMatchObject({ bodyCancelled: true, partsRead: 0 });
  });

  test("says that there is no such object when all regions say so, asking all at once after the second", async () => {
    const world = new World(() => ABSENT);
    const error = await rejectionOf(world.find());
    expect(error).toMatchObject({ code: "OBJECT_NOT_FOUND", details: { absent: 5, regions: 5 } });
    expect(error.message).toMatch(/"photos\/cat\.jpg" \(5 of 5 regions say so\)/);
    expect(world.clock.now()).toBe(150);
    world.expectClean();
  });

  test("asks no third region while the second may know the object", async () => {
    const world = new World((host) => (host === "near" ? ABSENT : FOUND));
    expect(await world.find()).toEqual(manifest);
    expect(world.network.hosts()).toEqual(["near", "middle"]);
    world.expectClean();
  });

  test("finds an object that most regions have missed", async () => {
    const world = new World((host) => (host === "farthest" ? { ...FOUND, ms: 160 } : ABSENT));
    expect(await world.find()).toEqual(manifest);
    expect(world.clock.now()).toBe(260);
  });

  test("finds an object of before regions were added, though one of its two is down and the other late", async () => {
    const world = new World((host) => {
      if (host === "near") return "refuse";
      return host === "middle" ? { ...FOUND, ms: 900 } : ABSENT;
    });
    expect(await world.find()).toEqual(manifest);
    expect(world.network.hosts(), "the three that miss it have answered").toHaveLength(5);
    expect(world.clock.now()).toBe(900);
    world.expectClean();
  });

  test("does not let a region that hangs hold up the news that there is no such object", async () => {
    const world = new World((host) => (host === "far" ? "hang" : ABSENT));
    const error = await rejectionOf(world.find());
    expect(error).toMatchObject({ code: "OBJECT_NOT_FOUND", details: { absent: 4, regions: 5 } });
    // 50 ms for each of two, another 50 ms until three say so, and 200 + 3 x 10 ms for the two that could know better
    // then.
    expect(world.clock.now()).toBe(380);
    world.expectClean();
  });

  test("does not take two of five for a majority", async () => {
    const world = new World((host) => (host === "near" || host === "far" ? ABSENT : { status: 503 }));
    const error = await rejectionOf(world.find());
    expect(error.code).toBe("NO_SOURCE");
    expect(error.message).toMatch(/3 of 5 regions failed .*middle SOURCE_FAILED/);
    expect(error.details["failures"]).toHaveLength(5);
    world.expectClean();
  });

  describe("with generations", () => {
    const older = { ...FOUND, body: encodeManifest(generations[1]) };
    const newer = { ...FOUND, body: encodeManifest(generations[5]) };
    const removed = { ...FOUND, body: encodeManifest(tombstone) };

    test("does not go back: it ignores a region with an older one", async () => {
      const world = new World((host) => (host === "near" ? older : newer));
      expect(await world.find({ generationMin: 4 })).toEqual(generations[5]);
      expect(world.network.hosts()).toEqual(["near", "middle"]);
    });

    test("goes back when a majority of the regions has nothing newer: a put was rolled back", async () => {
      const world = new World((host) => (host === "farthest" ? "refuse" : older));
      expect(await world.find({ generationMin: 4 })).toEqual(generations[1]);
    });

    test("does not go back on the word of a minority", async () => {
      const world = new World((host) => (host === "near" || host === "middle" ? older : "refuse"));
      expect(await rejectionOf(world.find({ generationMin: 4 }))).toMatchObject({ code: "NO_SOURCE" });
    });

    test("takes a tombstone for the end of what is older: a region that slept does not bring the object back", async () => {
      const world = new World((host) => (host === "farthest" ? { ...older, ms: 120 } : removed));
      const error = await rejectionOf(world.find());
      expect(error).toMatchObject({ code: "OBJECT_NOT_FOUND", details: { generation: 3 } });
    });

    test("a region that missed the removal and one that hangs do not hold it up", async () => {
      const answers = new Map<string, Answer>([
        ["middle", { ...older, ms: 50 }],
        ["farthest", "hang"],
      ]);
      const world = new World((host) => answers.get(host) ?? removed);
      expect((await rejectionOf(world.find())).code).toBe("OBJECT_NOT_FOUND");
      expect(world.network.hosts()).toEqual(expect.arrayContaining(["middle", "farthest"]));
      expect(world.clock.now()).toBeLessThan(1_000);
      world.expectClean();
    });

    test("finds what was put again after a tombstone that a region kept", async () => {
      const world = new World((host) => (host === "near" ? removed : newer));
      expect(await world.find()).toEqual(generations[5]);
    });

    test("passes over a manifest that no trusted key has signed", async () => {
      const publisher = await testPublisher();
      const signed = await sealManifest(draft, toyHash, publisher.sign);
      const world = new World((host) => (host === "near" ? newer : { ...FOUND, body: encodeManifest(signed) }));
      const passedOver: string[] = [];
      const onUnusable = (region: string, { code }: AgaroseError): unknown => passedOver.push(`${region} ${code}`);
      const finding = world.start({ trust: trustPublishers([publisher.publicKey]), onUnusable });
      // Checking a signature leaves the microtask queue, so simulated time moves on beside it.
      const found = await Promise.race([finding, advance(world.clock)]);
      expect(found).toEqual(signed);
      expect(passedOver).toEqual(["near MANIFEST_UNTRUSTED"]);
    });
  });

  test("waits for a slow region before it says that there is no such object while another one is down", async () => {
    const answers: Record<string, Answer> = { near: "refuse", middle: { ...FOUND, ms: 900 } };
    const world = new World((host) => answers[host] ?? ABSENT);
    expect(await world.find()).toEqual(manifest);
  });

  test("fails after its time-out when no region answers", async () => {
    const world = new World(() => "hang");
    const error = await rejectionOf(world.find({ timeoutMs: 3000 }));
    expect(error).toMatchObject({ code: "NO_SOURCE" });
    expect(world.clock.now()).toBe(3000);
    expect(world.network.hosts()).toEqual(REGIONS);
    world.expectClean();
  });

  test("stops at an abort", async () => {
    const world = new World(() => "hang");
    const abort = new AbortController();
    const counting = new CountingSignal(abort.signal);
    const search = rejectionOf(world.start({ signal: abort.signal }));
    await world.clock.advance(150);
    abort.abort();
    expect((await search).code).toBe("ABORTED");
    expect(counting.listeners).toBe(0);
    world.expectClean();
  });

  test("makes no request if it is aborted already, for an invalid key, or without a region", async () => {
    const world = new World(() => FOUND);
    expect((await rejectionOf(world.find({ signal: AbortSignal.abort() }))).code).toBe("ABORTED");
    expect((await rejectionOf(world.find({}, ".."))).code).toBe("KEY_INVALID");
    expect((await rejectionOf(world.find({}, "x".repeat(2000)))).code).toBe("KEY_TOO_LONG");
    expect((await rejectionOf(world.find({ regions: [] }))).code).toBe("NO_SOURCE");
    expect(world.network.requests).toHaveLength(0);
  });
});

/** Moves simulated time on, in turns with real time. */
async function advance(clock: SimulatedClock): Promise<never> {
  for (let i = 0; i < 200; i++) {
    await clock.advance(10);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  throw new Error("nothing was found in 2,000 simulated milliseconds");
}

/** Five regions, given farthest first, that are believed to take 100, 125, 150, 175 and 200 ms. */
class World {
  readonly clock = new SimulatedClock();
  readonly network: FakeNetwork;

  constructor(answerOf: (host: string) => Answer) {
    this.network = new FakeNetwork(
      (url) => answerOf(new URL(url).hostname),
      (ms, signal) => (ms > 0 ? this.clock.sleep(ms, signal) : Promise.resolve()),
    );
  }

  start(options: Partial<FindManifestOptions> = {}, key = manifest.key): Promise<Manifest> {
    const regions = REGIONS.map((name, i) => ({
      name,
      url: `https://${name}/bucket`,
      latency: { meanMs: 100 + 25 * i, sdMs: 10 },
    }));
    return findManifest(key, {
      regions: regions.toReversed(),
      fetch: this.network.fetch,
      clock: this.clock,
      sha256: toyHash,
      trust: acceptUnsigned,
      ...options,
    });
  }

  find(options?: Partial<FindManifestOptions>, key?: string): Promise<Manifest> {
    return this.clock.run(this.start(options, key));
  }

  /** No timer is set any more, and what was still under way is aborted. */
  expectClean(): void {
    expect(this.clock.pendingTimers).toBe(0);
    for (const { init } of this.network.requests) expect(init.signal!.aborted).toBe(true);
  }
}
