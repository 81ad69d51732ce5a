/** The reader of programs that have neither a service worker nor a PoP before them. */
import type { Decoder } from "./codec.ts";
import { AgaroseError } from "./errors.ts";
import { trustPublishers } from "./format/signature.ts";
import type { ByteRange } from "./http/range.ts";
import { LATENCY_UNKNOWN } from "./latency.ts";
import { systemPorts, type Ports } from "./ports.ts";
import { openContent } from "./content/open.ts";
import { openRead, type ObjectRead } from "./read/object-stream.ts";
import { findManifest } from "./sources/manifest-source.ts";
import { RegionSource } from "./sources/region-source.ts";

/** Where an object is, and whom to believe. */
export interface ReadObjectOptions {
  /** Its regions, by the names in its manifest, with the base URL of each bucket. */
  readonly regions: readonly { readonly name: string; readonly url: string }[];
  /** An object that none of these signed is refused with MANIFEST_UNTRUSTED. */
  readonly publicKeys: readonly string[];
  /** Loads the codec, such as `loadCodec` of `@agarose/ec-wasm`. It is called only when a stripe must be decoded. */
  readonly codec: () => Promise<Decoder>;
  /** Default: the whole object. */
  readonly range?: ByteRange;
  readonly signal?: AbortSignal;
  /** Default: those of the runtime. */
  readonly ports?: Partial<Ports>;
}

/**
 * Finds the manifest of `key` and reads the object from its buckets. It resolves when the first stripe is ready.
 *
 * @throws as `findManifest` and `openRead` do, and SECRET_MISSING for an encrypted object.
 */
export async function readObject(key: string, options: ReadObjectOptions): Promise<ObjectRead> {
  const { regions, publicKeys, codec, ports, ...target } = options;
  const context = { ...systemPorts, ...ports, codec };
  const { fetch } = context;
  const known = regions.map((region) => ({ ...region, latency: LATENCY_UNKNOWN }));
  const signal = target.signal && { signal: target.signal };
  const manifest = await findManifest(key, {
    ...context,
    ...signal,
    regions: known,
    trust: trustPublishers(publicKeys),
  });
  const opened = await openContent(manifest, async () => {
    throw new AgaroseError(
      "SECRET_MISSING",
      `${JSON.stringify(key)} is encrypted, and this reader has no secret: read it by \`openEncrypted\``,
      { key },
    );
  });
  const latency = () => LATENCY_UNKNOWN;
  const sources = regions.map((region) => new RegionSource({ manifest, region, latency, fetch }));
  if (!opened) return openRead({ ...target, manifest, sources }, context);
  const range = target.range ?? { start: 0, end: opened.shown.bytes };
  const read = await openRead({ ...target, range: opened.stored(range), manifest, sources }, context);
  return { ...read, body: opened.content(range, read.body) };
}
