/** How often a put reads its file, and what it makes of a file that changes in the meantime. */
import { createHash, randomBytes } from "node:crypto";
import { appendFile, link, open, readFile, rename, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { startTestWorld, type World } from "../../world.ts";
import { readManifest } from "@agarose/storage/objects/manifests";
import { putObject, type PutResult } from "@agarose/storage/objects/put-object";
import { fileSource, type Source } from "@agarose/storage/upload/file-source";

const BYTES = 50_000;
const HOUR_S = 3_600;

let world: World;
let files = 0;
beforeAll(async () => void (world = await startTestWorld()));
afterEach(() => world.faults.clear());
afterAll(() => world.close());

/** A file that has been as it is for an hour, or for no time at all. */
async function fileOf(content: Uint8Array, age: "settled" | "new" = "settled"): Promise<string> {
  const path = join(world.dir, `one-pass-${files++}`);
  await writeFile(path, content);
  if (age === "settled") await settle(path);
  return path;
}

/** Gives a file an older time, as somebody who hides a change would. */
async function settle(path: string): Promise<void> {
  const thenS = Date.now() / 1000 - HOUR_S;
  await utimes(path, thenS, thenS);
}

/** Puts a file, and counts the bytes that it reads. `onRead` runs after each read, with how many there were. */
async function put(
  key: string,
  path: string,
  more: { force?: boolean; nowMs?: () => number; onRead?: (reads: number) => Promise<unknown> } = {},
): Promise<PutResult & { read: number; hashed: number }> {
  let [read, reads, hashed] = [0, 0, 0];
  const source: Source = {
    async open() {
      const file = await fileSource(path).open();
      return {
        state: () => file.state!(),
        close: () => file.close(),
        async read(target, position) {
          const bytes = await file.read(target, position);
          read += bytes;
          await more.onRead?.(++reads);
          return bytes;
        },
      };
    },
  };
  const onBytes = (pass: "hash" | "upload", bytes: number): void => void (hashed += pass === "hash" ? bytes : 0);
  const { nowMs = Date.now } = more;
  const object = { key, source, contentType: "x/y", headers: {}, force: more.force ?? false, onBytes };
  const result = await putObject(object, world.parts({ nowMs }));
  return { ...result, read, hashed };
}

describe("a file is read once", () => {
  test("when nothing is stored under its key", async () => {
    const content = randomBytes(BYTES);
    const sha256 = createHash("sha256").update(content).digest("hex");
    expect(await put("new", await fileOf(content))).toMatchObject({ read: BYTES, hashed: BYTES, sha256, bytes: BYTES });
    expect((await world.get("new")).equals(content)).toBe(true);
    expect(await readManifest("new", world.parts())).toMatchObject({ sha256 });
    expect(await world.verify("new")).toMatchObject({ sound: true });
  });

  test("when an object of another length is stored there", async () => {
    await put("longer", await fileOf(randomBytes(BYTES)));
    const content = randomBytes(BYTES + 1);
    expect(await put("longer", await fileOf(content))).toMatchObject({ read: BYTES + 1, outcome: "stored" });
    expect((await world.get("longer")).equals(content)).toBe(true);
  });

  test("when it is stored in any case", async () => {
    const path = await fileOf(randomBytes(BYTES));
    await put("forced", path);
    expect(await put("forced", path, { force: true })).toMatchObject({ read: BYTES, outcome: "stored" });
  });
});

describe("a file is read twice", () => {
  test("when it may be stored already, and not at all a third time when it is", async () => {
    const path = await fileOf(randomBytes(BYTES));
    await put("same", path);
    expect(await put("same", path)).toMatchObject({ read: BYTES, outcome: "unchanged" });
    expect(await put("same", await fileOf(randomBytes(BYTES)))).toMatchObject({ read: 2 * BYTES, outcome: "stored" });
  });

  test.each([
    ["was changed a moment ago, so that its times may not show the next change", Date.now],
    ["has times of the future, by another clock", () => Date.now() - HOUR_S * 1000],
  ])("when it %s", async (_what, nowMs) => {
    const path = await fileOf(randomBytes(BYTES), "new");
    const { key, read } = await put(`recent/${files}`, path, { nowMs });
    expect(read, key).toBe(2 * BYTES);
  });
});

describe("a file whose times change while it is read is hashed once more, and stored", () => {
  test.each<[string, (path: string) => Promise<unknown>]>([
    ["because it gets a second name", (path) => link(path, `${path}-link`)],
    [
      "because another file takes its name",
      (path) => writeFile(`${path}-new`, "new").then(() => rename(`${path}-new`, path)),
    ],
    ["because it is written again with the same bytes", (path) => readFile(path).then((same) => writeFile(path, same))],
  ])("%s", async (what, change) => {
    const content = randomBytes(BYTES);
    const path = await fileOf(content);
    const onRead = async (reads: number): Promise<void> => void (reads === 3 && (await change(path)));
    expect(await put(`touched/${what}`, path, { onRead })).toMatchObject({ read: 2 * BYTES, outcome: "stored" });
    expect((await world.get(`touched/${what}`)).equals(content)).toBe(true);
  });

  test("as it is then, if only bytes have changed that were read after that", async () => {
    const path = await fileOf(randomBytes(BYTES));
    const onRead = async (reads: number): Promise<void> => void (reads === 3 && (await writeAt(path, BYTES - 1)));
    await put("changed-ahead", path, { onRead });
    expect((await world.get("changed-ahead")).equals(await readFile(path))).toBe(true);
  });
});

describe("a file that changes while it is read once completes no chunk", () => {
  test.each<[string, (path: string) => Promise<unknown>]>([
    ["other bytes of the same length", (path) => writeFile(path, randomBytes(BYTES))],
    ["other bytes with the old time", (path) => writeFile(path, randomBytes(BYTES)).then(() => settle(path))],
    ["one byte that was read already", (path) => writeAt(path, 0)],
    ["a longer file", (path) => appendFile(path, "more")],
    ["a shorter file", (path) => truncate(path, BYTES - 1500)],
  ])("%s", async (what, change) => {
    const before = await world.names();
    const path = await fileOf(randomBytes(BYTES));
    let changed = false;
    const onRead = async (reads: number): Promise<void> => {
      if (reads !== 3) return;
      await change(path);
      changed = true;
    };
    const refused = { code: "FILE_UNREADABLE", message: expect.stringContaining("changed during the put") };
    await expect(put(`changing/${what}`, path, { onRead })).rejects.toMatchObject(refused);
    expect(changed).toBe(true);
    expect((await world.names()).filter((name) => !before.includes(name) && !name.includes("claims/"))).toEqual([]);
  });

  test("also when it changes before a second pass for a chunk that was refused", async () => {
    const content = randomBytes(BYTES);
    const path = await fileOf(content);
    let refused = 0;
    world.faults.set("paulo", (request, response, name) => {
      if (request.method !== "PUT" || !name.startsWith("chunks/") || refused > 0) return false;
      refused++;
      request.resume();
      void settle(path)
        .then(() => writeFile(path, randomBytes(BYTES)))
        .then(() => response.writeHead(500).end());
      return true;
    });
    await expect(put("second-pass", path)).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
    expect(refused).toBe(1);
    await expect(world.get("second-pass")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  });
});

test("a small file that its writer has emptied for a moment is not read once into memory", async () => {
  const content = randomBytes(1_000);
  const path = await fileOf(content);
  const handle = await open(path);
  await handle.close();
  const { stat } = handle;
  const look = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, "stat").mockImplementationOnce(async function (
    this: typeof handle,
  ) {
    const stats = await stat.call(this);
    await truncate(path);
    return stats as never;
  });
  const file = await fileSource(path).open();
  expect(look).toHaveBeenCalledOnce();
  look.mockRestore();
  await writeFile(path, content);
  expect(await file.read(Buffer.alloc(2_000), 0), "what a second pass compares with the first").toBe(1_000);
  await file.close();
});

/** Changes one byte. */
async function writeAt(path: string, position: number): Promise<void> {
  const file = await open(path, "r+");
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, position);
  byte[0]! ^= 1;
  await file.write(byte, 0, 1, position);
  await file.close();
}
