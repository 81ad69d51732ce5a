/**
 * A server of S3: it checks signatures, bodies and conditions, and keeps buckets and objects in a backend.
 *
 * @module
 */
export type {
  Backend,
  CurrentObject,
  NewObject,
  ObjectCopy,
  OpenedObject,
  Reading,
  RemovalCondition,
  WriteCondition,
} from "./backend.ts";
export type { KeyPair, Rights } from "./rights.ts";
export { startS3Server, type S3Server, type S3ServerOptions } from "./server.ts";
export {
  UPLOAD_LIFE_MS,
  Uploads,
  type CompletedUpload,
  type Upload,
  type UploadedPart,
  type UploadJournal,
} from "./uploads.ts";
export type { KeptHeaders } from "./wire/answered-object.ts";
export { receiveBody, type BodyFile, type Received } from "./wire/body.ts";
export { algorithmOfHeader, CHECKSUM_ALGORITHMS, checksumHeader, type ChecksumAlgorithm } from "./wire/checksum.ts";
export { readCompletion } from "./wire/completion.ts";
export type { Validators } from "./wire/conditions.ts";
export { readDeletion } from "./wire/deletion.ts";
export {
  compareUtf8,
  type KeyList,
  type ListedKey,
  type ListedObject,
  type ListedVersion,
  type UploadChecksum,
  type VersionList,
} from "./wire/list.ts";
export { OPERATIONS, type OperationName } from "./wire/operations.ts";
export { PART_LENGTHS } from "./wire/parts.ts";
export type { ObjectName, VersionName } from "./wire/request.ts";
export { S3Error, type S3ErrorCode } from "./wire/s3-error.ts";
export type { Credentials } from "./wire/signature.ts";
