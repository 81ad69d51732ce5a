/** The operations of S3 that the gateway has. All others are NotImplemented. */
import type { Operations } from "@agarose/s3-server";
import * as buckets from "./bucket-operations.ts";
import type { Exchange } from "./exchange.ts";
import * as uploads from "./multipart/operations.ts";
import * as reads from "./read-operations.ts";
import * as writes from "./write-operations.ts";

/** All operations, by their names in S3. */
export const SERVED: Operations<(exchange: Exchange) => Promise<void>> = {
  ListBuckets: buckets.listBuckets,
  CreateBucket: buckets.createBucket,
  HeadBucket: buckets.headBucket,
  DeleteBucket: buckets.deleteBucket,
  ListObjects: buckets.listObjects,
  ListObjectsV2: buckets.listObjects,
  GetBucketLocation: buckets.bucketLocation,
  ListMultipartUploads: uploads.listUploads,
  DeleteObjects: writes.removeMany,
  CreateMultipartUpload: uploads.createUpload,
  UploadPart: uploads.uploadPart,
  ListParts: uploads.listParts,
  CompleteMultipartUpload: uploads.completeUpload,
  AbortMultipartUpload: uploads.abortUpload,
  PutObject: writes.writeObject,
  DeleteObject: writes.removeOne,
  GetObject: reads.readObject,
  HeadObject: reads.readObject,
};
