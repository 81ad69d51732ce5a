/** Keys in force and the identity of buckets: what writers are refused for, and what holds none of them up. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { systemClock } from "@agarose/core";
import { acceptUnsigned } from "@agarose/core/format";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startGateway } from "@agarose/storage/gateway/gateway";
import { GATEWAY_KEYS, s3ClientOf } from "../../gateway.ts";
import { DOWN, REGIONS, startTestWorld, type RunResult, type World } from "../../world.ts";
import { loadConfig } from "@agarose/storage/config/config";
import { WRITING } from "../../../src/lib/context.ts";
import { closeParts, openParts } from "@agarose/storage/parts";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { CONTROL_NAME, type ControlRecord } from "@agarose/storage/commit/control-record";
import { announce, Fence, LEASE_MS } from "@agarose/storage/commit/fence";

let world: World;
let old: string;

beforeEach(async () => {
  world = await startTestWorld();
  old = join(world.dir, "old.json");
  await run("keys", "new", "one.pem");
  await writeFile(old, await readFile(world.configPath));
  await put("one");
});

afterEach(() => world.close());

/** Runs a command that must succeed. */
async function run(...args: string[]): Promise<RunResult> {
  const result = await world.run(args);
  expect(result.code, `${args.join(" ")}: ${result.stderr}${result.stdout.toString()}`).toBe(0);
  return result;
}

async function put(text: string, ...more: string[]): Promise<RunResult> {
  await writeFile(join(world.dir, "upload-page"), text);
  return world.run(["put", "upload-page", "--key", "page", ...more]);
}

const record = async (region: string): Promise<ControlRecord> =>
  JSON.parse((await world.read(region, CONTROL_NAME)).toString()) as ControlRecord;
const configured = async (): Promise<{ regions: { name: string; bucket: string; endpoint: string }[] }> =>
  JSON.parse(await readFile(world.configPath, "utf8"));

async function configure(change: (config: Awaited<ReturnType<typeof configured>>) => void): Promise<void> {
  const config = await configured();
  change(config);
  await writeFile(world.configPath, JSON.stringify(config));
}

async function rotate(...steps: string[]): Promise<void> {
  for (const step of steps) {
    if (step === "apply") await run("keys", "apply");
    else await run("keys", "rotate", "two.pem", ...(step === "start" ? [] : [`--${step}`]));
  }
}

describe("the first write", () => {
  test("gives every bucket the name of its region, in one deployment", async () => {
    const records = await Promise.all(REGIONS.map(record));
    expect(records.map(({ region }) => region)).toEqual(REGIONS);
    expect(new Set(records.map(({ deployment }) => deployment)).size).toBe(1);
    expect(records.every(({ epoch, signature }) => epoch === 2 && signature !== undefined)).toBe(true);
  });

  test("of two machines at once makes one deployment", async () => {
    for (const region of REGIONS) await world.store(region).remove([CONTROL_NAME]);
    const puts = await Promise.all([1, 2].map((n) => world.spawn(["put", "upload-page", "--key", `page${n}`])));
    expect(puts.map(({ code }) => code)).toEqual([0, 0]);
    expect(new Set((await Promise.all(REGIONS.map(record))).map(({ deployment }) => deployment)).size).toBe(1);
  });
});

const VERBS: [verb: string, args: readonly string[]][] = [
  ["put", ["put", "upload-page", "--key", "page"]],
  ["put of a new key", ["put", "upload-page", "--key", "new"]],
  ["rm", ["rm", "page"]],
  ["gc --delete", ["gc", "--delete"]],
];

/** Verbs that complete what a region lacks, and what it lacks: the tombstone or manifest, or a chunk. */
const COMPLETING: [verb: string, lost: "manifests/" | "chunks/", args: readonly string[]][] = [
  ["rm of what is removed", "manifests/", ["rm", "gone"]],
  ["repair of a tombstone", "manifests/", ["repair", "gone"]],
  ["repair of a manifest", "manifests/", ["repair", "page"]],
  ["repair of a chunk", "chunks/", ["repair", "page"]],
  ["scrub", "chunks/", ["scrub"]],
];

