/** Commands on a machine whose clock is wrong. The stores have the right time, and say it in `Date`. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { REGIONS, startTestWorld, type World } from "../../world.ts";
import { objectsLeft } from "@agarose/storage/history/kept-versions";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

let world: World;
afterEach(() => world.close());

/** Regions whose clock is so far ahead of this machine's. Returns how many requests they have refused. */
async function ahead(ms: number): Promise<() => number> {
  world = await startTestWorld({ nowMs: () => Date.now() + ms });
  let refused = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (_request, response) => {
      response.once("finish", () => void (refused += Number(response.statusCode === 403)));
      return false;
    });
  }
  return () => refused;
}

test.each([20, -20, 2 * 24 * 60])("every command works while the regions are %i minutes ahead", async (minutes) => {
  const refused = await ahead(minutes * MINUTE_MS);
  await writeFile(join(world.dir, "file"), randomBytes(5000));
  const commands = [
    "put file --key a/file",
    "get a/file copy",
    "ls --long",
    "verify",
    "du",
    "repair",
    "rm a/file",
    "ls",
  ];
  for (const command of commands) {
    const before = refused();
    const { code, stderr } = await world.run(command.split(" "));
    expect(stderr, command).not.toContain("CREDENTIALS_REFUSED");
    expect(code, `${command}: ${stderr}`).toBe(0);
    expect(refused(), command).toBeGreaterThan(before);
  }
  expect(await readFile(join(world.dir, "copy"))).toEqual(await readFile(join(world.dir, "file")));
});

test("what is absent is asked for once, by a clock that is known to be wrong too", async () => {
  await ahead(20 * MINUTE_MS);
  const store = world.store("tokyo");
  expect((await store.get("absent")).status).toBe(404);
  let asked = 0;
  world.faults.set("tokyo", () => (asked++, false));
  expect((await store.get("absent")).status).toBe(404);
  expect(await store.head("absent")).toBeUndefined();
  expect(asked).toBe(2);
  expect(Math.abs(store.clockAheadMs - 20 * MINUTE_MS)).toBeLessThan(MINUTE_MS);
});

test("doctor says both times, and what to do", async () => {
  await ahead(-20 * MINUTE_MS);
  const { code, stdout } = await world.run(["doctor"]);
  expect(code).toBe(1);
  expect(String(stdout)).toMatch(
    /ahead of the server \(it shows \d{4}-\d\d-\d\dT[\d:.]+Z, the server's \d{4}-[^)]+Z\): set this machine's clock/,
  );
});

test("gc and expire delete nothing by a clock that is two days ahead", async () => {
  await ahead(-2 * DAY_MS);
  await world.put("a", randomBytes(5000));
  await world.store("tokyo").put(`chunks/a!${"0".repeat(32)}/0`, randomBytes(9), { bytes: 9, contentType: "a/b" });
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...config, expire: [{ prefix: "a", time: "1d" }] }));
  const names = [...(await world.names("chunks/")), ...(await world.names("manifests/"))];
  for (const command of [
    ["gc", "--delete", "--yes"],
    ["expire", "--yes"],
  ]) {
    const { code, stderr } = await world.run(command);
    expect(stderr).toContain("CLOCKS_DISAGREE");
    expect(code).not.toBe(0);
  }
  expect(await world.names()).toEqual(expect.arrayContaining(names));
});

test("a kept version is young by its region's clock, so that no rotation ends before its time", async () => {
  await ahead(-2 * DAY_MS);
  const config = { ...world.config, keep: [{ prefix: "", time: DAY_MS }] };
  for (const content of ["first", "second"]) await world.put("kept", Buffer.from(content), { config });
  expect(await objectsLeft("", ({ generation }) => generation === 1, world.parts({ config }))).toEqual(["kept"]);
});
