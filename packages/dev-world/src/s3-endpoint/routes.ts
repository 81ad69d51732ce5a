/** The operations of S3 that the endpoint has. All others are NotImplemented. */
import * as buckets from "./bucket-operations.ts";
import type { Exchange } from "./exchange.ts";
import * as objects from "./object-operations.ts";
import type { Operations } from "@agarose/s3-server/wire/routes";

/** All operations, by their names in S3. */
export const SERVED: Operations<(exchange: Exchange) => Promise<void>> = {
  ListBuckets: buckets.listBuckets,
  CreateBucket: buckets.createBucket,
  HeadBucket: buckets.headBucket,
  DeleteBucket: buckets.deleteBucket,
  ListObjects: buckets.listObjects,
  ListObjectsV2: buckets.listObjects,
  GetBucketLocation: buckets.bucketLocation,
  ListMultipartUploads: buckets.listUploads,
  DeleteObjects: buckets.deleteObjects,
  CreateMultipartUpload: objects.createUpload,
  UploadPart: objects.uploadPart,
  CompleteMultipartUpload: objects.completeUpload,
  AbortMultipartUpload: objects.abortUpload,
  ListParts: objects.listParts,
  GetObject: objects.getObject,
  HeadObject: objects.getObject,
  PutObject: objects.putObject,
  DeleteObject: objects.deleteObject,
};
