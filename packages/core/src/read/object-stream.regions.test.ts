import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FakeNetwork, type Answer } from "../../test/fake-fetch.ts";
import { collect } from "../../test/read-world.ts";
import { referenceCodec } from "../../test/objects/reference-codec.ts";
import { sampleObject, toyHash } from "../../test/objects/sample-object.ts";
import { SimulatedClock } from "../../test/simulated-clock.ts";
import { stripeCount } from "../format/manifest/index.ts";
import type { FetchInit } from "../ports.ts";
import { openRead } from "./object-stream.ts";
import { RegionSource } from "../sources/region-source.ts";

/** Ten stripes of 4 + 2 chunks in six regions. */
const object = await sampleObject({ k: 4, m: 2, bytes: 1000, stripeBytes: 100 });
const stripes = Array.from({ length: stripeCount(object.manifest) }, (_, stripe) => stripe);
const chunks = object.manifest.placement.map(
  (_, chunk) => new Uint8Array(stripes.flatMap((stripe) => [...object.shard(stripe, chunk)])),
);

/** The course of one GET. */
type Fate = { readonly ms: number; readonly fault: "none" | "refuse" | "503" | "cut" | "short" | "flip"; at: number };

test("a read of many stripes asks every bucket once while all goes well", async () => {
  const { network, read } = setUp(() => ({ ms: 50, fault: "none", at: 0 }));
  expect(await read(100, 0)).toEqual(object.bytes);
  expect(network.requests).toHaveLength(4);
  expect(network.requests.every(({ init }) => init.headers!["range"] === undefined)).toBe(true);
});

test("a read survives any faults of the GETs to two regions, and every GET ends (property)", async () => {
  const fate = fc.record<Fate>({
    ms: fc.integer({ min: 1, max: 300 }),
    fault: fc.constantFrom("none", "refuse", "503", "cut", "short", "flip"),
    at: fc.nat(260),
  });
  let faults = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 2, maxLength: 2 }),
      fc.array(fate, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 100, max: 800 }),
      fc.integer({ min: 0, max: 2 }),
      async (lossy, fates, windowBytes, delta) => {
        let asked = 0;
        const { network, read } = setUp((chunk) => {
          const next = fates[asked++ % fates.length]!;
          if (!lossy.includes(chunk)) return { ...next, fault: "none" };
          if (next.fault !== "none") faults++;
          return next;
        });
        expect(await read(windowBytes, delta)).toEqual(object.bytes);
        for (const { init, partsRead, parts } of network.requests) {
          expect(init.signal!.aborted || partsRead === parts).toBe(true);
        }
      },
    ),
    { numRuns: 200 },
  );
  expect(faults).toBeGreaterThan(100);
});

function setUp(fateOf: (chunk: number) => Fate) {
  const clock = new SimulatedClock();
  const network = new FakeNetwork(
    (url, init) => {
      const chunk = Number(url.split("/").at(-1));
      return answer(chunks[chunk]!, init, fateOf(chunk));
    },
    (ms, signal) => clock.sleep(ms, signal),
  );
  const read = (windowBytes: number, delta: number): Promise<Uint8Array> => {
    const { manifest } = object;
    const sources = manifest.placement.map((name) => {
      const region = { name, url: `https://${name}.example` };
      return new RegionSource({ manifest, region, latency: () => LATENCY, fetch: network.fetch });
    });
    const ports = { codec: async () => referenceCodec, clock, sha256: toyHash, random: () => 0 };
    return clock.run(openRead({ manifest, sources }, ports, { windowBytes, delta }).then(({ body }) => collect(body)));
  };
  return { network, read };
}

const LATENCY = { meanMs: 100, sdMs: 20 };

function answer(chunk: Uint8Array, { headers }: FetchInit, { ms, fault, at }: Fate): Answer {
  const [from, to] = (headers!["range"] ?? "").slice("bytes=".length).split("-").map(Number);
  const body = to === undefined ? chunk : chunk.slice(from, to + 1);
  const status = to === undefined ? 200 : 206;
  const end = at % body.length;
  switch (fault) {
    case "refuse":
      return "refuse";
    case "503":
      return { status: 503, ms };
    case "cut":
      return { status, body: body.subarray(0, end), breaksOff: true, ms };
    case "short":
      return { status, body: body.subarray(0, end), ms };
    case "flip":
      return { status, body: body.map((byte, i) => (i === end ? byte ^ 1 : byte)), ms };
    default:
      return { status, body, ms };
  }
}
