/**
 * The verdict on an object from listings alone, where they leave no doubt.
 */
import { roundRobin } from "@agarose/core";
import type { Config } from "../config.ts";
import { LISTED_TOMBSTONE_BYTES_MAX } from "../objects/keys.ts";
import type { ObjectVerdict } from "../objects/verify-object.ts";
import type { KeyGroup, PlacedObject } from "./key-groups.ts";

/**
 * Sound, or undefined when only its manifest can tell. Sound is an object whose manifests have one ETag in all regions
 * and are no tombstones, and whose chunks are those of one upload: as many as the configuration's code has, each in its
 * region, all of one length, and none of them younger than the manifest beside it.
 */
export function verdictByListing(group: KeyGroup, config: Config): ObjectVerdict | undefined {
  const { key, chunks, manifests } = group;
  const [first] = manifests;
  if (!first?.etag || manifests.length !== config.regions.length) return undefined;
  if (first.bytes <= LISTED_TOMBSTONE_BYTES_MAX + 2 * first.name.length) return undefined;
  if (manifests.some(({ etag, bytes }) => etag !== first.etag || bytes !== first.bytes)) return undefined;
  const placement = roundRobin(config.code, config.regions, key);
  if (chunks.length !== placement.length) return undefined;
  const modifiedMs = new Map(manifests.map((manifest) => [manifest.store.region.name, manifest.modifiedMs]));
  const uploads = new Set(chunks.map(({ suffix }) => suffix.slice(0, suffix.indexOf("/"))));
  const seen = new Set<number>();
  for (const chunk of chunks) {
    const index = indexOf(chunk);
    const { name } = chunk.store.region;
    if (placement[index] !== name || chunk.bytes !== chunks[0]!.bytes) return undefined;
    if (chunk.modifiedMs > modifiedMs.get(name)!) return undefined;
    seen.add(index);
  }
  if (uploads.size !== 1 || seen.size !== placement.length) return undefined;
  const regions = config.regions.map(({ name }) => ({ region: name, state: "sound" as const }));
  const counts = { chunksSound: chunks.length, chunks: chunks.length };
  return {
    key,
    version: undefined,
    removed: false,
    sound: true,
    readable: true,
    manifests: regions,
    ...counts,
    damage: [],
  };
}

function indexOf({ suffix }: PlacedObject): number {
  const text = suffix.slice(suffix.indexOf("/") + 1);
  return /^\d{1,3}$/.test(text) ? Number(text) : -1;
}
