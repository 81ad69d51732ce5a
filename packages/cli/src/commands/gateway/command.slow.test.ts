/** The command as a process over a region that is down for a while. */
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { CHUNK_PREFIX } from "@agarose/core/format";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { DOWN, startTestWorld } from "../../../test/world.ts";

const KEYS = { accessKeyId: "client", secretAccessKey: "client-secret" };

test("a region gets what it has missed of a put, without any command, and the log says so", async () => {
  const world = await startTestWorld();
  const printed = Promise.withResolvers<string>();
  const logged = Promise.withResolvers<string>();
  const env = {
    AGAROSE_GATEWAY_ACCESS_KEY_ID: KEYS.accessKeyId,
    AGAROSE_GATEWAY_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
  };
  const ended = world.spawn(["gateway", "--listen", "127.0.0.1:0", "--json"], {
    env,
    killWhen: logged.promise,
    onStdout: (text) => printed.resolve(String(text)),
    onStderr: (text) => logged.resolve(String(text)),
  });
  void ended.then(() => logged.resolve("ended"));
  const { url, bucket } = JSON.parse(await printed.promise) as { url: string; bucket: string };
  const client = new S3Client({ endpoint: url, region: "us-east-1", credentials: KEYS, forcePathStyle: true });
  world.faults.set("tokyo", DOWN);
  await client.send(new PutObjectCommand({ Bucket: bucket, Key: "a/film", Body: new Uint8Array(50_000).fill(7) }));
  client.destroy();
  expect(world.fired.get("tokyo"), "the fault fired").toBeGreaterThan(0);
  world.faults.clear();
  expect(await logged.promise).toBe("repaired    a/film  1 chunk and 6 manifests written\n");
  const chunks: string[] = [];
  for await (const { name } of world.store("tokyo").list(`${CHUNK_PREFIX}a/film!`)) chunks.push(name);
  expect(chunks).toHaveLength(1);
  expect((await ended).code).toBe(0);
  await world.close();
});

test("another file of keys is taken while it runs, and one with a mistake is not", async () => {
  const world = await startTestWorld();
  const path = join(world.dir, "clients.json");
  const [first, second] = [
    { accessKeyId: "first", secretAccessKey: "one" },
    { accessKeyId: "second", secretAccessKey: "another" },
  ];
  await writeFile(path, JSON.stringify([first]));
  const printed = Promise.withResolvers<string>();
  const over = Promise.withResolvers<void>();
  let logged = "";
  const ended = world.spawn(["gateway", "--listen", "127.0.0.1:0", "--json", "--keys", path], {
    killWhen: over.promise,
    onStdout: (text) => printed.resolve(String(text)),
    onStderr: (text) => (logged += String(text)),
  });
  const { url, bucket } = JSON.parse(await printed.promise) as { url: string; bucket: string };
  const put = async (credentials: typeof KEYS): Promise<string> => {
    // The SDK adds to the object that it is given.
    const client = new S3Client({
      endpoint: url,
      region: "us-east-1",
      credentials: { ...credentials },
      forcePathStyle: true,
      maxAttempts: 1,
    });
    const sent = client.send(new PutObjectCommand({ Bucket: bucket, Key: credentials.accessKeyId, Body: "x" }));
    return sent
      .then(
        () => "stored",
        ({ name }: Error) => name,
      )
      .finally(() => client.destroy());
  };
  const wait = { timeout: 20_000, interval: 300 };
  expect([await put(first), await put(second)]).toEqual(["stored", "InvalidAccessKeyId"]);
  await writeFile(path, JSON.stringify([second]));
  await vi.waitFor(async () => expect(await put(second)).toBe("stored"), wait);
  expect(await put(first)).toBe("InvalidAccessKeyId");
  await writeFile(path, "[");
  await vi.waitFor(() => expect(logged).toMatch(/warning: the pairs of keys stay as they were: .*is not JSON/), wait);
  expect(await put(second)).toBe("stored");
  over.resolve();
  expect((await ended).code).toBe(0);
  await world.close();
});
