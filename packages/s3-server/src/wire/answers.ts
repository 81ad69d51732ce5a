/** Answers: XML documents, empty ones, and the document by which S3 reports an error. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { S3Error } from "./s3-error.ts";
import { element, XML_DECLARATION } from "./xml.ts";

interface Answered {
  readonly response: ServerResponse;
}

/**
 * Serves requests, those with an `Expect` header too. A client that waits for 100 Continue gets it from `sendContinue`,
 * once the head of its request is found good; without, its body never crosses the line.
 */
export function serveAll(server: Server, serve: (request: IncomingMessage, response: ServerResponse) => void): void {
  server.on("request", serve);
  server.on("checkContinue", serve);
  // Node would answer 417 without saying why, to an empty one too.
  server.on("checkExpectation", serve);
}

/** Asks a client that waits for it to send its body. */
export function sendContinue({ request, response }: Answered & { readonly request: IncomingMessage }): void {
  if (waits(request)) response.writeContinue();
}

function waits({ headers }: IncomingMessage): boolean {
  return /100-continue/i.test(headers.expect ?? "");
}

/** Ends the response with an XML document. */
export function sendXml({ response }: Answered, xml: string, status = 200): void {
  response.writeHead(status, { "content-type": "application/xml", "content-length": String(Buffer.byteLength(xml)) });
  response.end(xml);
}

/** A client that hears nothing for a minute gives up. S3 too sends white space in the meantime. */
const SILENCE_MS = 3_000;

/**
 * Ends the response with an XML document that may take long to make. After some seconds it answers 200 and sends white
 * space until the document is there, so that no time limit of a client ends the request. What fails from then on is
 * told by an error document in the body, where clients of S3 look for it; without `errorOf` it cuts the connection, so
 * that no part passes for the whole.
 *
 * @param work resolves with the document, which begins with `XML_DECLARATION`.
 * @param errorOf says in words of S3 why it failed.
 */
export async function sendXmlOnceDone(
  { request, response }: Answered & { readonly request: IncomingMessage },
  work: Promise<string>,
  errorOf?: (cause: unknown) => S3Error,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const speak = (): void => {
    if (response.headersSent) response.write(" ");
    else {
      response.writeHead(200, { "content-type": "application/xml" });
      response.write(XML_DECLARATION);
    }
    timer = setTimeout(speak, SILENCE_MS);
  };
  timer = setTimeout(speak, SILENCE_MS);
  try {
    const xml = await work;
    if (response.headersSent) response.end(xml.slice(XML_DECLARATION.length));
    else sendXml({ response }, xml);
  } catch (cause) {
    if (!response.headersSent || !errorOf) throw cause;
    const error = errorOf(cause);
    response.end(errorElement(error, pathOf(request), String(response.getHeader("x-amz-request-id"))));
  } finally {
    clearTimeout(timer);
  }
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
  const xml = XML_DECLARATION + errorElement(error, pathOf(request), requestId);
  const length = String(Buffer.byteLength(xml));
  // A client that was not told to continue may send its body or not, so that the next request could not be found.
  if (waits(request) && !request.complete) response.shouldKeepAlive = false;
  response.writeHead(error.status, { "content-type": "application/xml", "content-length": length, ...error.headers });
  response.end(request.method === "HEAD" ? undefined : xml);
  // Without draining the rest of the body the client may never read the response.
  request.resume();
}

/** Returns the path as it was sent. */
export function pathOf(request: IncomingMessage): string {
  return (request.url ?? "/").split("?")[0]!;
}

/** Returns the root of the document for `error`. `resource` is the path of the request. */
function errorElement(error: S3Error, resource: string, requestId: string): string {
  const fields = { Code: error.code, Message: error.message, Resource: resource, RequestId: requestId };
  return element(
    "Error",
    Object.entries(fields)
      .map(([name, value]) => element(name, value, "text"))
      .join(""),
  );
}
