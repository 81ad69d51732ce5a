/**
 * What every S3 server of ours shares: what it understands, signatures, bodies, checksums, conditions, lists, XML and
 * errors.
 *
 * @module
 */
export { answeredHeaders, keptHeaders, notModifiedHeaders, type KeptHeaders } from "./answered-object.ts";
export { sendContinue, sendEmpty, sendError, sendXml, sendXmlOnceDone, serveAll } from "./answers.ts";
export { algorithmOfHeader, CHECKSUM_ALGORITHMS, checksumHeader, type ChecksumAlgorithm } from "./checksum.ts";
export { receiveBody, receiveText, type BodyTarget, type Received, type ReceivedBody } from "./body.ts";
export { listBuckets } from "./bucket-list.ts";
export {
  checkCompletion,
  checkPartAlgorithm,
  namedParts,
  partAsked,
  partNumberOf,
  readCompletion,
  uploadChecksumOf,
} from "./completion.ts";
export {
  checkPut,
  checkRemoval,
  notModified,
  rangeAsked,
  type RemovalConditions,
  type Validators,
} from "./conditions.ts";
export { DELETE_XML_BYTES_MAX, readDeletion } from "./deletion.ts";
export {
  checksumElements,
  compareUtf8,
  continuedAt,
  listObjects,
  listParts,
  listUploads,
  type ListedObject,
  type UploadChecksum,
} from "./list.ts";
export { OPERATIONS, type OperationName } from "./operations.ts";
export { readRequest, type S3Request } from "./request.ts";
export { findOperation, type Operations } from "./routes.ts";
export { S3Error, type S3ErrorCode } from "./s3-error.ts";
export type { Credentials, SigningContext } from "./signature.ts";
export { element, xmlDocument } from "./xml.ts";
