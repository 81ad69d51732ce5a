/** Operations on buckets: list, create, head, delete, and list their objects. */
import type { Exchange } from "../exchange.ts";
import { sendEmpty, sendXml, sendXmlOnceDone } from "../wire/answers.ts";
import * as bucketList from "../wire/bucket-list.ts";
import * as lists from "../wire/list.ts";
import { S3Error } from "../wire/s3-error.ts";

/** ListBuckets. */
export async function listBuckets(exchange: Exchange): Promise<void> {
  sendXml(exchange, bucketList.listBuckets(exchange.owner, exchange.query, exchange.backend.buckets()));
}

/** CreateBucket. */
export async function createBucket(exchange: Exchange): Promise<void> {
  const { backend, bucket } = exchange;
  await backend.createBucket(bucket);
  sendEmpty(exchange, 200, { location: `/${bucket}` });
}

/** HeadBucket. */
export async function headBucket(exchange: Exchange): Promise<void> {
  sendEmpty(exchange, 200, { "x-amz-bucket-region": "us-east-1" });
}

/** DeleteBucket. */
export async function deleteBucket(exchange: Exchange): Promise<void> {
  await exchange.backend.deleteBucket(exchange.bucket);
  sendEmpty(exchange, 204);
}

/** ListObjectsV2 and ListObjects. */
export async function listObjects(exchange: Exchange): Promise<void> {
  // No client looks for an error in a list that has begun, so a list that fails then is cut off.
  await sendXmlOnceDone(exchange, listed(exchange));
}

/** ListObjectVersions. */
export async function listVersions(exchange: Exchange): Promise<void> {
  await sendXmlOnceDone(exchange, listedVersions(exchange));
}

async function listedVersions(exchange: Exchange): Promise<string> {
  const { backend, bucket, query, left } = exchange;
  const found = backend.listVersions?.(bucket, query.get("prefix") ?? "", left);
  if (!found) throw new S3Error("NotImplemented", "No versions are kept here.");
  return lists.listVersions(exchange, query, found);
}

async function listed(exchange: Exchange): Promise<string> {
  const { backend, bucket, query, left } = exchange;
  return lists.listObjects(exchange, query, backend.list(bucket, query.get("prefix") ?? "", left));
}
