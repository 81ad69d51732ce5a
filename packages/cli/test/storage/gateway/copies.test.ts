/** The metadata and bytes of a copy at the gateway, its refusals, and the state after one that is interrupted. */
import { randomBytes } from "node:crypto";
import {
  CopyObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type CopyObjectCommandInput,
  type PutObjectCommandInput,
} from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { GATEWAY_KEYS, signed, startGatewayWorld, type GatewayWorld } from "../../gateway.ts";
import { DOWN, REGIONS, type World } from "../../world.ts";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";

let started: GatewayWorld;
let world: World;
let client: GatewayWorld["client"];

beforeAll(async () => {
  started = await startGatewayWorld();
  ({ world, client } = started);
});
afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});
afterAll(() => started.close());

const put = (Key: string, Body: Uint8Array | string, more: Partial<PutObjectCommandInput> = {}) =>
  client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }));
const copy = (from: string, Key: string, more: Partial<CopyObjectCommandInput> = {}) =>
  client.send(new CopyObjectCommand({ Bucket, Key, CopySource: `${Bucket}/${from}`, ...more }));
const head = (Key: string) => client.send(new HeadObjectCommand({ Bucket, Key, ChecksumMode: "ENABLED" }));
const get = async (Key: string): Promise<Buffer> => {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
  return Buffer.from(await Body!.transformToByteArray());
};

/** Counts the chunks that are stored in the meantime. */
function countChunks(): { readonly stored: number } {
  const count = { stored: 0 };
  for (const region of REGIONS) {
    world.faults.set(region, ({ method }, _response, name) => {
      if (method === "PUT" && name.startsWith("chunks/")) count.stored++;
      return false;
    });
  }
  return count;
}

test("other headers of an object take a manifest alone, and its checksum and ETag stay", async () => {
  const body = randomBytes(200_000);
  const { ETag, ChecksumCRC32 } = await put("self", body, { ChecksumAlgorithm: "CRC32", Metadata: { a: "1" } });
  const count = countChunks();
  await copy("self", "self", { MetadataDirective: "REPLACE", Metadata: { a: "2" }, ContentLanguage: "de" });
  expect(count.stored).toBe(0);
  expect(await head("self")).toMatchObject({ ETag, ChecksumCRC32, Metadata: { a: "2" }, ContentLanguage: "de" });
  expect((await get("self")).equals(body)).toBe(true);
  expect(await world.verify("self")).toMatchObject({ sound: true });
});

test("a copy onto itself never takes the place of what is put meanwhile", async () => {
  const outcomes: unknown[] = [];
  for (let round = 0; round < 5; round++) {
    const key = `raced/${round}`;
    await put(key, "before");
    let replaced: Promise<unknown> | undefined;
    for (const region of REGIONS) {
      world.faults.set(region, async ({ method }, _response, name) => {
        // The claim of the copy: the put begins before the region has it.
        if (method === "PUT" && name.startsWith(`claims/${key}`)) replaced ??= put(key, "another");
        return false;
      });
    }
    const copied = copy(key, key, { MetadataDirective: "REPLACE", Metadata: { a: "b" } });
    outcomes.push(await copied.then(() => "copied first").catch((error: Error) => error.name));
    expect(replaced, "the put came between").toBeDefined();
    await replaced;
    expect(String(await get(key))).toBe("another");
    expect((await head(key)).Metadata).toEqual({});
  }
  expect(outcomes.filter((outcome) => outcome !== "copied first" && outcome !== "OperationAborted")).toEqual([]);
});

test("a copy is bound to what it replaces, and to what it is of", async () => {
  await put("bound/from", "from");
  const { ETag } = await put("bound/to", "to");
  const failed = { name: "PreconditionFailed" };
  await expect(copy("bound/from", "bound/to", { IfNoneMatch: "*" })).rejects.toMatchObject(failed);
  await expect(copy("bound/from", "bound/to", { IfMatch: '"other"' })).rejects.toMatchObject(failed);
  await expect(copy("bound/from", "bound/new", { CopySourceIfMatch: ETag })).rejects.toMatchObject(failed);
  expect(String(await get("bound/to"))).toBe("to");
  await copy("bound/from", "bound/to", { IfMatch: ETag });
  expect(String(await get("bound/to"))).toBe("from");
});

