/** The AWS CLI and rclone as people use them: they write and read coded objects through the gateway. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";
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
  const env = {
    PATH: process.env["PATH"],
    HOME: world.dir,
    RCLONE_CONFIG_GW_TYPE: "s3",
    RCLONE_CONFIG_GW_PROVIDER: "Other",
    RCLONE_CONFIG_GW_ENDPOINT: gateway.url,
    RCLONE_CONFIG_GW_ACCESS_KEY_ID: GATEWAY_KEYS.accessKeyId,
    RCLONE_CONFIG_GW_SECRET_ACCESS_KEY: GATEWAY_KEYS.secretAccessKey,
  };
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
