/** The example of docs/guides/trace-reads.md makes spans that a collector takes, with the ids that PoPs log. */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import type { ReadEvent } from "../src/events/read-events.ts";
import { summarized } from "../src/devtools/read-summary.ts";
import { FakeWorld, sampleBytes } from "./fake-world.ts";

const GUIDE = new URL("../../../docs/guides/trace-reads.md", import.meta.url);

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number; readonly message: string };
}

/** Runs the example over events, and returns the spans that it sends. */
async function spansOf(events: readonly ReadEvent[]): Promise<Span[]> {
  const [, code = ""] = /^```js\n(.*?)^```$/ms.exec(await readFile(GUIDE, "utf8"))!;
  const bodies: string[] = [];
  const onRead = (listener: (event: ReadEvent) => void): void => events.forEach((event) => listener(event));
  const send = (_url: string, { body }: { body: string }): void => void bodies.push(body);
  // oxlint-disable-next-line no-new-func -- the example is text
  new Function("onRead", "summarized", "fetch", code.replace(/^import .*$/m, ""))(onRead, summarized, send);
  return bodies.flatMap((body) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans as Span[]);
}

test("each read is a root span, with its plan and its requests as children", async () => {
  const world = new FakeWorld();
  world.put("page", sampleBytes(9_000));
  const client = world.client();
  await world.clock.settle(client.probe(true));
  world.regions[0]!.fault = "down";
  world.log.length = 0;
  const { body } = await world.clock.settle(client.answer({ key: "page", method: "GET", headers: new Headers() }));
  await world.clock.settle(new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
  await world.clock.pass(1_000);
  const spans = await spansOf(world.events);
  const [read, plan, ...requests] = spans;
  const [id] = world.requests("p0").map(({ trace }) => trace!);
  expect(read).toMatchObject({ name: "GET object", traceId: id!.replaceAll("-", ""), parentSpanId: "" });
  expect(read!.spanId).toBe(read!.traceId.slice(0, 16));
  expect(plan).toMatchObject({ name: "plan", parentSpanId: read!.spanId });
  expect(requests.length).toBeGreaterThan(3);
  expect(requests.some(({ status }) => status?.code === 2)).toBe(true);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  for (const span of spans) {
    expect(span).toMatchObject({ traceId: read!.traceId, spanId: expect.stringMatching(/^[\da-f]{16}$/) });
    expect(span.startTimeUnixNano).toMatch(/^\d{19}$/);
    expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
  }
});
