import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { referencePages } from "./reference.ts";

test("every generated reference page equals what its generator prints: run npm run docs:reference", async () => {
  const pages = await referencePages();
  expect(pages.length).toBeGreaterThan(0);
  for (const { path, text } of pages) expect(readFileSync(path, "utf8"), path).toBe(text);
});
