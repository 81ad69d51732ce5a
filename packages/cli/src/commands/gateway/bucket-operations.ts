/** What a client asks of the bucket: whether it exists, where it is, and what it has. */
import * as wire from "@agarose/s3-server";
import { S3Error, sendEmpty, sendXml, sendXmlOnceDone, xmlDocument, type ListedObject } from "@agarose/s3-server";
import { isTombstone, shownBytes, toAgaroseError } from "@agarose/core";
import { readManifest } from "@agarose/storage/objects/manifests";
import { recordOf } from "@agarose/storage/listing/listed-object";
import { mapOrdered } from "@agarose/storage/listing/ordered-pool";
import { BUCKET, type Exchange } from "./exchange.ts";
import { validatorsOf } from "./read-operations.ts";

const MANIFESTS_AT_A_TIME = 16;

/** ListBuckets. The one bucket is as old as the gateway: a deployment has no date. */
export async function listBuckets(exchange: Exchange): Promise<void> {
  const { owner, query, startedMs } = exchange;
  sendXml(exchange, wire.listBuckets(owner, query, [{ name: BUCKET, createdMs: startedMs }]));
}

/** CreateBucket: the bucket is there already. */
export async function createBucket(): Promise<void> {
  throw new S3Error("BucketAlreadyOwnedByYou", `The bucket ${BUCKET} is the deployment, and exists.`);
}

/** DeleteBucket: the bucket is the deployment, which no client takes away. */
export async function deleteBucket(): Promise<void> {
  throw new S3Error("BucketNotEmpty", `The bucket ${BUCKET} is the deployment, and cannot be deleted here.`);
}

/** HeadBucket. */
export async function headBucket(exchange: Exchange): Promise<void> {
  sendEmpty(exchange, 200, { "x-amz-bucket-region": "us-east-1" });
}

/** GetBucketLocation: an empty location, which means us-east-1. */
export async function bucketLocation(exchange: Exchange): Promise<void> {
  sendXml(exchange, xmlDocument("LocationConstraint", ""));
}

/** ListObjectsV2 and ListObjects. Lengths and ETags come from the manifests of the keys on the page. */
export async function listObjects(exchange: Exchange): Promise<void> {
  // No client looks for an error in a list that has begun, so a list that fails then is cut off.
  await sendXmlOnceDone(exchange, listed(exchange));
}

async function listed(exchange: Exchange): Promise<string> {
  const { query, keys } = exchange;
  const found = await keys.below(query.get("prefix") ?? "", wire.continuedAt(query));
  return wire.listObjects(exchange, query, found.keys, (page, next) => {
    if (next !== undefined) found.ends.add(next);
    return describe(page, found.etags, exchange);
  });
}

/**
 * Describes the objects of a page: by one manifest each, where a majority has just listed its ETag, else by a read of a
 * majority.
 */
async function describe(
  keys: readonly string[],
  etags: ReadonlyMap<string, string>,
  { context, left, nowMs }: Exchange,
): Promise<readonly ListedObject[]> {
  const reading = { ...context, signal: left, nowMs };
  const objects: ListedObject[] = [];
  const described = mapOrdered(keys, MANIFESTS_AT_A_TIME, async (key): Promise<ListedObject | undefined> => {
    try {
      const etag = etags.get(key);
      const current = etag === undefined ? undefined : await recordOf(etag, key, reading);
      const manifest = current && !isTombstone(current) ? current : await readManifest(key, reading);
      return { key, bytes: shownBytes(manifest), ...validatorsOf(manifest) };
    } catch (error) {
      // It was removed after the keys were listed.
      if (toAgaroseError(error).code === "OBJECT_NOT_FOUND") return undefined;
      throw error;
    }
  });
  for await (const object of described) if (object) objects.push(object);
  return objects;
}
