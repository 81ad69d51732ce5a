/**
 * The baseline of a bulk `agarose put`: the AWS SDK with its defaults, 32 files at a time into one bucket.
 * `node sdk-bulk.ts ENDPOINT BUCKET FOLDER`.
 */
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

// The SDK is the command line's dependency; loaded from there, it is the same one.
const require = createRequire(import.meta.resolve("agarose"));
const { PutObjectCommand, S3Client } = require("@aws-sdk/client-s3") as typeof import("@aws-sdk/client-s3");

const AT_A_TIME = 32;
const [endpoint = "", Bucket = "", folder = ""] = process.argv.slice(2);
const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true });
const names = await readdir(folder);
const work = async (): Promise<void> => {
  for (let Key = names.pop(); Key !== undefined; Key = names.pop()) {
    await client.send(new PutObjectCommand({ Bucket, Key, Body: await readFile(join(folder, Key)) }));
  }
};
await Promise.all(Array.from({ length: AT_A_TIME }, work));
client.destroy();
