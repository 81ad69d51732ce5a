/** Stores files in the buckets of a local world. */
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { ReadableStream } from "node:stream/web";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { openDeployment, type PutResult } from "@agarose/storage";
import { copyName } from "@agarose/storage/objects/whole-copy";
import mime from "mime";
import type { World } from "./world.ts";

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
export async function openUploader({
  config,
  s3Url,
  credentials,
  regions,
}: Pick<World, "config" | "s3Url" | "credentials" | "regions">): Promise<Uploader> {
  const fields = JSON.parse(await readFile(config, "utf8")) as { readonly regions: readonly object[] };
  const direct = { ...fields, regions: fields.regions.map((region) => ({ ...region, endpoint: s3Url })) };
  const abort = new AbortController();
  const { signal } = abort;
  const deployment = await openDeployment(direct, { signal });
  const auto = await openDeployment({ ...direct, code: "auto" }, { signal });
  const client = new S3Client({ endpoint: s3Url, region: "us-east-1", forcePathStyle: true, credentials });
  return {
    put({ key, path, contentType = mime.getType(key) ?? "application/octet-stream", headers = {}, code }) {
      return (code ? auto : deployment).put(key, { file: path }, { contentType, headers });
    },
    async copy(key, name) {
      const { body, contentType } = await deployment.get(key);
      const { bucket } = regions.find((region) => region.name === name)!;
      const content = await buffer(body as ReadableStream<Uint8Array>);
      const copy = { Bucket: bucket, Key: copyName(key), Body: content, ContentType: contentType };
      await client.send(new PutObjectCommand(copy));
      return copyName(key);
    },
    close() {
      abort.abort();
      for (const opened of [deployment, auto]) opened.close();
      client.destroy();
    },
  };
}