const MISPLACED: [what: string, change: (config: Awaited<ReturnType<typeof configured>>) => void][] = [
  ["two regions have one bucket", ({ regions }) => (regions[1]!.bucket = regions[0]!.bucket)],
  [
    "two regions have one bucket under two addresses of its endpoint",
    ({ regions }) => {
      regions[1]!.bucket = regions[0]!.bucket;
      regions[1]!.endpoint = regions[0]!.endpoint.replace("127.0.0.1", "localhost");
    },
  ],
  [
    "two buckets are swapped",
    ({ regions }) => ([regions[0]!.bucket, regions[1]!.bucket] = [regions[1]!.bucket, regions[0]!.bucket]),
  ],
];

describe.each(MISPLACED)("when %s", (_what, change) => {
  test.each(VERBS)("%s is refused with REGION_MISPLACED", async (_verb, args) => {
    await configure(change);
    await writeFile(join(world.dir, "upload-page"), "two");
    const names = (await world.names("manifests/")).toSorted();
    const { code, stdout, stderr } = await world.run(args);
    expect([code === 0, `${stdout.toString()}${stderr}`]).toEqual([false, expect.stringContaining("REGION_MISPLACED")]);
    expect((await world.names("manifests/")).toSorted()).toEqual(names);
  });

  test("doctor fails, also before anything was stored", async () => {
    await configure(change);
    const { code, stdout } = await world.run(["doctor"]);
    expect([code, stdout.toString()]).toEqual([1, expect.stringContaining("REGION_MISPLACED")]);
  });
});

test("a first key for a configuration that lacks the deployment's own takes nothing from the deployment", async () => {
  const before = await record("frankfurt");
  expect(before.signers).toHaveLength(1);
  const { publicKeys: _keys, signing: _signing, ...others } = JSON.parse(await readFile(world.configPath, "utf8"));
  await writeFile(world.configPath, JSON.stringify({ ...others, unsigned: true }));
  const { stderr } = await run("keys", "new", "stranger.pem");
  expect(stderr).toContain(`KEYS_OUTDATED: ${before.signers[0]}`);
  for (const region of REGIONS)
    expect(await record(region)).toEqual({ ...before, region, signature: expect.anything() });
  expect((await put("by a stranger")).code).toBe(1);
  expect((await world.run(["doctor", "--fix"])).code).toBe(1);
  // A holder of the key continues as before.
  await writeFile(world.configPath, await readFile(old));
  expect((await put("two")).code).toBe(0);
});

test("a bucket of another deployment is refused", async () => {
  const other = await startTestWorld();
  try {
    await other.run(["keys", "new", "other.pem"]);
    // The same key, as a publisher with two deployments may have.
    const { publicKeys, signing } = JSON.parse(await readFile(world.configPath, "utf8"));
    const json = JSON.parse(await readFile(other.configPath, "utf8")) as object;
    await writeFile(
      other.configPath,
      JSON.stringify({ ...json, publicKeys, signing: { keyFile: join(world.dir, signing.keyFile) } }),
    );
    for (const region of REGIONS) await other.store(region).remove([CONTROL_NAME]);
    await writeFile(join(other.dir, "upload-page"), "theirs");
    expect((await other.run(["put", "upload-page"])).code).toBe(0);
    await configure(({ regions }) => (regions[2]!.endpoint = other.endpoint.url));
    const { code, stderr } = await put("two");
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/REGION_MISPLACED: the buckets of virginia belong to another/),
    ]);
  } finally {
    await other.close();
  }
});

