/** Memory of a put, a get and a restore of a large file, whatever its length. */
import { existsSync } from "node:fs";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestWorld, type World } from "../../world.ts";

const FILE_BYTES = 400_000_000;
/**
 * Whatever the length of the file: Node and our code take 115 MB, and 250 MB on a machine that is too busy to collect
 * garbage. Neither the file nor its chunks would fit.
 */
const RSS_BYTES_MAX = 400_000_000;
const hasProc = existsSync("/proc/self/status");
const reason = hasProc ? "" : " (skipped: there is no /proc to read it from)";

let world: World;

beforeAll(async () => {
  world = await startTestWorld({ k: 9, m: 3, stripeBytes: 4 * 1024 * 1024, survive: { regions: 1, providers: 1 } });
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, keep: [{ time: "1d" }] }));
});

afterAll(() => world.close());

test.skipIf(!hasProc)(`a file of 400 MB is put, got and restored in less than 400 MB of memory${reason}`, async () => {
  const path = join(world.dir, "upload-large");
  await writeFile(path, "begin");
  // Sparse: it costs no disk, and is read as any other file is.
  await truncate(path, FILE_BYTES);
  const put = await measured(["put", path, "--key", "large"]);
  expect(put.code).toBe(0);
  expect(put.rssBytesMax).toBeLessThan(RSS_BYTES_MAX);
  const get = await measured(["get", "large", "out-large"]);
  expect(get.code).toBe(0);
  expect(get.rssBytesMax).toBeLessThan(RSS_BYTES_MAX);
  const back = await readFile(join(world.dir, "out-large"));
  expect([back.length, back.toString("utf8", 0, 6)]).toEqual([FILE_BYTES, "begin\0"]);
  expect((await world.run(["rm", "large"])).code).toBe(0);
  const restored = await measured(["rm", "--undelete", "large"]);
  expect(restored.code).toBe(0);
  expect(restored.rssBytesMax).toBeLessThan(RSS_BYTES_MAX);
  expect(await world.verify("large")).toMatchObject({ sound: true });
});

/** Runs a command and returns the most memory that it held resident. */
async function measured(args: readonly string[]): Promise<{ code: number; rssBytesMax: number }> {
  let rssBytesMax = 0;
  const sampled = new AbortController();
  const { code } = await world.spawn(args, {
    onStart: (pid) => {
      const look = async (): Promise<void> => {
        const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
        // The kernel keeps the highest value, so no peak is missed between two looks.
        rssBytesMax = Math.max(rssBytesMax, 1024 * Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0));
      };
      const timer = setInterval(() => void look(), 20);
      sampled.signal.addEventListener("abort", () => clearInterval(timer));
    },
  });
  sampled.abort();
  expect(rssBytesMax).toBeGreaterThan(20_000_000);
  return { code, rssBytesMax };
}
