/**
 * A server of files as the origin, by its base URL: it can be read, and neither listed nor written. It must say the
 * length of an object and a strong ETag, without which a change under a read would not be noticed.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { objectUrl } from "@agarose/core/format";
import type { S3Store } from "../buckets/s3-store.ts";

/** The plain objects that a deployment begins with. Only a bucket can be listed. */
export type Origin = Pick<S3Store, "get" | "look" | "head" | "close"> & Partial<Pick<S3Store, "list">>;

/** How long a HEAD may take. */
const LOOK_MS_MAX = 30_000;

/** Reads below a base URL, without credentials. Its methods reject with SOURCE_FAILED. */
export class HttpOrigin implements Origin {
  readonly #url: string;
  readonly #fetch: typeof fetch;

  constructor(url: string, network: typeof fetch = fetch) {
    this.#url = url;
    this.#fetch = network;
  }

  async get(name: string, { ifMatch, signal }: Parameters<S3Store["get"]>[1] = {}): ReturnType<S3Store["get"]> {
    return (await this.#ask("GET", name, signal, ifMatch)) ?? { status: 404, headers: new Headers(), body: null };
  }

  async look(name: string, signal?: AbortSignal): ReturnType<S3Store["look"]> {
    const within = AbortSignal.any([AbortSignal.timeout(LOOK_MS_MAX), ...(signal ? [signal] : [])]);
    const { status, headers } = (await this.#ask("HEAD", name, within)) ?? { status: 404, headers: new Headers() };
    if (status === 404 || status === 410) return undefined;
    const bytes = Number(headers.get("content-length") ?? "none");
    const etag = headers.get("etag") ?? "";
    if (status !== 200) throw failed(name, `answered ${status}`);
    if (!Number.isSafeInteger(bytes)) throw failed(name, "sends no length");
    if (headers.has("content-encoding")) throw failed(name, `codes the content as ${headers.get("content-encoding")}`);
    if (!/^"[^"]+"$/.test(etag)) throw failed(name, "has no strong ETag");
    return { name, bytes, etag, headers, modifiedMs: Date.parse(headers.get("last-modified") ?? "") || 0 };
  }

  async head(name: string, signal?: AbortSignal): Promise<number | undefined> {
    return (await this.look(name, signal))?.bytes;
  }

  close(): void {}

  /** Undefined for a name that no URL has, such as one with a segment `.`. */
  async #ask(method: string, name: string, signal?: AbortSignal, ifMatch?: string): Promise<Response | undefined> {
    const url = objectUrl(this.#url, name);
    if (new URL(url).href !== url) return undefined;
    const headers = { "accept-encoding": "identity", ...(ifMatch !== undefined && { "if-match": ifMatch }) };
    try {
      // A redirect could lead to another object.
      return await this.#fetch(url, { method, headers, redirect: "manual", ...(signal && { signal }) });
    } catch (cause) {
      throw failed(name, "did not answer", toAgaroseError(cause));
    }
  }
}

function failed(name: string, problem: string, cause?: AgaroseError): AgaroseError {
  const why = cause ? ` (${cause.message})` : "";
  const message = `the origin ${problem} for ${JSON.stringify(name)}${why}: run the command again, or look at the object`;
  return new AgaroseError("SOURCE_FAILED", message, { key: name }, cause);
}
