/** `--json-lines` has what `--json` has: one document for each result, and the rest of the document as the summary. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestWorld, type World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await startTestWorld();
  for (const name of ["a", "b"]) {
    await writeFile(join(world.dir, name), name);
    expect((await world.run(["put", name])).code).toBe(0);
  }
});

afterAll(() => world.close());

test.each([
  ["put a b", "objects"],
  ["put a b --dry-run", "objects"],
  ["rm --all --dry-run --yes", "objects"],
  ["du", "regions"],
  ["versions a", "versions"],
  ["doctor", "checks"],
])("%s", async (verb, name) => {
  const args = verb.split(" ");
  // The clock of the next run is half a second elsewhere.
  const run = async (option: string): Promise<string> =>
    (await world.run([...args, option])).stdout.toString().replace(/this machine is \d+ s (behind|ahead of)/g, "CLOCK");
  const [whole, lines] = [await run("--json"), await run("--json-lines")];
  const { [name]: results, ...summary } = JSON.parse(whole) as Record<string, unknown[]>;
  expect(results!.length).toBeGreaterThan(0);
  const printed = lines.trimEnd().split("\n");
  expect(printed.map((line) => JSON.parse(line) as unknown)).toEqual([...results!, { summary }]);
});
