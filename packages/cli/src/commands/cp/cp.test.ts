/** `cp`, `mv`, `stat`, `cat` and `get -r`: what users of other object stores expect. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { REGIONS, startTestWorld, type RunResult, type World } from "../../../test/world.ts";

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
  await writeFile(join(world.dir, "a.html"), "<p>text");
  const put = [
    "put",
    "a.html",
    "--key",
    "pages/a",
    "--content-type",
    "text/html",
    "--header",
    "cache-control: no-store",
  ];
  expect((await world.run(put)).code).toBe(0);
});

afterEach(() => world.close());

const jsonOf = ({ stdout }: RunResult): any => JSON.parse(stdout.toString());
const keys = async (): Promise<string[]> =>
  jsonOf(await world.run(["ls", "--json"])).objects.map(({ key }: { key: string }) => key);

test("cp stores the same bytes, type and headers under another key, and below one that ends in /", async () => {
  expect((await world.run(["cp", "pages/a", "copies/"])).code).toBe(0);
  expect(await keys()).toEqual(["copies/a", "pages/a"]);
  const copy = jsonOf(await world.run(["stat", "copies/a", "--json"]));
  const {
    key: _key,
    modified: _modified,
    version: _version,
    ...same
  } = jsonOf(await world.run(["stat", "pages/a", "--json"]));
  expect(copy).toMatchObject({ ...same, headers: { "cache-control": "no-store" } });
  expect((await world.run(["cp", "pages/a", "pages/a"])).code).toBe(2);
  expect((await world.run(["cp", "nowhere", "b"])).code).toBe(1);
});

test("mv leaves the new key alone, and --dry-run both as they are", async () => {
  expect(jsonOf(await world.run(["mv", "pages/a", "b", "--dry-run", "--json"]))).toMatchObject({
    key: "b",
    dryRun: true,
  });
  expect(await keys()).toEqual(["pages/a"]);
  expect(jsonOf(await world.run(["mv", "pages/a", "b", "--json"]))).toMatchObject({
    from: "pages/a",
    outcome: "moved",
  });
  expect(await keys()).toEqual(["b"]);
  expect((await world.run(["cat", "b", "b"])).stdout.toString()).toBe("<p>text<p>text");
});

test("mv keeps what is stored at the old key while it copies", async () => {
  let replaced: Promise<unknown> | undefined;
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "PUT" || !name.startsWith("chunks/moved")) return false;
      replaced ??= world.put("pages/a", Buffer.from("another"));
      await replaced;
      return false;
    });
  }
  const { code, stderr } = await world.run(["mv", "pages/a", "moved"]);
  expect([replaced, code, stderr]).toEqual([expect.any(Promise), 1, expect.stringContaining("REPLACED_MEANWHILE")]);
  expect((await world.run(["cat", "pages/a"])).stdout.toString()).toBe("another");
});

test("get -r brings all below a prefix into a folder", async () => {
  expect((await world.run(["get", "-r", "pages/", "fetched"])).code).toBe(0);
  expect(await readFile(join(world.dir, "fetched/a"), "utf8")).toBe("<p>text");
  expect((await world.run(["get", "-r", "pages", "-"])).code).toBe(2);
});
