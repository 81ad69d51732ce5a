/** One request and its response, as the operations see them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { MultipartUploads } from "./multipart.ts";
import type { StoredObjects } from "./object-store.ts";
import type { SigningContext } from "./wire/signature.ts";
import type { KeyLock } from "./key-lock.ts";

/** A request, what it addresses, and what it works on. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly bucket: string;
  /** Decoded. Empty when the request addresses the bucket itself. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly signing: SigningContext | undefined;
  readonly store: StoredObjects;
  readonly uploads: MultipartUploads;
  readonly locks: KeyLock;
  readonly nowMs: () => number;
}

/** Ends the response with an XML document. */
export function sendXml({ response }: Exchange, xml: string, status = 200): void {
  response.writeHead(status, { "content-type": "application/xml", "content-length": String(Buffer.byteLength(xml)) });
  response.end(xml);
}

/** Ends the response without a body. */
export function sendEmpty({ response }: Exchange, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, status === 204 ? headers : { "content-length": "0", ...headers });
  response.end();
}
