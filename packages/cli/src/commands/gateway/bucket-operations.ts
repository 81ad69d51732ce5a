/** What a client asks of the bucket: whether it exists, where it is, and what it has. */
import {
  element,
  listObjects,
  S3Error,
  sendEmpty,
  sendXml,
  xmlDocument,
  type ListedObject,
} from "@agarose/dev-world/s3-wire";
import { shownBytes, toAgaroseError } from "@agarose/core";
import { readManifest } from "../../lib/objects/manifests.ts";
import { mapOrdered } from "../../lib/walk/ordered-pool.ts";
import { BUCKET, type Exchange } from "./exchange.ts";
import { validatorsOf } from "./read-operations.ts";

const MANIFESTS_AT_A_TIME = 16;

/** ListBuckets. */
export async function listBuckets(exchange: Exchange): Promise<void> {
  const bucket = element("Bucket", element("Name", BUCKET, "text"));
  sendXml(exchange, xmlDocument("ListAllMyBucketsResult", element("Buckets", bucket)));
}

/** CreateBucket: the bucket is there already. */
export async function createBucket(): Promise<void> {
  throw new S3Error("BucketAlreadyOwnedByYou", `The bucket ${BUCKET} is the deployment, and exists.`);
}

/** HeadBucket. */
export async function headBucket(exchange: Exchange): Promise<void> {
  sendEmpty(exchange, 200, { "x-amz-bucket-region": "us-east-1" });
}

/** GetBucketLocation: an empty location, which means us-east-1. */
export async function bucketLocation(exchange: Exchange): Promise<void> {
  sendXml(exchange, xmlDocument("LocationConstraint", ""));
}

/** ListObjectsV2. Lengths and ETags come from the manifests of the keys on the page. */
export async function listObjectsV2(exchange: Exchange): Promise<void> {
  const { query, keys } = exchange;
  const sorted = await keys.below(query.get("prefix") ?? "", query.has("continuation-token"));
  sendXml(exchange, await listObjects(BUCKET, query, sorted, (page) => describe(page, exchange)));
}

async function describe(keys: readonly string[], { context, left }: Exchange): Promise<readonly ListedObject[]> {
  const objects: ListedObject[] = [];
  const described = mapOrdered(keys, MANIFESTS_AT_A_TIME, async (key): Promise<ListedObject | undefined> => {
    try {
      const manifest = await readManifest(key, context.stores, left, context.trust);
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
