/** Stores files in the buckets of a local world. */
import mime from "mime";
import type { World } from "@agarose/dev-world";
import { loadConfig } from "@agarose/storage/config/config";
import { WRITING } from "../../lib/context.ts";
import { partsOf, type DeploymentParts } from "@agarose/storage/parts";
import { getObject } from "@agarose/storage/objects/get-object";
import { readManifest } from "@agarose/storage/objects/manifests";
import { putObject, type PutResult } from "@agarose/storage/objects/put-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import { copyName, putCopy } from "@agarose/storage/objects/whole-copy";
import { signerOf, trustOf } from "@agarose/storage/config/signing";
import { openStores } from "@agarose/storage/buckets/stores";

/** A file to store. */
export interface Upload {
  readonly key: string;
  readonly path: string;
  /** Default: by the extension of the key. */
  readonly contentType?: string | undefined;
  /** Further response headers of the object. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: that of the configuration. */
  readonly code?: "auto";
}

/** Stores files as `agarose put` does, but past the world's links: neither delays nor faults apply. */
export interface Uploader {
  put(upload: Upload): Promise<PutResult>;
  /** Stores a whole copy of an object in one region. Returns its S3 name. */
  copy(key: string, region: string): Promise<string>;
  close(): void;
}

/** Opens the buckets of `world` for uploads. */
export async function openUploader(world: Pick<World, "config" | "s3Url">): Promise<Uploader> {
  const config = await loadConfig(world.config);
  const regions = config.regions.map((region) => ({ ...region, endpoint: world.s3Url }));
  const stores = openStores({ ...config, regions }, WRITING);
  const abort = new AbortController();
  const sign = signerOf(config);
  const trust = trustOf(config);
  // New for each upload: a region that a test has broken may work again a moment later.
  const parts = (): DeploymentParts => partsOf({ config, stores, trust, ...(sign && { sign }), signal: abort.signal });
  return {
    put({ key, path, contentType = mime.getType(key) ?? "application/octet-stream", headers = {}, code }) {
      const own = code ? { ...parts(), config: { ...config, code } } : parts();
      return putObject({ key, source: fileSource(path), contentType, headers, force: false, examine: true }, own);
    },
    async copy(key, region) {
      const { signal } = abort;
      const context = parts();
      const manifest = await readManifest(key, context);
      const body: Uint8Array[] = [];
      const write = async (part: Uint8Array): Promise<unknown> => body.push(part.slice());
      await getObject(manifest, undefined, write, context);
      const store = stores.find((one) => one.region.name === region)!;
      await putCopy(store, key, Buffer.concat(body), { contentType: manifest.contentType, signal });
      return copyName(key);
    },
    close() {
      abort.abort();
      for (const store of stores) store.close();
    },
  };
}