describe("a machine with the configuration from before a rotation", () => {
  test("goes on while both keys are in force, and is refused once the new one signs, or the old one is gone", async () => {
    await rotate("start");
    expect((await put("two", "--config", old)).code).toBe(0);
    await rotate("sign");
    await writeFile(join(world.dir, "upload-page"), "by the old machine");
    for (const [verb, args] of VERBS) {
      const { code, stdout, stderr } = await world.run([...args, "--config", old]);
      expect([verb, code === 0, `${stdout.toString()}${stderr}`]).toEqual([
        verb,
        false,
        expect.stringContaining("KEYS_OUTDATED"),
      ]);
    }
    // One that has both keys and still signs with the old one may do so until the end.
    const both = JSON.parse(await readFile(world.configPath, "utf8")) as object;
    const late = join(world.dir, "late.json");
    await writeFile(late, JSON.stringify({ ...both, signing: { keyFile: "one.pem" } }));
    expect((await put("three", "--config", late)).code).toBe(0);
    await rotate("apply", "finish");
    const refused = await put("four", "--config", late);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("KEYS_OUTDATED")]);
    expect((await run("get", "page", "-")).stdout.toString()).toBe("three");
    // Nor can it put its own key into force again.
    expect((await world.run(["doctor", "--fix", "--config", late])).stdout.toString()).toContain("KEYS_OUTDATED");
    expect((await put("five")).code).toBe(0);
  });

  test.each(COMPLETING)("completes nothing by %s", async (_verb, lost, args) => {
    await put("one".repeat(15_000));
    await run("put", "upload-page", "--key", "gone");
    await run("rm", "gone");
    await rotate("start", "sign", "apply");
    // It trusts the new key, and would sign with the old one.
    const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
    await writeFile(old, JSON.stringify({ ...json, signing: { keyFile: "one.pem" } }));
    await rotate("finish");
    const kept = async (): Promise<string[]> => {
      const names = (await world.names(lost)).filter((name) => name.startsWith("tokyo/"));
      return names.map((name) => name.slice("tokyo/".length)).filter((name) => name.includes(args[1] ?? "page"));
    };
    await world.store("tokyo").remove(await kept());
    const { code, stdout, stderr } = await world.run([...args, "--config", old]);
    expect([code, `${stdout.toString()}${stderr}`]).toEqual([1, expect.stringContaining("KEYS_OUTDATED")]);
    expect(await kept()).toEqual([]);
    await run(...args);
    expect(await kept()).toHaveLength(1);
  });

  test("stores nothing in the open, or by a secret that was dropped, below a prefix that is encrypted", async () => {
    await run("keys", "secret", "one.secret");
    const plain = await put("in the open", "--config", old);
    expect([plain.code, plain.stderr]).toEqual([1, expect.stringContaining("KEYS_OUTDATED")]);
    expect((await put("two")).code).toBe(0);
    const before = join(world.dir, "before.json");
    await writeFile(before, await readFile(world.configPath));
    await run("keys", "secret", "two.secret");
    await run("keys", "secret", "two.secret", "--encrypt");
    expect((await put("three", "--config", before)).code).toBe(0);
    await run("keys", "apply");
    await run("keys", "secret", "two.secret", "--finish");
    const late = await put("four", "--config", before);
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining("KEYS_OUTDATED")]);
    expect((await run("get", "page", "-")).stdout.toString()).toBe("three");
  });
});

