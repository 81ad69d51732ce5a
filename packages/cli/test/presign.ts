/** Presigned URLs, by the AWS SDK's own signer. */
import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";

export interface PresignOptions {
  readonly endpoint: string;
  readonly bucket: string;
  /** Empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Headers that the signature covers and the caller sends. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly method: string;
  readonly credentials: { accessKeyId: string; secretAccessKey: string };
  readonly expiresIn?: number;
  readonly signingDate?: Date;
}

export async function presign(options: PresignOptions): Promise<string> {
  const { host, hostname, port, protocol } = new URL(options.endpoint);
  const signer = new SignatureV4({
    service: "s3",
    region: "us-east-1",
    credentials: options.credentials,
    sha256: Sha256,
    uriEscapePath: false,
  });
  const path = `/${options.bucket && `${options.bucket}/`}${options.key.split("/").map(encode).join("/")}`;
  const request = {
    method: options.method,
    protocol,
    hostname,
    port: Number(port),
    path,
    headers: { host },
    query: { ...options.query },
  };
  const signed = await signer.presign(
    { ...request, headers: { host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", ...options.headers } },
    {
      expiresIn: options.expiresIn ?? 60,
      ...(options.signingDate && { signingDate: options.signingDate }),
      unhoistableHeaders: new Set(Object.keys(options.headers ?? {})),
    },
  );
  const query = Object.entries(signed.query ?? {}).map(([name, value]) => `${encode(name)}=${encode(String(value))}`);
  return `${protocol}//${host}${path}?${query.join("&")}`;
}

class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {}
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === "string") return Buffer.from(data);
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}
