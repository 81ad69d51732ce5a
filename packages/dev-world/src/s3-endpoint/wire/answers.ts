/** Answers: XML documents, empty ones, and the document by which S3 reports an error. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { S3Error } from "./s3-error.ts";
import { element, XML_DECLARATION } from "./xml.ts";

interface Answered {
  readonly response: ServerResponse;
}

/** Ends the response with an XML document. */
export function sendXml({ response }: Answered, xml: string, status = 200): void {
  response.writeHead(status, { "content-type": "application/xml", "content-length": String(Buffer.byteLength(xml)) });
  response.end(xml);
}

/** Ends the response without a body. */
export function sendEmpty({ response }: Answered, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, status === 204 ? headers : { "content-length": "0", ...headers });
  response.end();
}

/**
 * Answers with the error document of `cause`. A response that has begun is cut off, so that its client sees a failure.
 */
export function sendError(request: IncomingMessage, response: ServerResponse, cause: unknown, requestId: string): void {
  if (response.headersSent || (request.destroyed && !request.complete)) {
    response.destroy();
    return;
  }
  const unexpected = new S3Error("InternalError", cause instanceof Error ? cause.message : String(cause));
  const error = cause instanceof S3Error ? cause : unexpected;
  for (const name of ["content-length", "content-range", "content-type", "content-encoding", "etag"]) {
    response.removeHeader(name);
  }
  const xml = errorDocument(error, (request.url ?? "/").split("?")[0]!, requestId);
  const headers = { "content-type": "application/xml", "content-length": String(Buffer.byteLength(xml)) };
  response.writeHead(error.status, headers);
  response.end(request.method === "HEAD" ? undefined : xml);
  // Without draining the rest of the body the client may never read the response.
  request.resume();
}

/** Returns the document for `error`. `resource` is the path of the request. */
function errorDocument(error: S3Error, resource: string, requestId: string): string {
  const fields = { Code: error.code, Message: error.message, Resource: resource, RequestId: requestId };
  const elements = Object.entries(fields).map(([name, value]) => element(name, value, "text"));
  return XML_DECLARATION + element("Error", elements.join(""));
}
