/** More files in a folder than fit in an argument list. */
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { collectInputs } from "./inputs.ts";

test("a folder of 130,000 files", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-inputs-"));
  for (let i = 0; i < 130_000; i++) writeFileSync(join(folder, String(i)), "");
  expect((await collectInputs([folder], {})).files).toHaveLength(130_000);
  await rm(folder, { recursive: true });
});
