/** The storage behind an S3 server: the server knows the protocol, and its backend stores the bytes. */
import type { ServerResponse } from "node:http";
import type { ByteRange } from "@agarose/core/http";
import type { Uploads } from "./uploads.ts";
import type { KeptHeaders } from "./wire/answered-object.ts";
import type { BodyFile, Received } from "./wire/body.ts";
import type { ListedBucketName } from "./wire/bucket-list.ts";
import type { ChecksumAlgorithm } from "./wire/checksum.ts";
import type { Validators } from "./wire/conditions.ts";
import type { KeyList, VersionList } from "./wire/list.ts";
import type { ObjectName, VersionName } from "./wire/request.ts";
import type { S3Error } from "./wire/s3-error.ts";

/** The buckets and objects of one server. Wherever it takes a bucket it may throw S3Error NoSuchBucket. */
export interface Backend {
  /** Multipart uploads that are under way. */
  readonly uploads: Uploads;
  /** In order of their names. */
  buckets(): readonly ListedBucketName[];
  checkBucket(bucket: string): void;
  /** Throws S3Error when the bucket exists or cannot be made. */
  createBucket(bucket: string): Promise<void>;
  /** Throws S3Error BucketNotEmpty. */
  deleteBucket(bucket: string): Promise<void>;
  /** Returns the keys below `prefix`. */
  list(bucket: string, prefix: string, left: AbortSignal): KeyList;
  /** Whether the versions of all keys are kept. Absent: they are not. */
  keepsVersions?(): boolean;
  /** Returns the keys below `prefix` that have versions. Absent: versions cannot be listed. */
  listVersions?(bucket: string, prefix: string, left: AbortSignal): VersionList;
  /**
   * Opens the current object or one of its versions, which the caller closes. Throws S3Error NoSuchKey, NoSuchVersion,
   * or MethodNotAllowed for a delete marker.
   */
  open(name: VersionName, reading: Reading): Promise<OpenedObject>;
  /** Throws S3Error for a key that no object can have, or a condition that fails already, before a body crosses. */
  checkWrite(name: ObjectName, onlyIf?: WriteCondition): void;
  /** Returns what the object keeps of its headers. Default: all of them. */
  describe?(kept: KeptHeaders): KeptHeaders;
  /**
   * Receives the body of a request into a file, which the caller discards or gives to `put`.
   *
   * @param also a checksum to calculate even if the client sends none.
   */
  receive(bucket: string, received: Received, also?: ChecksumAlgorithm): Promise<BodyFile>;
  discard(body: Pick<BodyFile, "path" | "bytes">): Promise<void>;
  /** Stores an object. Takes `body`, unless it throws. */
  put(object: NewObject, body: BodyFile): Promise<Validators>;
  /** Stores an object that came in parts, which stay. */
  putParts(object: NewObject, parts: readonly BodyFile[]): Promise<Validators>;
  /** Whether an object has the one version `null`, so that to remove that is to remove it. Absent: no object has. */
  hasOneVersion?(name: ObjectName): boolean;
  /** Removes an object unless `onlyIf` throws for the current one. An object that is not there counts as removed. */
  remove(name: ObjectName, onlyIf: RemovalCondition | undefined): Promise<void>;
  /**
   * Says in words of S3 why one of these methods failed.
   *
   * @param isRead whether the client has sent no object.
   */
  errorOf?(cause: unknown, isRead?: boolean): S3Error;
  /** Is told of a failure before it is answered, so that the next request may succeed. Does not reject. */
  recover?(cause: unknown): Promise<void>;
}

/** An object's versions are told apart by these. */
export interface CurrentObject extends Validators {
  readonly bytes: number;
}

/** How an object is read. */
export interface Reading {
  /** Aborts when the client has left. */
  readonly left: AbortSignal;
  /** Returns the range that the client will get of an object. Absent where its bytes may not be sent at all. */
  readonly rangeOf?: (object: CurrentObject) => ByteRange | undefined;
}

/** An object and the way to its bytes, which stay the same when the object is replaced. */
export interface OpenedObject extends CurrentObject, KeptHeaders {
  /** Sends the bytes of `range`, by default all, and ends the response. `begin` sends its head, and is called first. */
  send(range: ByteRange | undefined, begin: () => void, response: ServerResponse): Promise<void>;
  /** The bytes of `range`, by default all. */
  content(range?: ByteRange): AsyncIterable<Uint8Array>;
  /** Stores its bytes under another name, or under its own name with another type and other headers. */
  copyTo(copy: ObjectCopy): Promise<Validators>;
  close(): unknown;
}

/** Throws S3Error PreconditionFailed or NoSuchKey unless the current object, or none, is as the client wants it. */
export type WriteCondition = (current: Validators | undefined) => void;
/** Throws S3Error PreconditionFailed unless the current object is the one that the client names. */
export type RemovalCondition = (current: CurrentObject) => void;

/** An object to store. */
export interface NewObject extends ObjectName, KeptHeaders {
  /** Without quotes: the MD5 of the bytes in hex, or the MD5 of the MD5s of the parts and their number (`MD5-2`). */
  readonly etag: string;
  readonly onlyIf: WriteCondition | undefined;
}

/** A copy to store. It keeps the ETag of its source. */
export interface ObjectCopy extends ObjectName {
  /** Replaces the type and the headers of its source. Checksums stay with the bytes. */
  readonly described: KeptHeaders | undefined;
  /** Replaces the checksums of its source, by header name. */
  readonly checksums: Readonly<Record<string, string>> | undefined;
  readonly onlyIf: WriteCondition | undefined;
}
