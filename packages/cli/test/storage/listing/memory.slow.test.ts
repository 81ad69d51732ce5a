/** Memory of `ls` and `repair` while they walk over many objects. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { heapInUse } from "../../heap.ts";
import { inlineManifest } from "../../inline-manifest.ts";
import { manifestName, startTestWorld, type World } from "../../world.ts";
import { repairObject } from "@agarose/storage/repair/repair-object";
import type { RegionConfig } from "@agarose/storage/config/config";
import { KeyListing, liveGroups } from "@agarose/storage/listing/keys";
import type { ListedObject, Store } from "@agarose/storage/buckets/store";
import { walkObjects } from "@agarose/storage/listing/walk-objects";

const CONTENT = "a small object";

let world: World;
beforeEach(async () => {
  world = await startTestWorld();
});
afterEach(() => world.close());

/** The manifests of many small objects, and nothing else: any other request throws. */
function storeOf(region: RegionConfig, objects: number, onWrite: () => void): Store {
  const hasMissed = region.name === world.config.regions[0]!.name;
  const written = new Map<string, Uint8Array>();
  async function* list(prefix: string): AsyncGenerator<ListedObject> {
    if (prefix !== "manifests/") return;
    for (let index = 0; index < objects; index++) {
      yield { name: manifestName(keyOf(index)), bytes: 5_000, modifiedMs: 0, etag: `"${index}"` };
    }
  }
  return {
    region,
    list,
    async get(name: string) {
      if (!name.startsWith("manifests/")) return { status: 404, headers: new Headers(), body: null };
      const key = name.slice("manifests/".length, -"!.json".length);
      // The first region has missed every put, so that each object needs a repair.
      const bytes = written.get(name) ?? (hasMissed ? undefined : await manifestOf(key));
      if (!bytes) return { status: 404, headers: new Headers(), body: null };
      return { status: 200, headers: new Headers({ etag: '"1"' }), body: new Blob([bytes as BlobPart]).stream() };
    },
    async put(name: string, body: Uint8Array) {
      // Enough to be read back by the repair that wrote it.
      written.clear();
      written.set(name, body);
      onWrite();
    },
    remove: async () => [],
  } as unknown as Store;
}

const keyOf = (index: number): string => String(index).padStart(7, "0");

/** The last one, which every region is asked for. */
let sealed: { readonly key: string; readonly bytes: Promise<Uint8Array> } | undefined;

function manifestOf(key: string): Promise<Uint8Array> {
  if (sealed?.key !== key) sealed = { key, bytes: inlineManifest(key, CONTENT) };
  return sealed.bytes;
}

test("ls goes over 100,000 objects in constant memory", async () => {
  const OBJECTS = 100_000;
  const stores = world.config.regions.map((region) => storeOf(region, OBJECTS, () => {}));
  const context = world.parts({ stores });
  const before = heapInUse();
  let most = 0;
  let keys = 0;
  for await (const { key } of liveGroups(new KeyListing("", context), context)) {
    expect(key).toBe(keyOf(keys));
    if (++keys % 10_000 === 0) most = Math.max(most, heapInUse() - before);
  }
  expect(keys).toBe(OBJECTS);
  expect(most).toBeLessThan(20_000_000);
});

test("repair mends 2,000 objects in constant memory", async () => {
  const OBJECTS = 2_000;
  let written = 0;
  const stores = world.config.regions.map((region) => storeOf(region, OBJECTS, () => written++));
  const walking = world.parts({ stores });
  const inUse: number[] = [];
  const mended = await walkObjects<boolean, number>(
    {
      name: "repair quick",
      options: { onWarning: (line) => expect.unreachable(line) },
      objectsAtATime: 1,
      act: async (key) => (await repairObject(key, walking, { quick: true })).after.sound,
      add(count, isSound) {
        if (count % 400 === 0) inUse.push(heapInUse());
        return count + (isSound ? 1 : 0);
      },
    },
    0,
    walking,
  );
  expect(mended).toBe(OBJECTS);
  expect(written).toBeGreaterThanOrEqual(OBJECTS);
  // A kilobyte that each object left behind would show.
  expect(inUse.at(-1)! - inUse[1]!).toBeLessThan(1_000 * (OBJECTS - 400));
});
