import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DiskValues } from "./disk-values.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-values-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const bytesOf = (length: number, fill = 1): ArrayBuffer => new Uint8Array(length).fill(fill).buffer;

test("a value comes back as text or as bytes, also after the store is opened again", async () => {
  const values = await DiskValues.open(folder, 1000);
  await values.put("configuration", "{}");
  await values.put("chunks:v:0", bytesOf(3));
  const again = await DiskValues.open(folder, 1000);
  expect(await again.get("configuration")).toBe("{}");
  expect(await again.get("chunks:v:0", "arrayBuffer")).toEqual(bytesOf(3));
  expect(await again.get("nothing", "arrayBuffer")).toBeNull();
  expect(again.bytes).toBe(5);
});

test("values that together exceed the bound are refused, and those that are there stay", async () => {
  const values = await DiskValues.open(folder, 100);
  await values.put("a", bytesOf(60));
  await expect(values.put("b", bytesOf(41))).rejects.toMatchObject({
    code: "STORE_FAILED",
    details: { bytes: 101, bytesMax: 100 },
  });
  await values.put("a", bytesOf(100, 2));
  expect(values.bytes).toBe(100);
  expect(await values.get("b", "arrayBuffer")).toBeNull();
  await values.delete("a");
  expect(values.bytes).toBe(0);
});

test("writes at the same time do not exceed the bound together", async () => {
  const values = await DiskValues.open(folder, 100);
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => values.put(`v${i}`, bytesOf(30))));
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  expect(values.bytes).toBe(90);
});

test("changes of one name happen in their order", async () => {
  const values = await DiskValues.open(folder, 1000);
  const changes = Array.from({ length: 20 }, (_, i) => values.put("name", bytesOf(i + 1, i)));
  await Promise.all([...changes, values.delete("name"), values.put("name", bytesOf(7, 99))]);
  expect(await values.get("name", "arrayBuffer")).toEqual(bytesOf(7, 99));
  expect(values.bytes).toBe(7);
});

test("a value that a killed process left half-written is removed and never read", async () => {
  await mkdir(join(folder, "new"), { recursive: true });
  await writeFile(join(folder, "new", "half"), "half");
  const values = await DiskValues.open(folder, 1000);
  expect(values.bytes).toBe(0);
  expect(await readdir(join(folder, "new"))).toEqual([]);
});

test("a file that somebody has removed is a value that is not there", async () => {
  const values = await DiskValues.open(folder, 1000);
  await values.put("a", bytesOf(10));
  for (const entry of await readdir(folder)) if (entry !== "new") await rm(join(folder, entry), { recursive: true });
  expect(await values.get("a", "arrayBuffer")).toBeNull();
});
