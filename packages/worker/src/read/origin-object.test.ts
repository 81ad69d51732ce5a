/** An origin that falls silent. A real one would take half a minute, so this one and its clock are fakes. */
import { AgaroseError } from "@agarose/core";
import { ByteLru } from "@agarose/core/read";
import { SimulatedClock } from "@agarose/core/testing";
import { expect, test } from "vitest";
import type { Invocation } from "../runtime/invocation.ts";
import { MemoryBudget } from "./limits/memory-budget.ts";
import { insteadOfUnknown } from "./origin-object.ts";

const BYTES = 5_000_000;
const PART = new Uint8Array(100_000);

/** The body of a large object of which the origin sends `parts` parts, and then nothing more. */
async function bodyOf(clock: SimulatedClock, parts: number): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  let left = parts;
  const silent = new ReadableStream<Uint8Array>(
    { pull: (controller) => (left-- > 0 ? controller.enqueue(PART) : new Promise<void>(() => {})) },
    { highWaterMark: 0 },
  );
  const invocation = {
    isolate: {
      settings: { origin: "https://origin.example", manifestTtlSeconds: 60 },
      frontCache: { get: async () => undefined },
      originCopies: new ByteLru(0),
      memory: new MemoryBudget(clock),
      clock,
    },
    subrequests: { spend: () => true },
    fetch: async () => new Response(silent, { headers: { etag: '"e"', "content-length": String(BYTES) } }),
  } as unknown as Invocation;
  const unknown = new AgaroseError("OBJECT_NOT_FOUND", "no region has it");
  const client = { signal: new AbortController().signal, client: undefined };
  const found = await insteadOfUnknown(unknown, "film", false, client, invocation);
  return (await found.open({ start: 0, end: BYTES })).getReader();
}

test("a large object whose origin falls silent errors after 30 s", async () => {
  const clock = new SimulatedClock();
  const reader = await bodyOf(clock, 1);
  expect((await reader.read()).value?.length).toBe(PART.length);
  await expect(clock.run(reader.read())).rejects.toMatchObject({ code: "READ_TIMEOUT" });
  expect(clock.now()).toBe(30_000);
});

test("the time that a client takes between two parts does not count", async () => {
  const clock = new SimulatedClock();
  const reader = await bodyOf(clock, 2);
  await reader.read();
  await clock.advance(60_000);
  expect((await reader.read()).value?.length).toBe(PART.length);
});
