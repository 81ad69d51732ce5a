import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseTensors } from "../src/samples/safetensors.ts";
import { PHOTOS, VIDEO } from "./index.ts";
import { writeModel } from "./make-model.ts";

let folder: string;
let path: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-model-"));
  path = join(folder, "model.safetensors");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("writes the same bytes everywhere, and again when an earlier try was cut off", async () => {
  const bytes = await writeModel(path);
  await truncate(path, 1000);
  expect(await writeModel(path)).toBe(bytes);
  const file = await readFile(path);
  expect(file.length).toBe(bytes);
  expect(createHash("sha256").update(file).digest("hex")).toBe(
    "c7e04abec76fbf929f58ad844f009d838086cfb2ede64614cf0a394abd9d5766",
  );
});

test("leaves a whole file alone", async () => {
  await writeModel(path);
  const before = await stat(path);
  await writeModel(path);
  expect((await stat(path)).mtimeMs).toBe(before.mtimeMs);
});

test("its header names tensors that fill the file without gaps", async () => {
  const bytes = await writeModel(path);
  const file = await readFile(path);
  const tensors = parseTensors(file)!;
  expect(tensors[0]).toMatchObject({ name: "cls_token", dtype: "F32", shape: [1, 1, 384] });
  expect(tensors.at(-1)!.end).toBe(bytes);
  for (const [i, { start, end, shape }] of tensors.entries()) {
    expect(end - start).toBe(4 * shape.reduce((a, b) => a * b, 1));
    if (i > 0) expect(start).toBe(tensors[i - 1]!.end);
  }
  // A part of the header is not enough, and says so.
  expect(parseTensors(file.subarray(0, 7))).toBeUndefined();
  expect(parseTensors(file.subarray(0, 200))).toBeUndefined();
});

test("a file that is no safetensors file is refused by its header length", () => {
  expect(() => parseTensors(new Uint8Array([255, 255, 255, 255, 255, 255, 0, 0, 1]))).toThrow(/not a safetensors/);
});

test("every sample that is listed is there, with the dimensions the page lays out by", async () => {
  const here = new URL(".", import.meta.url);
  expect((await stat(new URL(VIDEO.file, here))).size).toBeGreaterThan(1e6);
  for (const { file, width, height } of PHOTOS) {
    expect([file, jpegSize(await readFile(new URL(file, here)))]).toEqual([file, { width, height }]);
  }
});

test("every sample has a line in LICENSES.md", async () => {
  const licences = await readFile(new URL("LICENSES.md", import.meta.url), "utf8");
  for (const { file } of [...PHOTOS, VIDEO]) expect(licences).toContain(`| ${file} `);
});

/** From the frame header: FF C0..C2, length, precision, height, width (ITU-T T.81, B.2.2). */
function jpegSize(file: Buffer): { width: number; height: number } {
  let at = 2;
  while (at < file.length) {
    const marker = file[at + 1]!;
    if (marker >= 0xc0 && marker <= 0xc2)
      return { height: file.readUInt16BE(at + 5), width: file.readUInt16BE(at + 7) };
    at += 2 + file.readUInt16BE(at + 2);
  }
  throw new Error("no frame header");
}