test("a copy has the checksum that it is asked for, and else that of its source", async () => {
  const { ChecksumSHA256 } = await put("summed", "x", { ChecksumAlgorithm: "SHA256" });
  const same = await copy("summed", "summed/same");
  const other = await copy("summed", "summed/other", { ChecksumAlgorithm: "CRC32" });
  expect(same.CopyObjectResult?.ChecksumSHA256).toBe(ChecksumSHA256);
  expect(other.CopyObjectResult?.ChecksumCRC32).toMatch(/^.{6}==$/);
  expect(await head("summed/same")).toMatchObject({ ChecksumSHA256, ChecksumType: "FULL_OBJECT" });
  const { ChecksumCRC32, ChecksumSHA256: none } = await head("summed/other");
  expect([ChecksumCRC32, none]).toEqual([other.CopyObjectResult?.ChecksumCRC32, undefined]);
  expect((await head("summed/other")).ETag).toBe((await head("summed")).ETag);
});

test("headers that S3 would drop from a copy are refused, and so is a version that is not there", async () => {
  await put("kept", "x");
  for (const more of [{ Metadata: { a: "b" } }, { CacheControl: "no-store" }, { Expires: new Date(0) }]) {
    await expect(copy("kept", "dropped", more)).rejects.toMatchObject({ name: "InvalidRequest" });
  }
  await expect(copy("kept?versionId=1", "dropped")).rejects.toMatchObject({ name: "NoSuchVersion" });
  await expect(head("dropped")).rejects.toMatchObject({ name: "NotFound" });
});

test("a copy is right while a region is down, and an error where too few chunks are left", async () => {
  const body = randomBytes(100_000);
  await put("down/from", body);
  world.faults.set("tokyo", DOWN);
  await copy("down/from", "down/to");
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect((await get("down/to")).equals(body)).toBe(true);
  for (const region of REGIONS) {
    world.faults.set(region, ({ method }, response, name) => {
      if (method !== "GET" || !name.startsWith("chunks/down/from")) return false;
      response.writeHead(500).end();
      return true;
    });
  }
  await expect(copy("down/from", "down/none")).rejects.toMatchObject({ name: "ServiceUnavailable" });
  await expect(head("down/none")).rejects.toMatchObject({ name: "NotFound" });
});

test("a gateway that is killed in the middle of a copy leaves no object, and the next copy is whole", async () => {
  const body = randomBytes(300_000);
  await put("killed/from", body);
  const printed = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  for (const region of REGIONS) {
    world.faults.set(region, ({ method }, _response, name) => {
      if (method !== "PUT" || !name.startsWith("chunks/killed/to")) return false;
      begun.resolve();
      // Never answered: the process that waits for it is killed.
      return true;
    });
  }
  const env = {
    AGAROSE_GATEWAY_ACCESS_KEY_ID: GATEWAY_KEYS.accessKeyId,
    AGAROSE_GATEWAY_SECRET_ACCESS_KEY: GATEWAY_KEYS.secretAccessKey,
  };
  const ended = world.spawn(["gateway", "--listen", "127.0.0.1:0", "--json"], {
    env,
    killWhen: begun.promise,
    killSignal: "SIGKILL",
    onStdout: (text) => printed.resolve(String(text)),
  });
  const gateway = JSON.parse(await printed.promise) as { url: string };
  const headers = { "x-amz-copy-source": `${Bucket}/killed/from` };
  const url = await signed(gateway, { key: "killed/to", method: "PUT", headers });
  await expect(fetch(url, { method: "PUT", headers }).then((answer) => answer.text())).rejects.toThrow();
  await ended;
  world.faults.clear();
  await expect(head("killed/to")).rejects.toMatchObject({ name: "NotFound" });
  await copy("killed/from", "killed/to");
  expect((await get("killed/to")).equals(body)).toBe(true);
  for (const key of ["killed/from", "killed/to"]) expect(await world.verify(key)).toMatchObject({ sound: true });
});
