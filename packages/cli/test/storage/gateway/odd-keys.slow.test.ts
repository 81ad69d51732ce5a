/** Keys that S3 allows and paths do not: through the gateway, in the regions, and back to readers. */
import {
  CopyObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGatewayWorld, type GatewayWorld } from "../../gateway.ts";
import { REGIONS } from "../../world.ts";

/** In UTF-8 order, which is not that of UTF-16. */
const KEYS = [
  "!",
  "%2F",
  "+ &=;",
  "../up",
  "./here",
  "/",
  "//",
  "/first",
  "@",
  "Caf\u00e9",
  "Cafe\u0301",
  "_",
  "a",
  "a!.json",
  "a-b",
  "a.txt",
  "a/",
  "a/%2e%2e/b",
  "a/../b",
  "a/./b",
  "a/.hidden/b",
  "a//",
  "a//b",
  "a/b",
  "a/b/..",
  "a\\b",
  "a\u2028b",
  `${"long/".repeat(50)}${"n".repeat(600)}`,
  `${"я".repeat(127)}/${"漢".repeat(85)}`,
  "~",
  "\uff5e",
  "\u{1f408}",
].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

let started: GatewayWorld;
let client: GatewayWorld["client"];

beforeAll(async () => {
  started = await startGatewayWorld({ spoolBytes: 16 * 1024 * 1024 });
  ({ client } = started);
  for (const key of KEYS) await client.send(new PutObjectCommand({ Bucket, Key: key, Body: `of ${key}` }));
});

afterAll(() => started.close());

const textOf = async (key: string): Promise<string> => {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key: key }));
  return Body!.transformToString();
};

async function listed(more: Record<string, unknown> = {}): Promise<string[]> {
  const found: string[] = [];
  let token: string | undefined;
  do {
    const page = await client.send(
      new ListObjectsV2Command({ Bucket, EncodingType: "url", ...more, ContinuationToken: token }),
    );
    const names = [
      ...(page.Contents ?? []).map(({ Key }) => Key!),
      ...(page.CommonPrefixes ?? []).map((p) => p.Prefix!),
    ];
    found.push(...names.map((name) => decodeURIComponent(name)));
    token = page.NextContinuationToken;
  } while (token !== undefined);
  return found;
}

test("each is an object of its own, and lists have them in S3's order", async () => {
  for (const key of KEYS) expect(await textOf(key)).toBe(`of ${key}`);
  expect(await listed()).toEqual(KEYS);
  expect(await listed({ MaxKeys: 3 })).toEqual(KEYS);
  for (const prefix of ["a", "a/", "a/.", "/", "a//", "C", "я"]) {
    expect(await listed({ Prefix: prefix, MaxKeys: 2 })).toEqual(KEYS.filter((key) => key.startsWith(prefix)));
  }
  const folded = KEYS.map((key) => key.slice(0, key.indexOf("/") + 1 || undefined));
  expect((await listed({ Delimiter: "/", MaxKeys: 2 })).toSorted()).toEqual([...new Set(folded)].toSorted());
});

test("`get` reads each, and no region has a segment that folds or is too long for a file", async () => {
  for (const key of KEYS) expect((await started.world.get(key)).toString()).toBe(`of ${key}`);
  for (const name of await started.world.names()) {
    for (const segment of name.split("/")) {
      expect(segment).not.toMatch(/^\.{0,2}$/);
      expect(segment.length).toBeLessThanOrEqual(255);
    }
  }
  expect(REGIONS.length, "names were looked at in all regions").toBeGreaterThan(2);
});

test("a copy and a removal are of one key, and of no key that looks like it", async () => {
  const copied = "copies/../x//y/";
  await client.send(
    new CopyObjectCommand({ Bucket, Key: copied, CopySource: `${Bucket}/${encodeURIComponent("a/../b")}` }),
  );
  expect(await textOf(copied)).toBe("of a/../b");
  const gone = ["a//b", "a/../b", "/", copied];
  await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: gone.map((Key) => ({ Key })) } }));
  expect(await listed()).toEqual(KEYS.filter((key) => !gone.includes(key)));
});

test.each([
  [".", "InvalidArgument"],
  ["..", "InvalidArgument"],
  ["x".repeat(1_000), "KeyTooLongError"],
])("%s is refused before its bytes cross", async (key, name) => {
  const refused = client.send(new PutObjectCommand({ Bucket, Key: key, Body: "x" }));
  await expect(refused).rejects.toMatchObject({ name });
});
