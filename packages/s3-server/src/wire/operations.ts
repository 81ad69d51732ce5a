/**
 * The one table of what a server of ours understands: for each operation of S3, how a request selects it, and every
 * query parameter, header and XML element that it obeys. A request with anything else that could change what is done
 * is refused, wherever the client has put it, because an answer of success would be untrue.
 */
import type { KnownElements } from "./xml.ts";
import { CHECKSUM_HEADERS, CHECKSUM_ELEMENTS } from "./checksum.ts";

/** How one operation is asked for. */
export interface OperationInterface {
  readonly method: string;
  readonly on: "service" | "bucket" | "object";
  /** Query parameters that select it. */
  readonly select?: readonly string[];
  /** The header that selects it. It comes before the operation that a request without the header asks for. */
  readonly selectHeader?: string;
  /** Further query parameters. */
  readonly query?: readonly string[];
  /** Headers, in lower case. A name that ends with `*` stands for all that begin so. */
  readonly headers?: readonly string[];
  /** The root of its body and the elements below it. */
  readonly body?: { readonly root: string; readonly elements: KnownElements };
}

/** Names the object that is copied, and its conditions begin with it. */
export const COPY_SOURCE = "x-amz-copy-source";
const LISTED_NAMES = ["delimiter", "encoding-type", "prefix"];
/** The headers of an answer that a signed request may override. */
export const OVERRIDES = [
  "response-cache-control",
  "response-content-disposition",
  "response-content-encoding",
  "response-content-language",
  "response-content-type",
  "response-expires",
] as const;
/** Conditions of RFC 9110 on a read. `If-Range` and `Range` need no place here: a server may ignore them. */
const READ_CONDITIONS = ["if-match", "if-modified-since", "if-none-match", "if-unmodified-since"];
const READ = { query: [...OVERRIDES, "partNumber", "versionId"], headers: [...READ_CONDITIONS, "x-amz-checksum-mode"] };
/** The headers of a body, which tell how it is framed and hashed. */
const BODY = ["content-md5", "x-amz-decoded-content-length", "x-amz-sdk-checksum-algorithm", "x-amz-trailer"];
/** The headers that an object keeps. The ACL and the storage class may only be those that every object has. */
const KEPT = ["expires", "x-amz-acl", "x-amz-meta-*", "x-amz-storage-class", "x-amz-tagging"];
const WRITE_CONDITIONS = ["if-match", "if-none-match"];
/** Which object a copy is of, and what it must be. */
const COPIED = {
  selectHeader: COPY_SOURCE,
  headers: [
    COPY_SOURCE,
    ...READ_CONDITIONS.map((condition) => `${COPY_SOURCE}-${condition}`),
    "x-amz-source-expected-bucket-owner",
  ],
};

