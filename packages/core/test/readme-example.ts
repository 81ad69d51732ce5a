import { readObject } from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";

interface Region {
  name: string;
  /** Base URL of the bucket. */
  url: string;
}

/** Reads the object `key` from its buckets, if one of `publicKeys` signed it. */
export async function read(key: string, regions: Region[], publicKeys: string[]): Promise<Uint8Array> {
  const { body } = await readObject(key, { regions, publicKeys, codec: loadCodec });
  return new Uint8Array(await new Response(body).arrayBuffer());
}
