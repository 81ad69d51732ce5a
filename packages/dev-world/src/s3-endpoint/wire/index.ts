/**
 * What every S3 server of ours shares: signatures, bodies, conditions, lists, XML and errors.
 *
 * @module
 */
export { sendEmpty, sendError, sendXml } from "./answers.ts";
export { receiveBody, receiveText, type BodyTarget, type ReceivedBody } from "./body.ts";
export { checkPut, notModified, type Validators } from "./conditions.ts";
export { compareUtf8, listObjects, type ListedObject } from "./list.ts";
export { findOperation, type Route } from "./routes.ts";
export { S3Error, type S3ErrorCode } from "./s3-error.ts";
export { namedParts, PARTS_MAX } from "../multipart.ts";
export { checkSignature, decode, type Credentials, type SigningContext } from "./signature.ts";
export { element, elementsOf, textsOf, xmlDocument } from "./xml.ts";
