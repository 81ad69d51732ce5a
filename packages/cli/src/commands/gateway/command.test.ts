/** The command as a process: what it prints, and how it begins and ends. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestWorld, type World } from "../../../test/world.ts";

const KEYS = { accessKeyId: "client", secretAccessKey: "client-secret" };
let world: World;
beforeAll(async () => {
  world = await startTestWorld();
});
afterAll(() => world.close());

/** Runs a gateway until `use` has ended, and resolves to its exit code. */
async function serving(
  killSignal: NodeJS.Signals,
  args: readonly string[],
  use: (Bucket: string, clientOf: (credentials: typeof KEYS) => S3Client) => Promise<void>,
): Promise<number> {
  const printed = Promise.withResolvers<string>();
  const done = Promise.withResolvers<void>();
  const ended = world.spawn(["gateway", "--listen", "127.0.0.1:0", "--json", ...args], {
    env: {
      AGAROSE_GATEWAY_ACCESS_KEY_ID: KEYS.accessKeyId,
      AGAROSE_GATEWAY_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    },
    killWhen: done.promise,
    killSignal,
    onStdout: (text) => printed.resolve(String(text)),
  });
  try {
    const { url: endpoint, bucket } = JSON.parse(await printed.promise) as { url: string; bucket: string };
    const usual = { endpoint, region: "us-east-1", forcePathStyle: true };
    // The SDK writes into what it is given.
    await use(bucket, (credentials) => new S3Client({ ...usual, credentials: { ...credentials } }));
  } finally {
    done.resolve();
  }
  return (await ended).code;
}

test.each(["SIGTERM", "SIGINT"] as const)("serves until %s, ends with 0, and what it took is there", async (signal) => {
  const body = randomBytes(5_000);
  const code = await serving(signal, [], async (Bucket, clientOf) => {
    const client = clientOf(KEYS);
    await client.send(new PutObjectCommand({ Bucket, Key: signal, Body: body }));
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key: signal }));
    expect(Buffer.from(await Body!.transformToByteArray()).equals(body)).toBe(true);
    client.destroy();
  });
  expect(code).toBe(0);
  expect((await world.get(signal)).equals(body)).toBe(true);
});

test("serves to the pairs of a file alone, whatever the environment has", async () => {
  const keys = join(world.dir, "clients.json");
  const limited = { accessKeyId: "limited", secretAccessKey: "limited-secret", prefix: "limited/" };
  await writeFile(keys, JSON.stringify([limited]));
  const code = await serving("SIGTERM", ["--keys", keys], async (Bucket, clientOf) => {
    const [own, other] = [clientOf(limited), clientOf(KEYS)];
    const put = (Key: string) => new PutObjectCommand({ Bucket, Key, Body: "x" });
    await own.send(put("limited/a"));
    await expect(own.send(put("a"))).rejects.toMatchObject({ name: "AccessDenied" });
    await expect(other.send(put("limited/a"))).rejects.toMatchObject({ name: "InvalidAccessKeyId" });
    own.destroy();
    other.destroy();
  });
  expect(code).toBe(0);
});

test("does not begin with a file of pairs that is wrong", async () => {
  const keys = join(world.dir, "wrong.json");
  await writeFile(keys, JSON.stringify([{ ...KEYS, prefix: "a" }]));
  const run = await world.run(["gateway", "--listen", "127.0.0.1:0", "--keys", keys]);
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining("CONFIG_INVALID")]);
  expect(run.stderr).toContain("`0.prefix` must be a key that ends with a slash, such as `photos/`\n");
});

test("does not begin without keys, so that no gateway is open to all", async () => {
  const run = await world.run(["gateway", "--listen", "127.0.0.1:0"], { AGAROSE_GATEWAY_ACCESS_KEY_ID: "client" });
  expect(run.code).toBe(2);
  expect(run.stderr.toString()).toContain("USAGE: AGAROSE_GATEWAY_SECRET_ACCESS_KEY is not set");
});
