/** Operations on buckets: list, create, head, delete, list their objects, and delete objects in bulk. */
import { receiveText } from "@agarose/s3-server/wire/body";
import type { Exchange } from "./exchange.ts";
import { sendEmpty, sendXml } from "@agarose/s3-server/wire/answers";
import * as bucketList from "@agarose/s3-server/wire/bucket-list";
import { checkRemoval } from "@agarose/s3-server/wire/conditions";
import { DELETE_XML_BYTES_MAX, readDeletion } from "@agarose/s3-server/wire/deletion";
import * as lists from "@agarose/s3-server/wire/list";
import { S3Error } from "@agarose/s3-server/wire/s3-error";
import { element, xmlDocument } from "@agarose/s3-server/wire/xml";

/** ListBuckets. */
export async function listBuckets(exchange: Exchange): Promise<void> {
  const buckets = exchange.store.bucketNames.map((name) => ({ name, createdMs: 0 }));
  sendXml(exchange, bucketList.listBuckets(exchange.owner, exchange.query, buckets));
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

/** ListObjectsV2 and ListObjects. */
export async function listObjects(exchange: Exchange): Promise<void> {
  const { store, bucket, query } = exchange;
  const describe = (keys: readonly string[]) => keys.map((key) => store.get(bucket, key));
  sendXml(exchange, await lists.listObjects(exchange, query, store.keys(bucket), describe));
}

/** ListMultipartUploads. */
export async function listUploads(exchange: Exchange): Promise<void> {
  const { bucket, query, store, uploads } = exchange;
  store.keys(bucket);
  sendXml(exchange, lists.listUploads(exchange, query, uploads.list(bucket)));
}

/** DeleteObjects. */
export async function deleteObjects(exchange: Exchange): Promise<void> {
  const { store, bucket, locks } = exchange;
  store.keys(bucket);
  const { objects, isQuiet } = readDeletion(await receiveText(exchange, DELETE_XML_BYTES_MAX));
  const outcomes: string[] = [];
  for (const { key, ...conditions } of objects) {
    const named = element("Key", key, "text");
    try {
      await locks.run(`${bucket}/${key}`, async () => {
        const current = store.find(bucket, key);
        if (current) checkRemoval(current, conditions);
        await store.delete(bucket, key);
      });
      if (!isQuiet) outcomes.push(element("Deleted", named));
    } catch (error) {
      if (!(error instanceof S3Error)) throw error;
      const { code, message } = error;
      outcomes.push(element("Error", named + element("Code", code) + element("Message", message, "text")));
    }
  }
  sendXml(exchange, xmlDocument("DeleteResult", outcomes.join("")));
}
