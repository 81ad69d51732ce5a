/** The code of docs/guides/trace-reads.md sends one trace for each read, which the request to the PoP names too. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { NEAR } from "../cases/faults.ts";
import { openControlledApp, read } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const RECIPE = fileURLToPath(new URL("../recipes/opentelemetry/send-traces.js", import.meta.url));
const COLLECTOR = "https://otel.example.com/v1/traces";
/** SPAN_KIND_INTERNAL and SPAN_KIND_CLIENT, STATUS_CODE_ERROR: numbers of the OTLP JSON encoding. */
const [INTERNAL, CLIENT, FAILED] = [1, 3, 2];

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number };
}

interface Exported {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[];
}

test("a read while a region is down is one trace, from the page to the PoP", async ({ context, world, putRandom }) => {
  await putRandom("traced/object", 5_000_000);
  const { outputFiles } = await build({ entryPoints: [RECIPE], bundle: true, format: "esm", write: false });
  await context.route("**/send-traces.js", (route) =>
    route.fulfill({ contentType: "text/javascript", body: outputFiles[0]!.text }),
  );
  const exported: Exported[] = [];
  await context.route(COLLECTOR, async (route) => {
    if (route.request().method() === "POST") exported.push(route.request().postDataJSON() as Exported);
    await route.fulfill({ headers: { "access-control-allow-origin": "*", "access-control-allow-headers": "*" } });
  });
  const page = await openControlledApp(context, world);
  await page.evaluate((url) => import(url) as Promise<unknown>, "/send-traces.js");
  await world.region(NEAR).down();
  expect((await read(page, "traced/object")).status).toBe(200);
  await expect.poll(() => exported.length).toBe(1);

  const spans = exported[0]!.resourceSpans[0]!.scopeSpans[0]!.spans;
  const [root, ...children] = spans as [Span, ...Span[]];
  expect(root).toMatchObject({ name: "GET object", kind: INTERNAL, parentSpanId: "" });
  expect(root.traceId).toMatch(/^[0-9a-f]{32}$/);
  for (const { traceId, spanId, parentSpanId, kind } of children) {
    expect({ traceId, parentSpanId, kind }).toEqual({ traceId: root.traceId, parentSpanId: root.spanId, kind: CLIENT });
    expect(spanId).toMatch(/^[0-9a-f]{16}$/);
  }
  for (const { startTimeUnixNano, endTimeUnixNano } of spans) {
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
  }
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  expect(children.map(({ name }) => name)).toContain("plan");
  const failed = children.filter(({ status }) => status?.code === FAILED);
  expect(failed.some(({ name }) => name.includes(NEAR))).toBe(true);
  const toPop = (await world.log()).find(({ path }) => path.startsWith("/v1/read/traced/"));
  const { searchParams } = new URL(toPop!.path, "http://pop");
  expect(searchParams.get("trace")?.replaceAll("-", "")).toBe(root.traceId);
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
});