/** Every operation that a server of ours may have. */
export const OPERATIONS = {
  ListBuckets: {
    method: "GET",
    on: "service",
    query: ["bucket-region", "continuation-token", "max-buckets", "prefix"],
  },
  CreateBucket: { method: "PUT", on: "bucket" },
  HeadBucket: { method: "HEAD", on: "bucket" },
  DeleteBucket: { method: "DELETE", on: "bucket" },
  GetBucketLocation: setting("location"),
  GetBucketVersioning: setting("versioning"),
  GetBucketAcl: setting("acl"),
  GetBucketLogging: setting("logging"),
  GetBucketNotificationConfiguration: setting("notification"),
  GetBucketAccelerateConfiguration: setting("accelerate"),
  GetBucketRequestPayment: setting("requestPayment"),
  GetBucketTagging: setting("tagging"),
  GetBucketPolicy: setting("policy"),
  GetBucketPolicyStatus: setting("policyStatus"),
  GetBucketCors: setting("cors"),
  GetBucketWebsite: setting("website"),
  GetBucketLifecycleConfiguration: setting("lifecycle"),
  GetBucketEncryption: setting("encryption"),
  GetBucketReplication: setting("replication"),
  GetBucketOwnershipControls: setting("ownershipControls"),
  GetPublicAccessBlock: setting("publicAccessBlock"),
  GetObjectLockConfiguration: setting("object-lock"),
  ListObjectsV2: {
    method: "GET",
    on: "bucket",
    select: ["list-type"],
    query: [...LISTED_NAMES, "continuation-token", "fetch-owner", "max-keys", "start-after"],
  },
  ListObjects: { method: "GET", on: "bucket", query: [...LISTED_NAMES, "marker", "max-keys"] },
  ListObjectVersions: {
    method: "GET",
    on: "bucket",
    select: ["versions"],
    query: [...LISTED_NAMES, "key-marker", "max-keys", "version-id-marker"],
  },
  ListMultipartUploads: {
    method: "GET",
    on: "bucket",
    select: ["uploads"],
    query: [...LISTED_NAMES, "key-marker", "max-uploads", "upload-id-marker"],
  },
  DeleteObjects: {
    method: "POST",
    on: "bucket",
    select: ["delete"],
    headers: [...BODY, ...CHECKSUM_HEADERS],
    body: {
      root: "Delete",
      elements: {
        Object: {
          elements: { Key: "text", ETag: "text", LastModifiedTime: "text", Size: "text", VersionId: "text" },
        },
        Quiet: "text",
      },
    },
  },
  // Its form has the headers of PutObject as fields.
  PostObject: { method: "POST", on: "bucket" },
  GetObject: { method: "GET", on: "object", ...READ },
  HeadObject: { method: "HEAD", on: "object", ...READ },
  GetObjectTagging: { method: "GET", on: "object", select: ["tagging"] },
  PutObjectTagging: {
    method: "PUT",
    on: "object",
    select: ["tagging"],
    headers: [...BODY, ...CHECKSUM_HEADERS],
    body: {
      root: "Tagging",
      elements: { TagSet: { elements: { Tag: { elements: { Key: "text", Value: "text" } } } } },
    },
  },
  DeleteObjectTagging: { method: "DELETE", on: "object", select: ["tagging"] },
  GetObjectAcl: { method: "GET", on: "object", select: ["acl"] },
  GetObjectAttributes: {
    method: "GET",
    on: "object",
    select: ["attributes"],
    headers: ["x-amz-max-parts", "x-amz-object-attributes", "x-amz-part-number-marker"],
  },
  CopyObject: {
    method: "PUT",
    on: "object",
    ...COPIED,
    headers: [
      ...COPIED.headers,
      ...KEPT,
      ...WRITE_CONDITIONS,
      "x-amz-checksum-algorithm",
      "x-amz-metadata-directive",
      "x-amz-tagging-directive",
    ],
  },
  PutObject: { method: "PUT", on: "object", headers: [...BODY, ...CHECKSUM_HEADERS, ...KEPT, ...WRITE_CONDITIONS] },
  DeleteObject: {
    method: "DELETE",
    on: "object",
    query: ["versionId"],
    headers: ["if-match", "x-amz-if-match-last-modified-time", "x-amz-if-match-size"],
  },
  CreateMultipartUpload: {
    method: "POST",
    on: "object",
    select: ["uploads"],
    headers: [...KEPT, "x-amz-checksum-algorithm", "x-amz-checksum-type"],
  },
  UploadPartCopy: {
    method: "PUT",
    on: "object",
    ...COPIED,
    select: ["partNumber", "uploadId"],
    headers: [...COPIED.headers, `${COPY_SOURCE}-range`],
  },
  UploadPart: {
    method: "PUT",
    on: "object",
    select: ["partNumber", "uploadId"],
    headers: [...BODY, ...CHECKSUM_HEADERS],
  },
  ListParts: {
    method: "GET",
    on: "object",
    select: ["uploadId"],
    query: ["encoding-type", "max-parts", "part-number-marker"],
  },
  CompleteMultipartUpload: {
    method: "POST",
    on: "object",
    select: ["uploadId"],
    headers: ["content-md5", ...CHECKSUM_HEADERS, "x-amz-checksum-type", "x-amz-mp-object-size", ...WRITE_CONDITIONS],
    body: {
      root: "CompleteMultipartUpload",
      elements: { Part: { elements: { PartNumber: "text", ETag: "text", ...CHECKSUM_ELEMENTS } } },
    },
  },
  AbortMultipartUpload: {
    method: "DELETE",
    on: "object",
    select: ["uploadId"],
    headers: ["x-amz-if-match-initiated-time"],
  },
} as const satisfies Record<string, OperationInterface>;

/** A read of what a bucket is set up with. */
function setting<T extends string>(select: T): { method: "GET"; on: "bucket"; select: readonly [T] } {
  return { method: "GET", on: "bucket", select: [select] };
}

/** The name of an operation, as S3 spells it. */
export type OperationName = keyof typeof OPERATIONS;

/** Headers of every operation: `checkCaller` and the signature obey those that matter. */
export const COMMON_HEADERS: readonly string[] = [
  "x-amz-api-version",
  "x-amz-content-sha256",
  "x-amz-date",
  "x-amz-expected-bucket-owner",
  "x-amz-request-payer",
  // Of temporary keys. It belongs to their secret, and who has the secret has been checked by it.
  "x-amz-security-token",
  "x-amz-user-agent",
];
