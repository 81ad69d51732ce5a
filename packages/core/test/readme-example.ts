import {
  findManifest,
  LATENCY_UNKNOWN,
  openRead,
  RegionSource,
  systemClock,
  systemSha256,
  trustPublishers,
} from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";

interface Region {
  name: string;
  /** Base URL of the bucket. */
  url: string;
}

/** Reads the object `key` from its buckets, if one of `publicKeys` signed it. */
export async function readObject(key: string, regions: Region[], publicKeys: string[]): Promise<Uint8Array> {
  const ports = { fetch, clock: systemClock, latency: () => LATENCY_UNKNOWN };
  const known = regions.map((region) => ({ ...region, latency: LATENCY_UNKNOWN }));
  const checks = { sha256: systemSha256, trust: trustPublishers(publicKeys) };
  const manifest = await findManifest(key, { ...ports, ...checks, regions: known });
  const sources = regions.map((region) => new RegionSource({ ...ports, manifest, region }));
  const context = { ...checks, codec: loadCodec, clock: systemClock, random: Math.random };
  const { body } = await openRead({ manifest, sources }, context);
  return new Uint8Array(await new Response(body).arrayBuffer());
}
