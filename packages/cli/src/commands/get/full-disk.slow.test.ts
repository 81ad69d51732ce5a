/** `get` with a limit of the file size in place of a full disk, and after a run that was killed. */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CREDENTIALS, startTestWorld, type World } from "../../../test/world.ts";

const CLI = fileURLToPath(new URL("../../../bin/agarose.js", import.meta.url));
const KIB = 1024;
const OBJECT_KIB = 4 * KIB;
const env = {
  PATH: process.env["PATH"],
  AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
};

let world: World;
const body = randomBytes(OBJECT_KIB * KIB);

beforeAll(async () => {
  world = await startTestWorld({ stripeBytes: 1024 * KIB });
  await world.put("film", body);
});

afterEach(() => world.faults.clear());
afterAll(() => world.close());

/** A file system of `kib` KiB, mounted at `folder`. False where this process may not mount one. */
async function mountSmall(folder: string, kib: number): Promise<boolean> {
  await mkdir(folder, { recursive: true });
  const options = ["-t", "tmpfs", "-o", `size=${kib}k`, "tmpfs", folder];
  return promisify(execFile)("mount", options).then(
    () => true,
    () => false,
  );
}

const canMount = await (async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-mount-"));
  const isMounted = await mountSmall(folder, 64);
  if (isMounted) await promisify(execFile)("umount", [folder]);
  await rm(folder, { recursive: true });
  return isMounted;
})();
const mountReason = canMount ? "" : " (skipped: this user may not mount a file system)";

/** Runs `agarose get film TARGET` where files have at most `limitKib` KiB. */
async function getWithLimit(limitKib: number, target: string): Promise<{ code: number; stderr: string }> {
  const command = `ulimit -f ${limitKib}; exec "$0" "$@"`;
  // The sizes of `ulimit -f` are KiB in bash only.
  const args = ["--norc", "-c", command, process.execPath, CLI, "get", "film", target, "--config", world.configPath];
  return promisify(execFile)("bash", args, { cwd: world.dir, env }).then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );
}

describe.skipIf(process.platform === "win32")("a file that does not fit", () => {
  // One KiB short, the last write alone is cut; half of it, one in the middle.
  test.each([OBJECT_KIB - 1, OBJECT_KIB / 2])(
    "is DISK_FULL at a limit of %i KiB, and the old file stays",
    async (limitKib) => {
      await writeFile(join(world.dir, "out"), "old");
      const before = await world.files();
      const { code, stderr } = await getWithLimit(limitKib, "out");
      expect(stderr).toMatch(/^DISK_FULL: out cannot be written in full \(EFBIG\)/m);
      expect(code).toBe(1);
      expect(await readFile(join(world.dir, "out"), "utf8")).toBe("old");
      expect(await world.files()).toEqual(before);
    },
  );

  test("is DISK_FULL on stdout, too", async () => {
    const redirected = `ulimit -f ${OBJECT_KIB - 1}; "$0" "$@" > short`;
    const args = ["--norc", "-c", redirected, process.execPath, CLI, "get", "film", "-", "--config", world.configPath];
    const failure = await promisify(execFile)("bash", args, { cwd: world.dir, env }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 1, stderr: expect.stringMatching(/^DISK_FULL: stdout/) });
    expect((await stat(join(world.dir, "short"))).size).toBe((OBJECT_KIB - 1) * KIB);
  });

  test("is whole when it just fits", async () => {
    expect(await getWithLimit(OBJECT_KIB, "whole")).toEqual({ code: 0, stderr: "" });
    expect((await readFile(join(world.dir, "whole"))).equals(body)).toBe(true);
  });
});

// One page short, the last write alone fails; half of it, one in the middle.
test.skipIf(!canMount).each([OBJECT_KIB - 4, OBJECT_KIB / 2])(
  `a file system of %i KiB that is full is DISK_FULL, and the old file stays${mountReason}`,
  async (kib) => {
    const folder = join(world.dir, `upload-full-${kib}`);
    expect(await mountSmall(folder, kib + 8)).toBe(true);
    try {
      // The old file takes a page, and the folder of the new one may.
      await writeFile(join(folder, "out"), "old");
      await writeFile(join(folder, "filler"), Buffer.alloc(4 * KIB));
      const { code, stderr } = await world.spawn(["get", "film", join(folder, "out")]);
      expect(stderr).toMatch(/^DISK_FULL: .*out cannot be written in full \(ENOSPC\)/m);
      expect(code).toBe(1);
      expect(await readFile(join(folder, "out"), "utf8")).toBe("old");
      expect((await readdir(folder)).toSorted()).toEqual(["filler", "out"]);
    } finally {
      await promisify(execFile)("umount", [folder]);
    }
  },
);

test("what a killed get leaves is removed by the next one for the same file", async () => {
  const partials = async (): Promise<string[]> => (await readdir(world.dir)).filter((name) => name.endsWith(".part"));
  // The last stripe never comes.
  for (const region of world.config.regions) {
    world.faults.set(region.name, async (request, _response, name) => {
      if (name.startsWith("chunks/") && !request.headers.range?.startsWith("bytes=0-")) await new Promise(() => {});
      return false;
    });
  }
  const get = spawn(process.execPath, [CLI, "get", "film", "killed", "--config", world.configPath], {
    cwd: world.dir,
    env,
  });
  while ((await partials()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  get.kill("SIGKILL");
  await once(get, "exit");
  const [left] = await partials();
  expect(left).toMatch(/^\.killed\.[\da-f]{8}-\d+-/);
  // Another's, who may be at work on another machine.
  const others = ".killed.00000000-1-00000000-abcdef01.part";
  await writeFile(join(world.dir, others), "");
  world.faults.clear();
  const next = await world.spawn(["get", "film", "killed"]);
  expect(next.code).toBe(0);
  expect(next.stderr).toContain(`removed ${left}, which an interrupted run left behind`);
  expect(await partials()).toEqual([others]);
});
