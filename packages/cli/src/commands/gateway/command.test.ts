/** The command as a process: what it prints, and how it begins and ends. */
import { randomBytes } from "node:crypto";
import { GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestWorld, type World } from "../../../test/world.ts";

const KEYS = { accessKeyId: "client", secretAccessKey: "client-secret" };
let world: World;
beforeAll(async () => {
  world = await startTestWorld();
});
afterAll(() => world.close());

test.each(["SIGTERM", "SIGINT"] as const)("serves until %s, ends with 0, and what it took is there", async (signal) => {
  const printed = Promise.withResolvers<string>();
  const done = Promise.withResolvers<void>();
  const env = {
    AGAROSE_GATEWAY_ACCESS_KEY_ID: KEYS.accessKeyId,
    AGAROSE_GATEWAY_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
  };
  const ended = world.spawn(["gateway", "--listen", "127.0.0.1:0", "--json"], {
    env,
    killWhen: done.promise,
    killSignal: signal,
    onStdout: (text) => printed.resolve(String(text)),
  });
  const body = randomBytes(5_000);
  try {
    const { url, bucket } = JSON.parse(await printed.promise) as { url: string; bucket: string };
    const client = new S3Client({ endpoint: url, region: "us-east-1", credentials: KEYS, forcePathStyle: true });
    await client.send(new PutObjectCommand({ Bucket: bucket, Key: signal, Body: body }));
    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: signal }));
    expect(Buffer.from(await Body!.transformToByteArray()).equals(body)).toBe(true);
    client.destroy();
  } finally {
    done.resolve();
  }
  expect((await ended).code).toBe(0);
  expect((await world.get(signal)).equals(body)).toBe(true);
});

test("does not begin without keys, so that no gateway is open to all", async () => {
  const run = await world.run(["gateway", "--listen", "127.0.0.1:0"], { AGAROSE_GATEWAY_ACCESS_KEY_ID: "client" });
  expect(run.code).toBe(2);
  expect(run.stderr.toString()).toContain("USAGE: AGAROSE_GATEWAY_SECRET_ACCESS_KEY is not set");
});

test("does not begin with half a pair of keys of readers, or with that of writers", async () => {
  const writer = { AGAROSE_GATEWAY_ACCESS_KEY_ID: "client", AGAROSE_GATEWAY_SECRET_ACCESS_KEY: "secret" };
  const half = { ...writer, AGAROSE_GATEWAY_READER_SECRET_ACCESS_KEY: "other" };
  const run = (env: Record<string, string>) => world.run(["gateway", "--listen", "127.0.0.1:0"], env);
  const refused = await run(half);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("READER_ACCESS_KEY_ID is not set")]);
  const same = await run({ ...half, AGAROSE_GATEWAY_READER_ACCESS_KEY_ID: "client" });
  expect([same.code, same.stderr]).toEqual([2, expect.stringContaining("are the same")]);
});
