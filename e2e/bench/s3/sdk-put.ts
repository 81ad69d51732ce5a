/** Puts objects whole into one bucket of the local world: what Agarose is compared with has no codec. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { LocalWorld } from "@agarose/dev-world/client";

/**
 * @param objects by key: the content itself, or the path of a file.
 * @param headers of all of them, as the SDK names them.
 */
export async function putWhole(
  { config }: Pick<LocalWorld, "config">,
  name: string,
  objects: ReadonlyMap<string, Uint8Array | string>,
  headers: { readonly ContentEncoding?: string } = {},
): Promise<void> {
  const { regions, credentials: own } = JSON.parse(await readFile(config, "utf8")) as {
    regions: { name: string; endpoint: string; bucket: string }[];
    credentials: { credentialsFile: string };
  };
  const { endpoint, bucket } = regions.find((region) => region.name === name)!;
  const [, accessKeyId = "", secretAccessKey = ""] =
    /aws_access_key_id = (.*)\naws_secret_access_key = (.*)\n/.exec(await readFile(own.credentialsFile, "utf8")) ?? [];
  // The SDK is the command line's dependency; loaded from there, it is the same one.
  const { PutObjectCommand, S3Client } = createRequire(import.meta.resolve("agarose"))(
    "@aws-sdk/client-s3",
  ) as typeof import("@aws-sdk/client-s3");
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials });
  for (const [key, content] of objects) {
    const body = typeof content === "string" ? await readFile(content) : content;
    await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ...headers }));
  }
  client.destroy();
}
