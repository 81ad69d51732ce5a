import { expect, test } from "vitest";
import type { Read } from "./reads.ts";
import { waterfallLines, waterfallPage } from "./waterfall.ts";

const request = { stripe: 0, chunk: 3, source: "region:dublin", bytes: 10, startMs: 100, endMs: 140 };
const READ: Read = {
  key: "photos/<first>.jpg",
  range: "bytes=0-9",
  at: 1_000,
  expectedMs: 38.4,
  ms: 51.2,
  status: 206,
  kind: "degraded",
  firstByteMs: 45,
  bytes: 10,
  lineMbit: 20,
  decodeMs: 0,
  decodedShards: 0,
  error: undefined,
  requests: [
    { ...request, outcome: "used", error: undefined },
    { ...request, chunk: 4, outcome: "failed", error: "SOURCE_FAILED" },
    { ...request, chunk: 5, endMs: undefined, outcome: "pending", error: undefined },
  ],
};

test("each request has a bar as long as it took, and a failed one its code", () => {
  const page = waterfallPage("a test", [READ]);
  const bars = [...page.matchAll(/<rect x="([\d.]+)" y="\d+" width="([\d.]+)"/g)].map(([, x, width]) => [x, width]);
  expect(bars).toHaveLength(3);
  expect(new Set(bars.map(([x]) => x)).size, "they began together").toBe(1);
  expect(new Set(bars.map(([, width]) => width)).size, "one that is pending reaches to the end").toBe(1);
  expect(page).toContain("SOURCE_FAILED");
  expect(page).toContain("206 degraded, 51 ms, 38 ms expected of the first stripe, 10 bytes");
});

test("keys and titles cannot write HTML", () => {
  const page = waterfallPage("</title><script>", [READ]);
  expect(page).not.toContain("<script>");
  expect(page).toContain("photos/&lt;first>.jpg");
});

test("a read without requests, and no read at all, make a page", () => {
  expect(waterfallPage("a", [{ ...READ, requests: [] }])).not.toContain("<svg");
  expect(waterfallPage("a", [])).toContain("Number of reads: 0");
});

test("as text, each request has a line with a bar on one scale", () => {
  expect(waterfallLines(READ)).toEqual([
    "photos/<first>.jpg (bytes=0-9): 206 degraded, 51 ms, 38 ms expected of the first stripe, 10 bytes",
    `  stripe 0 chunk 3 region:dublin |${"=".repeat(40)}| 40 ms, used`,
    `  stripe 0 chunk 4 region:dublin |${"=".repeat(40)}| SOURCE_FAILED, failed`,
    `  stripe 0 chunk 5 region:dublin |${"=".repeat(40)}| 40 ms, pending`,
  ]);
  const late = { ...READ, requests: [READ.requests[0]!, { ...READ.requests[0]!, startMs: 120, endMs: 130 }] };
  expect(waterfallLines(late)[2]).toContain(`|${" ".repeat(20)}${"=".repeat(10)}${" ".repeat(10)}| 10 ms`);
  expect(waterfallLines({ ...READ, requests: [] })).toHaveLength(1);
});
