/**
 * An object as format 1 stored it, in the buckets of a configuration.
 */
import { hash } from "node:crypto";
import { chunkName, encodeHashes, encodeManifest, manifestName, roundRobin, type Code } from "@agarose/core";
import { referenceCodec } from "@agarose/core/testing";
import type { Config } from "../../src/config/config.ts";
import { KEY } from "./operations.ts";

interface PlacedBytes {
  /** Index of the region. */
  readonly region: number;
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The objects of a key with this content, which has to fit in one stripe. */
export function format1Of(
  { regions, stripeBytes }: Config,
  code: Code,
  content: Uint8Array,
  key = KEY,
): {
  readonly upload: string;
  readonly objects: readonly PlacedBytes[];
} {
  const { k, m } = code;
  const sha256 = hash("sha256", content);
  const upload = hash("sha256", `agarose/1 ${sha256} ${k}+${m} ${stripeBytes}`).slice(0, 32);
  const shardBytes = Math.ceil(content.length / k);
  const padded = new Uint8Array(k * shardBytes);
  padded.set(content);
  const data = Array.from({ length: k }, (_, index) => padded.slice(index * shardBytes, (index + 1) * shardBytes));
  const parity = referenceCodec.encode(
    data,
    Array.from({ length: m }, (_, row) => k + row),
  );
  const shards = [...data, ...parity];
  const placement = roundRobin(code, regions, key);
  const hashes = [encodeHashes(shards.map((shard) => hash("sha256", shard, "buffer")))];
  const about = {
    agarose: 1,
    key,
    version: upload,
    bytes: content.length,
    contentType: "text/plain",
    headers: {},
  };
  const modified = "2025-01-01T00:00:00.000Z";
  const manifest = encodeManifest({ ...about, modified, ...code, stripeBytes, sha256, placement, hashes } as never);
  const indexOf = (name: string): number => regions.findIndex((region) => region.name === name);
  return {
    upload,
    objects: [
      ...shards.map((bytes, chunk) => {
        return { region: indexOf(placement[chunk]!), name: chunkName(key, upload, chunk), bytes };
      }),
      ...regions.map((_, region) => ({ region, name: manifestName(key), bytes: manifest })),
    ],
  };
}
