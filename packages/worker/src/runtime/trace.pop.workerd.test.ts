import { afterAll, beforeAll, expect, test } from "vitest";
import { chunkName } from "@agarose/core/format";
import { POP, randomBytes, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

const READ = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736";
const TRACE = READ.replaceAll("-", "");
const PARENT = "00f067aa0ba902b7";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ LOG_TRACES: "true" });
  await world.put("page", randomBytes(100_000));
});
afterAll(() => world.close());

async function answerTo(path: string, headers: Record<string, string> = {}): Promise<void> {
  const response = await fetch(`${world.url}${path}`, { headers });
  await response.arrayBuffer().catch(() => {});
}

/** The lines of the log so far with this event. */
function lines(event: string): Record<string, unknown>[] {
  return world.logs
    .join("")
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line["event"] === event);
}

test("each request of a sampled trace has a line in the log, and no other request", async () => {
  await answerTo("/o/page");
  await answerTo("/o/page?trace=nonsense");
  await answerTo("/o/page", { traceparent: `00-${TRACE}-${PARENT}-00` });
  await answerTo(`/v1/read/page?trace=${READ}`);
  await answerTo("/o/page", { traceparent: `00-${TRACE}-${PARENT}-01` });
  await answerTo("/o/absent", { traceparent: `00-${TRACE}-${PARENT}-01` });
  await expect.poll(() => lines("traced request").length).toBeGreaterThanOrEqual(3);
  const line = { level: "info", pop: POP, trace_id: TRACE, span_id: expect.stringMatching(/^[\da-f]{16}$/) };
  const answered = (parent: string, route: string, status: number) => ({
    ...line,
    event: "traced request",
    parent_span_id: parent,
    "http.route": route,
    "http.response.status_code": status,
    at: expect.any(Number),
    ms: expect.any(Number),
  });
  expect(lines("traced request")).toEqual([
    answered(TRACE.slice(0, 16), "/v1/read/", 200),
    answered(PARENT, "/o/", 200),
    answered(PARENT, "/o/", 404),
  ]);
  expect(world.buckets.headerNames).toContain("host");
  expect(world.buckets.headerNames).not.toContain("traceparent");
});

test("a read that is cut off names its trace", async () => {
  const { upload } = await world.put("broken", randomBytes(900_000, 3));
  for (const chunk of [0, 1, 2]) {
    const name = `${REGIONS[chunk]}/${chunkName("broken", upload, chunk)}`;
    world.buckets.objects.set(name, world.buckets.objects.get(name)!.subarray(0, 200_000));
  }
  await answerTo("/o/broken", { traceparent: `00-${TRACE}-${PARENT}-00` });
  await expect
    .poll(() => lines("read cut off"))
    .toMatchObject([{ key: "broken", trace_id: TRACE, parent_span_id: PARENT }]);
});

test("pages of other origins may send a trace", async () => {
  const response = await fetch(`${world.url}/o/page`, {
    method: "OPTIONS",
    headers: {
      origin: "https://app.example",
      "access-control-request-method": "GET",
      "access-control-request-headers": "traceparent,tracestate",
    },
  });
  const allowed = response.headers.get("access-control-allow-headers")!.split(/, */);
  expect(allowed).toEqual(expect.arrayContaining(["traceparent", "tracestate"]));
});
