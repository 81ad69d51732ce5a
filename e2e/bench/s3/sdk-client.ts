/**
 * The baseline of `agarose put` and `get`: the AWS SDK with its defaults and one request for the whole
 * object. `node sdk-client.ts put|get ENDPOINT BUCKET KEY FILE`. `put-coded` puts as many bytes as 9+3 has, in as many
 * requests: twelve ninths of the file at once, in turn to the buckets of a list with commas.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

// The SDK is the command line's dependency; loaded from there, it is the same one.
const require = createRequire(import.meta.resolve("agarose"));
const { GetObjectCommand, PutObjectCommand, S3Client } =
  require("@aws-sdk/client-s3") as typeof import("@aws-sdk/client-s3");

const DATA = 9;
const PARITY = 3;
const [verb, endpoint = "", Bucket = "", Key = "", file = ""] = process.argv.slice(2);
const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true });
if (verb === "put") {
  const { size } = await stat(file);
  await client.send(new PutObjectCommand({ Bucket, Key, Body: createReadStream(file), ContentLength: size }));
} else if (verb === "put-coded") {
  const buckets = Bucket.split(",");
  const { size } = await stat(file);
  const pieceBytes = Math.ceil(size / DATA);
  const pieces = Array.from({ length: DATA + PARITY }, (_, piece) => {
    const start = (piece % DATA) * pieceBytes;
    const Body = createReadStream(file, { start, end: start + pieceBytes - 1 });
    return { Bucket: buckets[piece % buckets.length], Key: `${Key}-${piece}`, Body, start };
  });
  await Promise.all(
    pieces.map(({ start, ...piece }) =>
      client.send(new PutObjectCommand({ ...piece, ContentLength: Math.min(pieceBytes, size - start) })),
    ),
  );
} else {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
  await pipeline(Body as Readable, createWriteStream(file));
}
client.destroy();