test("a machine without the private key gives no bucket a record that no one has signed", async () => {
  await put("one".repeat(15_000));
  const { signing: _signing, ...keyless } = JSON.parse(await readFile(world.configPath, "utf8")) as { signing: object };
  await writeFile(old, JSON.stringify(keyless));
  const lost = (await world.names("")).filter((name) => /^tokyo\/(chunks|control)\//.test(name));
  const tokyo = world.store("tokyo");
  await tokyo.remove(lost.map((name) => name.slice("tokyo/".length)));
  const { stdout } = await run("repair", "page", "--config", old);
  expect(stdout.toString()).toContain("1 chunk and 0 manifests written");
  expect(await tokyo.head(CONTROL_NAME)).toBeUndefined();
});

describe("a gateway that was started before a rotation", () => {
  test("answers 503 until its configuration is the new one, and then goes on by itself", async () => {
    const { signal } = new AbortController();
    const open = async (path: string) => openParts(await loadConfig(path), WRITING, signal);
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: "world", AWS_SECRET_ACCESS_KEY: "world-secret" });
    let path = old;
    const opened = [await open(path)];
    const reload = async () => {
      opened.push(await open(path));
      return opened.at(-1)!;
    };
    const usual = { pairs: [GATEWAY_KEYS] as const, spoolBytes: 2 ** 30, port: 0, host: "127.0.0.1" };
    const gateway = await startGateway({ ...usual, context: opened[0]!, reload });
    const [client, patient] = [s3ClientOf(gateway), s3ClientOf(gateway, GATEWAY_KEYS, 5)];
    const command = () => new PutObjectCommand({ Bucket: "agarose", Key: "page", Body: "by a client" });
    try {
      await client.send(command());
      await rotate("start", "sign", "apply", "finish");
      await expect(client.send(command())).rejects.toMatchObject({ $metadata: { httpStatusCode: 503 } });
      path = world.configPath;
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      await patient.send(command());
      expect((await run("get", "page", "-")).stdout.toString()).toBe("by a client");
    } finally {
      client.destroy();
      patient.destroy();
      await gateway.close(0);
      for (const deployment of opened) closeParts(deployment);
    }
  });
});

describe("a minority of regions", () => {
  test("that shows the records of before rolls nothing back", async () => {
    const before = await Promise.all(REGIONS.map((region) => world.read(region, CONTROL_NAME)));
    await rotate("start", "sign", "apply", "finish");
    for (const at of [0, 1]) await world.tamper(REGIONS[at]!, CONTROL_NAME, () => before[at]!);
    const { code, stderr } = await put("two", "--key", "new", "--config", old);
    expect([code, stderr]).toEqual([1, expect.stringContaining("KEYS_OUTDATED")]);
    expect((await put("three")).code).toBe(0);
  });

  test.each([
    ["garbage", () => Buffer.from("<html>")],
    [
      "a forged record with a high epoch",
      (bytes: Buffer) => Buffer.from(bytes.toString().replace(/"epoch":\d+/, '"epoch":999')),
    ],
    ["megabytes", () => Buffer.alloc(2 ** 21, 32)],
    ["nothing", () => undefined],
  ])("that shows %s holds up no writer", async (_what, change) => {
    for (const region of REGIONS.slice(0, 2)) await world.tamper(region, CONTROL_NAME, change);
    expect((await put("two")).code).toBe(0);
    expect((await record("tokyo")).epoch).toBe(2);
  });

  test("that is down holds up no writer", async () => {
    for (const region of REGIONS.slice(0, 2)) world.faults.set(region, DOWN);
    expect((await put("two")).code).toBe(0);
    expect(world.fired.size).toBe(2);
  });
});

test("a look at the records costs one request a region for a lease, and is taken again after it", async () => {
  const config = await loadConfig(world.configPath);
  let gets = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (request, _response, name) => {
      if (request.method === "GET" && name === CONTROL_NAME) gets++;
      return false;
    });
  }
  let nowMs = 0;
  const clock = { ...systemClock, now: () => nowMs };
  const { signal } = new AbortController();
  const context = { config, stores: world.stores, signal, clock, breaker: new Breaker(clock), trust: acceptUnsigned };
  const fence = new Fence(context);
  for (let i = 0; i < 20; i++) await fence.check();
  expect(gets).toBe(REGIONS.length);
  // From half of it on, the next look begins beside what it lets through.
  nowMs = LEASE_MS / 2;
  await fence.check();
  expect(gets).toBe(REGIONS.length);
  nowMs = LEASE_MS + 1;
  await announce({ signers: ["0123456789abcdef"], signer: "0123456789abcdef" }, context);
  gets = 0;
  await expect(fence.check()).rejects.toMatchObject({ code: "KEYS_OUTDATED" });
  expect(gets).toBe(REGIONS.length);
});
