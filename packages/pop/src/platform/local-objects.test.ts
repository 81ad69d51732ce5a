import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LocalObjects } from "./local-objects.ts";
import type { ObjectStorage } from "./object-storage.ts";

let folder: string;
const rung: string[] = [];
const errors: unknown[] = [];
let failures = 0;
/** Whether the next alarm finds that nothing can be written, before or after its first await. */
let isFull: "at once" | "later" | undefined;

class Counter {
  readonly #storage: ObjectStorage;

  constructor({ storage }: { storage: ObjectStorage }) {
    this.#storage = storage;
    storage.sql.exec("CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, n INTEGER NOT NULL, bytes BLOB)");
  }

  add(name: string, n: number): number {
    this.#storage.sql.exec("INSERT OR IGNORE INTO counts (name, n) VALUES (?, 0)", name);
    this.#storage.sql.exec("UPDATE counts SET n = n + ? WHERE name = ?", n, name);
    if (n < 0) throw new RangeError("negative");
    return this.#storage.sql.exec<{ n: number }>("SELECT n FROM counts WHERE name = ?", name).toArray()[0]!.n;
  }

  keep(name: string, bytes: ArrayBuffer): void {
    this.#storage.sql.exec("INSERT OR REPLACE INTO counts (name, n, bytes) VALUES (?, 0, ?)", name, bytes);
  }

  kept(name: string): ArrayBuffer {
    const query = "SELECT bytes FROM counts WHERE name = ?";
    return this.#storage.sql.exec<{ bytes: ArrayBuffer }>(query, name).toArray()[0]!.bytes;
  }

  /** Writes until SQLite has no room: its own bound plays the full disk. */
  fill(): void {
    this.#storage.sql.exec("PRAGMA max_page_count = 10");
    for (let i = 0; ; i++) this.keep(`fill ${i}`, new ArrayBuffer(4_000));
  }

  change(list: string[]): string[] {
    list.push("changed");
    return list;
  }

  ringIn(ms: number): void {
    this.#storage.setAlarm(Date.now() + ms);
  }

  makeRoom(): void {
    this.#storage.sql.exec("PRAGMA query_only = 0");
  }

  alarm(): void | Promise<void> {
    if (failures-- > 0) throw new Error("not yet");
    const full = isFull;
    isFull = undefined;
    if (full === "later") return Promise.resolve().then(() => this.#failForever());
    if (full) this.#failForever();
    rung.push("rung");
  }

  #failForever(): void {
    this.#storage.sql.exec("PRAGMA query_only = 1");
    this.#storage.setAlarm(0);
  }
}

const open = (): LocalObjects =>
  new LocalObjects({
    folder,
    objectClass: Counter as never,
    env: () => ({}),
    waitUntil: () => {},
    onError: (error) => errors.push(error),
  });
const stub = (objects: LocalObjects, name = "one"): Promised<Counter> => objects.get(name) as Promised<Counter>;
type Promised<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : never;
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-objects-"));
  rung.length = errors.length = failures = 0;
  isFull = undefined;
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("an object keeps what it has written, by name", async () => {
  const objects = open();
  await stub(objects).add("a", 2);
  await stub(objects, "other/name").add("a", 5);
  objects.close();
  const again = open();
  expect(await stub(again).add("a", 1)).toBe(3);
  expect(await stub(again, "other/name").add("a", 1)).toBe(6);
  again.close();
});

test("a call that throws has written nothing", async () => {
  const objects = open();
  await stub(objects).add("a", 2);
  await expect(stub(objects).add("a", -1)).rejects.toThrow("negative");
  expect(await stub(objects).add("a", 0)).toBe(2);
  objects.close();
});

test("a full disk is named as the reason, and what was there stays", async () => {
  const objects = open();
  await stub(objects).add("a", 2);
  await expect(stub(objects).fill()).rejects.toThrow("database or disk is full");
  expect(await stub(objects).add("a", 0)).toBe(2);
  objects.close();
});

test("many calls leave small files", async () => {
  const objects = open();
  for (let call = 0; call < 1_500; call++) await stub(objects).add("a", 1);
  const files = await readdir(folder);
  const sizes = await Promise.all(files.map(async (name) => (await stat(join(folder, name))).size));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_000_000);
  expect(await stub(objects).add("a", 0)).toBe(1_500);
  objects.close();
});

test("arguments and results are copies, and bytes come back as a buffer", async () => {
  const objects = open();
  const list = ["given"];
  expect(await stub(objects).change(list)).toEqual(["given", "changed"]);
  expect(list).toEqual(["given"]);
  await stub(objects).keep("b", new Uint8Array([1, 2, 3]).buffer);
  expect(await stub(objects).kept("b")).toEqual(new Uint8Array([1, 2, 3]).buffer);
  objects.close();
});

test("an alarm that was set before the process ended goes off after the next start", async () => {
  const objects = open();
  await stub(objects).ringIn(30);
  objects.close();
  const again = open();
  again.wake();
  await vi.waitFor(() => expect(rung).toEqual(["rung"]), 60_000);
  again.close();
});

test("an alarm that fails rings again", async () => {
  failures = 1;
  const objects = open();
  await stub(objects).ringIn(1);
  await vi.waitFor(() => expect(rung).toEqual(["rung"]), 60_000);
  expect(errors).toHaveLength(1);
  objects.close();
});

test.each(["at once", "later"] as const)(
  "an alarm that finds a full disk %s ends no process, and rings again",
  async (when) => {
    const objects = open();
    isFull = when;
    await stub(objects).ringIn(0);
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0));
    expect(String(errors[0])).toContain("readonly");
    await stub(objects).makeRoom();
    await vi.waitFor(() => expect(rung).toEqual(["rung"]), 60_000);
    objects.close();
  },
);

test("a stub is no promise, and has no methods that its object lacks", async () => {
  const objects = open();
  expect(await objects.get("one")).toBeDefined();
  await expect((objects.get("one") as { nothing(): Promise<void> }).nothing()).rejects.toThrow("has no method nothing");
  objects.close();
});
