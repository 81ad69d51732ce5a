/**
 * A page that uploads: a server begins and commits, and the chunks go from the page to the regions.
 */
import { AgaroseError, type ErrorCode } from "@agarose/core";
import type { PutResult } from "../../src/objects/put-object.ts";
import type { DeploymentParts } from "../../src/parts.ts";
import type { UploadGrant } from "../../src/page-uploads/handle-uploads.ts";
import { opened, sealed, type UploadToken } from "../../src/page-uploads/tokens.ts";
import { coded } from "../coded-page.ts";
import type { Engines } from "./engines.ts";

const SECRET = "a secret of thirty-two characters";
const TOKEN_MS = 600_000;

/** A page's knowledge of its upload once its chunks are stored. */
export interface Page {
  readonly upload: string;
  /** Behind the path of the uploads. */
  readonly path: string;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** A token of the app, whose number is in the name of its upload. */
export function tokenOf(key: string, token: number, nowMs: number): string {
  const upload = token.toString(16).padStart(32, "0");
  return sealed("token", { key, bytesMax: 1_000, upload, untilMs: nowMs + TOKEN_MS } satisfies UploadToken, SECRET);
}

/** A server of the app, and the page that asks it. */
export class PageServer {
  readonly #parts: DeploymentParts;
  readonly #handle: (request: Request) => Promise<Response>;

  constructor(parts: DeploymentParts, engines: Engines) {
    this.#parts = parts;
    this.#handle = engines.handleUploads({ secret: SECRET, bytesMax: 1_000, authorize: () => true }, parts);
  }

  /** Begins an upload; `send` stores its chunks. */
  async begin(wish: { key: string; token?: string | undefined }, content: Uint8Array): Promise<UploadGrant> {
    return this.#ask<UploadGrant>("", Buffer.from(JSON.stringify({ ...wish, bytes: content.length })));
  }

  /** Sends the chunks, as far as the regions take them. */
  async send(grant: UploadGrant, content: Uint8Array): Promise<Page> {
    const { ticket } = grant;
    const upload = uploadOf(grant);
    if (!grant.coded) return { upload, path: `/${ticket}`, body: new Uint8Array(content) };
    const { chunks, leaves, query } = await coded(grant, content);
    const sent = grant.coded.chunks.map(async ({ url }, chunk) => {
      const [, region, name] = /^s3:(\d+)\/(.*)$/.exec(url)!;
      const bytes = chunks[chunk]!;
      const options = { bytes: bytes.length, contentType: "application/octet-stream", ifNoneMatch: "*" } as const;
      await this.#parts.stores[Number(region)]!.put(name!, bytes, options);
    });
    await Promise.allSettled(sent);
    return { upload, path: `/${ticket}${query}`, body: leaves };
  }

  commit({ path, body }: Page): Promise<PutResult> {
    return this.#ask<PutResult>(path, body);
  }

  async #ask<T>(path: string, body: Uint8Array<ArrayBuffer>): Promise<T> {
    const response = await this.#handle(new Request(`https://app.test/v1/uploads${path}`, { method: "POST", body }));
    const answer = (await response.json()) as T & { error?: { code: ErrorCode; message: string } };
    if (!answer.error) return answer;
    throw new AgaroseError(answer.error.code, answer.error.message);
  }
}

/** The id of an upload. */
export function uploadOf({ ticket }: UploadGrant): string {
  return opened<{ upload: string; untilMs: number }>("ticket", ticket, SECRET, 0).upload;
}
