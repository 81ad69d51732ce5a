/** Memory and requests of a gateway while clients list a million keys. */
import { ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { keyName } from "@agarose/core/format";
import type { RegionConfig } from "@agarose/storage/config/config";
import type { ListedObject, Store } from "@agarose/storage/buckets/store";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gatewayOver, s3ClientOf } from "../../gateway.ts";
import { heapInUse } from "../../heap.ts";
import { inlineManifest } from "../../inline-manifest.ts";
import { startTestWorld, type World } from "../../world.ts";

const KEYS = 1_000_000;
const PAGE = 1000;
const PREFIX = "manifests/";

/** Keys without a common prefix, in folders of one each, or in one folder. */
const KEY_OF = {
  flat: (index: number) => `k${pad(index)}`,
  folders: (index: number) => `f${pad(index)}/one`,
  deep: (index: number) => (index < KEYS - 1 ? `all/d${pad(index)}` : "last"),
};
const pad = (index: number): string => String(index).padStart(7, "0");

let world: World;
/** Names that the regions have listed so far. */
let named = 0;
let keyOf: (index: number) => string = KEY_OF.flat;

beforeAll(async () => {
  world = await startTestWorld();
});
afterAll(() => world.close());

/** A region with a million manifests that are nowhere: names and bytes are made when they are asked for. */
function storeOf(region: RegionConfig): Store {
  const nameOf = (index: number): string => `${PREFIX}${keyName(keyOf(index))}.json`;
  async function* list(prefix: string, _signal?: AbortSignal, after = ""): AsyncGenerator<ListedObject> {
    let [low, high] = [0, KEYS];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (nameOf(middle) > after && nameOf(middle) >= prefix) high = middle;
      else low = middle + 1;
    }
    for (; low < KEYS && nameOf(low).startsWith(prefix); low++) {
      named++;
      yield { name: nameOf(low), bytes: 5_000, modifiedMs: 0, etag: `"${low}"` };
    }
  }
  return {
    region,
    list,
    async get(name: string) {
      const key = name.slice(PREFIX.length, -"!.json".length);
      return {
        status: 200,
        headers: new Headers(),
        body: new Blob([(await inlineManifest(key, "plain")) as BlobPart]).stream(),
      };
    },
  } as unknown as Store;
}

/** Lists `pages` pages, or all; returns names found, and the most bytes in use at the end of a page. */
async function listAll(client: S3Client, pages: number, more: { Delimiter?: string; StartAfter?: string } = {}) {
  const found: string[] = [];
  const before = heapInUse();
  let most = 0;
  let token: string | undefined;
  for (let at = 0; at < pages; at++) {
    const page = await client.send(new ListObjectsV2Command({ Bucket, ...more, ContinuationToken: token }));
    for (const { Key } of page.Contents ?? []) found.push(Key!);
    for (const { Prefix } of page.CommonPrefixes ?? []) found.push(Prefix!);
    most = Math.max(most, heapInUse() - before);
    token = page.NextContinuationToken;
    if (token === undefined) break;
  }
  return { found, most };
}

test.each<[keyof typeof KEY_OF, string | undefined]>([
  ["flat", undefined],
  ["folders", "/"],
])("pages of a million keys (%s) cost what is on them, at the beginning and in the middle", async (kind, Delimiter) => {
  keyOf = KEY_OF[kind];
  const stores = world.config.regions.map((region) => storeOf(region));
  const gateway = await gatewayOver({ ...world, stores } as unknown as World, {});
  const client = s3ClientOf(gateway);
  const how = Delimiter === undefined ? {} : { Delimiter };
  for (const first of [0, KEYS / 2]) {
    named = 0;
    const StartAfter = first === 0 ? "" : keyOf(first - 1);
    const { found, most } = await listAll(client, 3, { ...how, ...(StartAfter && { StartAfter }) });
    const expected = Array.from({ length: 3 * PAGE }, (_, at) => keyOf(first + at));
    expect(found).toEqual(Delimiter ? expected.map((key) => key.slice(0, key.indexOf("/") + 1)) : expected);
    expect(named, "names listed for three pages").toBeLessThan(stores.length * 4 * PAGE);
    expect(most, "bytes").toBeLessThan(20_000_000);
  }
  client.destroy();
  await gateway.close(0);
});

test("a folder of a million keys is one entry, and the keys in it are passed by", async () => {
  keyOf = KEY_OF.deep;
  named = 0;
  const stores = world.config.regions.map((region) => storeOf(region));
  const gateway = await gatewayOver({ ...world, stores } as unknown as World, {});
  const client = s3ClientOf(gateway);
  const { found, most } = await listAll(client, 2, { Delimiter: "/" });
  expect(found.toSorted()).toEqual(["all/", "last"]);
  expect(named).toBeLessThan(stores.length * 2 * PAGE);
  expect(most).toBeLessThan(20_000_000);
  client.destroy();
  await gateway.close(0);
});
