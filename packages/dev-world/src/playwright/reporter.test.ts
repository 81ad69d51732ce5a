import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FullConfig, TestCase, TestResult } from "@playwright/test/reporter";
import { expect, onTestFinished, test } from "vitest";
import type { Read } from "./reads.ts";
import ReadsReporter from "./reporter.ts";

const request = { stripe: 0, chunk: 3, source: "dublin", bytes: 10, startMs: 0, endMs: 40, error: undefined };

function readOf(ms: number): Read {
  return {
    key: "photos/<cat>.jpg",
    range: undefined,
    at: 1_000,
    expectedMs: 40,
    ms,
    status: 200,
    kind: "origin",
    firstByteMs: 45,
    bytes: 10,
    lineMbit: 20,
    decodeMs: 0,
    decodedShards: 0,
    error: undefined,
    requests: [
      { ...request, outcome: "used" },
      { ...request, chunk: 4, source: "tokyo", outcome: "failed", error: "SOURCE_FAILED" },
    ],
  };
}

/** The part of Playwright's test case that the reporter uses. */
function ended(title: string, reads: readonly Read[] | undefined, status: TestResult["status"] = "passed") {
  const testCase = {
    location: { file: "/app/tests/cat.spec.ts", line: 7, column: 1 },
    titlePath: () => ["", "", "cat.spec.ts", "cats", title],
  };
  const attachments = [
    { name: "reads", contentType: "text/html", body: Buffer.from("<p>") },
    { name: "screenshot", contentType: "image/png", path: "/nowhere.png" },
    ...(reads ? [{ name: "reads", contentType: "application/json", body: Buffer.from(JSON.stringify(reads)) }] : []),
  ];
  return [testCase as TestCase, { status, retry: 0, attachments } as unknown as TestResult] as const;
}

async function pageOf(tests: readonly (readonly [TestCase, TestResult])[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-reporter-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const reporter = new ReadsReporter({ outputFile: "out/reads.html" });
  reporter.onBegin({ rootDir: folder } as FullConfig);
  for (const one of tests) reporter.onTestEnd(...one);
  await reporter.onEnd();
  return readFile(join(folder, "out/reads.html"), "utf8");
}

test("each test has its times, failed requests and sources, and its waterfalls below", async () => {
  const page = await pageOf([ended("a cat is there", [readOf(100), readOf(300)]), ended("nothing is read", undefined)]);
  expect(page).toContain("<td>passed</td><td>2</td><td>200</td><td>300</td><td>2</td><td>dublin 2</td>");
  expect(page).toContain("cats › a cat is there");
  expect(page).not.toContain("nothing is read");
  expect(page.match(/aria-label="Waterfall"/g)).toHaveLength(2);
});

test("a test that failed is open, and no title or key writes HTML", async () => {
  const page = await pageOf([ended("<script>", [readOf(100)], "failed")]);
  expect(page).toMatch(/<details id="test-0" open>/);
  expect(page).not.toContain("<script>");
  expect(page).toContain("photos/&lt;cat>.jpg");
});

test("a run without reads says how to get some", async () => {
  expect(await pageOf([])).toContain("readTrace");
});
