/**
 * The meaning of a listed manifest's length: every reader refuses an object without the fields that a tombstone
 * lacks, so the shortest object is longer than the longest tombstone that is written.
 */
import type { RegionObject } from "./key-groups.ts";

/** The shortest tombstone and the shortest object that a reader takes, without the key. */
const [TOMBSTONE, OBJECT] = [
  '{"agarose":2,"key":,"generation":1,"modified":"2026-01-02T03:04:05Z","deleted":true,"crc32":"00000000"}',
  `{"agarose":2,"key":,"generation":1,"modified":"2026-01-02T03:04:05Z","upload":"${"0".repeat(32)}","bytes":0,` +
    `"contentType":"","headers":{},"k":1,"m":0,"stripeBytes":1,"blockBytes":1,"sha256":"${"0".repeat(64)}",` +
    `"placement":["r"],"version":"${"0".repeat(32)}","hashesSha256":"${"0".repeat(64)}","hashes":[],` +
    `"crc32":"00000000"}`,
];
/** Nobody writes longer ones than this and twice their name, but the format allows them. */
const TOMBSTONE_BYTES_MAX = 400;

/** Whether an object of this length may be a tombstone. Some manifests are as short. */
export function mayBeTombstone({ bytes, name }: Pick<RegionObject, "bytes" | "name">): boolean {
  return bytes <= TOMBSTONE_BYTES_MAX + 2 * name.length;
}

/** Whether a manifest of this length is a tombstone, unless it is damaged. */
export function mustBeTombstone(key: string, { bytes }: Pick<RegionObject, "bytes">): boolean {
  const rest = bytes - Buffer.byteLength(JSON.stringify(key));
  return rest >= TOMBSTONE.length && rest < OBJECT.length;
}
