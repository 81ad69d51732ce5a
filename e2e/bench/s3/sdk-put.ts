/** Puts files whole into one bucket of the local world: what Agarose is compared with has no codec. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

/** @param config path of the world's configuration. */
export async function putWhole(
  config: string,
  name: string,
  files: readonly { readonly key: string; readonly file: string }[],
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
  for (const { key, file } of files) {
    await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: await readFile(file) }));
  }
  client.destroy();
}
