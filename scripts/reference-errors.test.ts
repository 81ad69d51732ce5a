import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { ERRORS_PAGE, errorsPage } from "./reference-errors.ts";

test("the reference page of errors equals what the catalogue generates", async () => {
  // If this fails: node scripts/reference-errors.ts --write
  expect(await readFile(ERRORS_PAGE, "utf8")).toBe(await errorsPage());
});
