import { rejectionOf } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { ask } from "@agarose/storage/pops/pop-client";
import { judge, type PopSummary } from "./pop-report.ts";

test.each([
  ["79% of the day's egress for fills is nothing to say", { bytes: 7_900, bytesPerDayMax: 10_000 }, []],
  [
    "80% is",
    { bytes: 8_000, bytesPerDayMax: 10_000 },
    ["7.8 KiB of the 9.8 KiB that FILL_EGRESS_BYTES_PER_DAY allows"],
  ],
  ["a spent one names what waits", { bytes: 9_999, bytesPerDayMax: 10_000, refusedStripes: 7 }, ["UTC, and 7 stripes"]],
  ["a PoP that may fetch nothing has spent nothing", { bytes: 0, bytesPerDayMax: 0, refusedStripes: 7 }, []],
] as const)("%s", (_, egress, said) => {
  const summary = { periodAgeSeconds: 1, regionsDown: [], regionsSlow: [] as string[] };
  const fillEgress = { refusedStripes: 0, ...egress };
  const { problems, warnings } = judge({ ...summary, fillEgress } as unknown as PopSummary, []);
  expect({ problems, warnings }).toEqual({ problems: [], warnings: said.map((text) => expect.stringContaining(text)) });
  expect(judge({ ...summary, fillEgress: null } as unknown as PopSummary, []).warnings, "an older PoP").toEqual([]);
});

test.each([200, 502])("an answer of %i without an end is given up", async (status) => {
  let parts = 0;
  const fetch = async (): Promise<Response> => {
    const part = new Uint8Array(1024 * 1024).fill(0x20);
    const body = new ReadableStream({ pull: (controller) => void (parts++, controller.enqueue(part)) });
    return new Response(body, { status });
  };
  const error = await rejectionOf(ask("https://fra.test/v1/status", { fetch, token: "t", timeoutMs: 60_000 } as never));
  expect(error).toMatchObject({ code: "SOURCE_FAILED" });
  expect(parts).toBeLessThan(20);
});

test.each([401, 403])("a refusal of %i that is longer than what is read ends no process", async (status) => {
  let left = 0;
  const fetch = async (): Promise<Response> =>
    new Response(new ReadableStream({ cancel: () => void left++ }), { status });
  const error = await rejectionOf(ask("https://fra.test/v1/status", { fetch, token: "t", timeoutMs: 60_000 } as never));
  expect(error).toMatchObject({ code: "FORBIDDEN" });
  expect(left).toBe(1);
});
