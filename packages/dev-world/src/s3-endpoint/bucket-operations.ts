/** Operations on buckets: list, create, head, delete, list their objects, and delete objects in bulk. */
import { receiveText } from "./wire/body.ts";
import type { Exchange } from "./exchange.ts";
import { sendEmpty, sendXml } from "./wire/answers.ts";
import { listObjects } from "./wire/list.ts";
import { S3Error } from "./wire/s3-error.ts";
import { element, elementsOf, textsOf, xmlDocument } from "./wire/xml.ts";

const DELETE_KEYS_MAX = 1000;
const DELETE_XML_BYTES_MAX = 4 * 1024 * 1024;

/** ListBuckets. */
export async function listBuckets(exchange: Exchange): Promise<void> {
  const buckets = exchange.store.bucketNames.map((name) => element("Bucket", element("Name", name, "text")));
  sendXml(exchange, xmlDocument("ListAllMyBucketsResult", element("Buckets", buckets.join(""))));
}

/** CreateBucket. */
export async function createBucket(exchange: Exchange): Promise<void> {
  const { store, bucket } = exchange;
  if (store.has(bucket)) {
    throw new S3Error("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded.");
  }
  await store.createBucket(bucket);
  sendEmpty(exchange, 200, { location: `/${bucket}` });
}

/** HeadBucket. */
export async function headBucket(exchange: Exchange): Promise<void> {
  exchange.store.keys(exchange.bucket);
  sendEmpty(exchange, 200, { "x-amz-bucket-region": "us-east-1" });
}

/** DeleteBucket: refuses a bucket that still has objects. */
export async function deleteBucket(exchange: Exchange): Promise<void> {
  await exchange.store.deleteBucket(exchange.bucket);
  sendEmpty(exchange, 204);
}

/** GetBucketLocation: an empty location, which means us-east-1. */
export async function bucketLocation(exchange: Exchange): Promise<void> {
  exchange.store.keys(exchange.bucket);
  sendXml(exchange, xmlDocument("LocationConstraint", ""));
}

/** ListObjectsV2. */
export async function listObjectsV2(exchange: Exchange): Promise<void> {
  const { store, bucket, query } = exchange;
  const describe = (keys: readonly string[]) => keys.map((key) => store.get(bucket, key));
  sendXml(exchange, await listObjects(bucket, query, store.keys(bucket), describe));
}

/** ListMultipartUploads. */
export async function listUploads(exchange: Exchange): Promise<void> {
  const { bucket, uploads } = exchange;
  const fields = uploads
    .list(bucket)
    .map(({ key, id, startedMs }) =>
      element(
        "Upload",
        element("Key", key, "text") + element("UploadId", id) + element("Initiated", new Date(startedMs).toISOString()),
      ),
    );
  const head = element("Bucket", bucket, "text") + element("IsTruncated", "false");
  sendXml(exchange, xmlDocument("ListMultipartUploadsResult", head + fields.join("")));
}

/** DeleteObjects. */
export async function deleteObjects(exchange: Exchange): Promise<void> {
  const { store, bucket, locks } = exchange;
  const xml = await receiveText(exchange.request, exchange.signing, DELETE_XML_BYTES_MAX);
  const keys = elementsOf(xml, "Object").flatMap((object) => textsOf(object, "Key"));
  if (keys.length === 0 || keys.length > DELETE_KEYS_MAX) {
    throw new S3Error("MalformedXML", `A deletion names 1 to ${DELETE_KEYS_MAX} objects, this one ${keys.length}.`);
  }
  for (const key of keys) await locks.run(`${bucket}/${key}`, () => store.delete(bucket, key));
  const quiet = textsOf(xml, "Quiet")[0] === "true";
  const deleted = quiet ? [] : keys.map((key) => element("Deleted", element("Key", key, "text")));
  sendXml(exchange, xmlDocument("DeleteResult", deleted.join("")));
}
