/** The XML document by which S3 reports an error. */
import type { S3Error } from "./s3-error.ts";
import { element, XML_DECLARATION } from "./xml.ts";

/** Returns the document for `error`. `resource` is the path of the request. */
export function errorDocument(error: S3Error, resource: string, requestId: string): string {
  const fields = { Code: error.code, Message: error.message, Resource: resource, RequestId: requestId };
  const elements = Object.entries(fields).map(([name, value]) => element(name, value, "text"));
  return XML_DECLARATION + element("Error", elements.join(""));
}
