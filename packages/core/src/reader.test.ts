import { expect, test } from "vitest";
import { openRead } from "./index.ts";
import { FakeSource } from "../test/fake-source.ts";
import { referenceCodec } from "../test/reference-codec.ts";
import { sampleObject, toyHash } from "../test/sample-object.ts";
import { SimulatedClock } from "../test/simulated-clock.ts";

test("reads an object of several stripes", async () => {
  const clock = new SimulatedClock();
  const object = await sampleObject({ k: 4, m: 2, bytes: 1000, stripeBytes: 300 });
  const sources = object.manifest.placement.map((id, i) => new FakeSource({ id, object, clock, ms: 100 + 10 * i }));
  const read = await clock.run(
    openRead({
      manifest: object.manifest,
      sources,
      codec: async () => referenceCodec,
      clock,
      sha256: toyHash,
      random: () => 0,
    }),
  );
  expect(await clock.run(new Response(read.body as ReadableStream<Uint8Array<ArrayBuffer>>).bytes())).toEqual(
    object.bytes,
  );
});

test("decodes what is missing", async () => {
  const clock = new SimulatedClock();
  const object = await sampleObject({ k: 4, m: 2, bytes: 1000, stripeBytes: 300 });
  const sources = object.manifest.placement.map(
    (id, i) => new FakeSource({ id, object, clock, behaviour: () => (i < 2 ? "error" : "serve") }),
  );
  const read = await clock.run(
    openRead({
      manifest: object.manifest,
      sources,
      codec: async () => referenceCodec,
      clock,
      sha256: toyHash,
      random: () => 0,
    }),
  );
  expect(await clock.run(new Response(read.body as ReadableStream<Uint8Array<ArrayBuffer>>).bytes())).toEqual(
    object.bytes,
  );
});
