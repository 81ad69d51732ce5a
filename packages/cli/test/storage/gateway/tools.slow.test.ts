/** The AWS CLI and rclone as people use them: they write and read coded objects through the gateway. */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi, type TestContext } from "vitest";
import { GATEWAY_KEYS, startGatewayWorld, type GatewayWorld } from "../../gateway.ts";
import type { World } from "../../world.ts";
import type { Gateway } from "@agarose/storage/gateway/gateway";

const run = promisify(execFile);
const FILES = {
  a: randomBytes(10),
  "a.txt": randomBytes(3000),
  "sub/b c.bin": randomBytes(20_000),
  // Above 8 MiB the AWS CLI sends parts.
  "large.bin": randomBytes(9 * 1024 * 1024),
};
let started: GatewayWorld;
let world: World;
let gateway: Gateway;

beforeAll(async () => {
  started = await startGatewayWorld({ stripeBytes: 1024 * 1024 });
  ({ world, gateway } = started);
});

afterAll(async () => {
  await started.close();
});

/** Skips the test where the tool is absent, and says so. */
async function need(tool: string, context: TestContext): Promise<void> {
  const isThere = await run(tool, ["--version"]).then(
    () => true,
    () => false,
  );
  context.skip(!isThere, `${tool} is not installed: install it to run this test`);
}

async function writeFiles(name: string): Promise<string> {
  const folder = join(world.dir, name);
  await mkdir(join(folder, "sub"), { recursive: true });
  for (const [path, bytes] of Object.entries(FILES)) await writeFile(join(folder, path), bytes);
  return folder;
}

async function expectFiles(folder: string): Promise<void> {
  for (const [path, bytes] of Object.entries(FILES)) {
    expect((await readFile(join(folder, path))).equals(bytes), path).toBe(true);
  }
}

function rcloneEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"],
    HOME: world.dir,
    RCLONE_CONFIG_GW_TYPE: "s3",
    RCLONE_CONFIG_GW_PROVIDER: "Other",
    RCLONE_CONFIG_GW_ENDPOINT: gateway.url,
    RCLONE_CONFIG_GW_ACCESS_KEY_ID: GATEWAY_KEYS.accessKeyId,
    RCLONE_CONFIG_GW_SECRET_ACCESS_KEY: GATEWAY_KEYS.secretAccessKey,
  };
}

test("aws s3 sync writes a folder, finds nothing to do, reads it back and deletes", async (context) => {
  await need("aws", context);
  const env = {
    PATH: process.env["PATH"],
    HOME: world.dir,
    AWS_ACCESS_KEY_ID: GATEWAY_KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: GATEWAY_KEYS.secretAccessKey,
  };
  const aws = async (...args: string[]): Promise<string> => {
    const common = ["--endpoint-url", gateway.url, "--region", "us-east-1", "s3"];
    return (await run("aws", [...common, ...args], { env })).stdout;
  };
  const folder = await writeFiles("aws");
  const bucket = "s3://agarose/aws";
  await aws("sync", folder, bucket, "--no-progress");
  expect(await aws("sync", folder, bucket, "--no-progress", "--delete")).toBe("");
  await aws("sync", bucket, join(world.dir, "aws-back"), "--no-progress");
  await expectFiles(join(world.dir, "aws-back"));
  await rm(join(folder, "a"));
  expect(await aws("sync", folder, bucket, "--no-progress", "--delete")).toBe(`delete: ${bucket}/a\n`);
  expect((await world.get("aws/a.txt")).equals(FILES["a.txt"])).toBe(true);
});

test("rclone copies a folder, finds it equal, reads it back and deletes it", async (context) => {
  await need("rclone", context);
  const env = rcloneEnvironment();
  const rclone = async (...args: string[]): Promise<string> => {
    const parts = ["--s3-upload-cutoff", "6M", "--s3-chunk-size", "5M", "--retries", "1"];
    return (await run("rclone", [...args, ...parts], { env })).stdout;
  };
  const folder = await writeFiles("rclone");
  await rclone("copy", folder, "gw:agarose/rclone");
  await rclone("check", "--download", folder, "gw:agarose/rclone");
  // It keeps the time of a file in the object's metadata, and finds nothing to do.
  expect(await rclone("sync", "--dry-run", "-v", folder, "gw:agarose/rclone")).not.toMatch(/copy|delete/i);
  await rclone("sync", "gw:agarose/rclone", join(world.dir, "rclone-back"));
  await expectFiles(join(world.dir, "rclone-back"));
  await rclone("delete", "gw:agarose/rclone");
  expect(await rclone("lsf", "-R", "gw:agarose")).not.toContain("rclone/a");
});

test("rclone mounts a prefix, in which files are written, renamed, read and removed", async (context) => {
  await need("rclone", context);
  await need("fusermount3", context);
  context.skip(!existsSync("/dev/fuse"), "this kernel has no FUSE");
  const [from, mounted] = [await writeFiles("mounted"), join(world.dir, "mount")];
  await mkdir(mounted);
  const options = ["--vfs-cache-mode", "writes", "--vfs-write-back", "100ms"];
  const server = spawn("rclone", ["mount", "gw:agarose/mount", mounted, ...options], {
    env: rcloneEnvironment(),
    stdio: "ignore",
  });
  const ended = once(server, "exit");
  try {
    await vi.waitFor(async () => expect(await readFile("/proc/mounts", "utf8")).toContain(mounted), 60_000);
    await cp(from, mounted, { recursive: true });
    const stored = async () => expect((await world.get("mount/large.bin")).equals(FILES["large.bin"])).toBe(true);
    await vi.waitFor(stored, { timeout: 60_000, interval: 200 });
    await expectFiles(mounted);
    await rename(join(mounted, "large.bin"), join(mounted, "sub/moved.bin"));
    await rm(join(mounted, "a"));
    expect((await world.get("mount/sub/moved.bin")).equals(FILES["large.bin"])).toBe(true);
    for (const key of ["mount/large.bin", "mount/a"]) await expect(world.get(key)).rejects.toThrow();
  } finally {
    server.kill();
    await ended;
  }
});
