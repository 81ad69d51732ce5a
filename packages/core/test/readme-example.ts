import { findManifest, LATENCY_UNKNOWN, openRead, RegionSource, systemClock, systemSha256 } from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";

/** Reads the object `key` from its buckets; `url` is the base URL of a region's bucket. */
export async function readObject(key: string, regions: { name: string; url: string }[]): Promise<Uint8Array> {
  const ports = { fetch, clock: systemClock, latency: () => LATENCY_UNKNOWN };
  const known = regions.map((region) => ({ ...region, latency: LATENCY_UNKNOWN }));
  const manifest = await findManifest(key, { ...ports, regions: known });
  const sources = regions.map((region) => new RegionSource({ ...ports, manifest, region }));
  const options = { codec: loadCodec, clock: systemClock, sha256: systemSha256, random: Math.random };
  const { body } = await openRead({ ...options, manifest, sources });
  return new Uint8Array(await new Response(body).arrayBuffer());
}
