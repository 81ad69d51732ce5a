/**
 * Whether a bucket does what readers and writers need: signed requests, public reads, ranges, CORS, and a right clock.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { toAgaroseError } from "@agarose/core";
import { succeeds } from "@agarose/core/async";
import { MANIFEST_PREFIX, objectUrl } from "@agarose/core/format";
import type { PutBody, PutOptions, PutReceipt, Store } from "../buckets/store.ts";
import type { RegionConfig } from "../config/config.ts";
import type { Check, Remedy } from "./check.ts";
import { publicReadPolicy } from "../buckets/public-read.ts";
import { HEADERS_TO_EXPOSE } from "./merge-settings.ts";
import { namesIn } from "../pops/pop-client.ts";

/** AWS refuses signatures that are more than 15 minutes off. */
const SKEW_MS_FAIL = 15 * 60_000;
const SKEW_MS_WARN = 60_000;
const PROBE_BYTES = 64;
const RANGE_BYTES = 8;
/** More than one frame of `streamed-body.ts`. */
const STREAM_BYTES = 200_000;
const OTHER_ETAG = `"${"0".repeat(32)}"`;
const TIMEOUT_MS = 10_000;
/** Represents any origin. With `origin`, CORS is checked for the app's own alone. */
const ORIGIN_DEFAULT = "https://doctor.agarose.invalid";
/** Begins the names of what the checks store. */
export const PROBE_PREFIX = "doctor/";

interface RegionCheckOptions {
  /** The web app's origin, which CORS is checked for. */
  readonly origin?: string;
  /** Whether to check that its pages may store chunks, too. Default: false. */
  readonly uploads?: boolean | undefined;
  readonly fetch: typeof globalThis.fetch;
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
}

/** Stores a small object, reads it back in every way that Agarose reads, and removes it. */
export async function checkRegion(store: Store, options: RegionCheckOptions): Promise<Check[]> {
  const name = `${PROBE_PREFIX}${randomUUID()}`;
  const run = new RegionCheck(store, name, options);
  if (!(await run.list())) return run.checks;
  if (!(await run.write())) return run.checks;
  try {
    await run.stream();
    await run.writeConditionally();
    await run.removeConditionally();
    await run.readPublicly();
    await run.preflight();
    if (options.uploads) await run.preflightPut();
  } finally {
    await run.remove();
  }
  return run.checks;
}

class RegionCheck {
  readonly checks: Check[] = [];
  readonly #store: Store;
  readonly #name: string;
  readonly #options: RegionCheckOptions;
  readonly #names: string[];
  #etag: string | undefined;
  readonly #body = Uint8Array.from({ length: PROBE_BYTES }, (_, at) => at);

  constructor(store: Store, name: string, options: RegionCheckOptions) {
    this.#store = store;
    this.#name = name;
    this.#names = [name];
    this.#options = options;
  }

  list(): Promise<boolean> {
    const { endpoint, bucket } = this.#store.region;
    return this.#step("credentials", async () => {
      // The first page is enough: the endpoint answers, and it takes our signature.
      try {
        for await (const _ of this.#store.list(MANIFEST_PREFIX, this.#options.signal)) break;
      } catch (error) {
        if (toAgaroseError(error).details["error"] !== "NoSuchBucket") throw error;
        const message = `${endpoint} has no bucket ${bucket}: make it, or correct \`bucket\``;
        this.#add("bucket", "fail", message, "make bucket");
        return false;
      }
      this.#add("credentials", "ok", `${endpoint} accepts them for ${bucket}`);
      return true;
    });
  }

  write(): Promise<boolean> {
    return this.#step("write", async () => {
      this.#etag = (await this.#put(this.#name, this.#body, PROBE_BYTES)).etag;
      this.#add("write", "ok", "objects can be stored");
      this.#judgeChecksums();
    });
  }

  /** Stores a stream, as chunks of large objects are stored, and reads it back. */
  async stream(): Promise<void> {
    const body = randomBytes(STREAM_BYTES);
    const name = `${this.#name}-stream`;
    this.#names.push(name);
    const put = (): Promise<unknown> =>
      this.#put(name, Readable.from([body.subarray(0, 1000), body.subarray(1000)]), STREAM_BYTES);
    await this.#step("stream", async () => {
      // A store that refuses the checksum behind the bytes is sent the second one without, as `put` does.
      const refusal = await put().then(
        () => undefined,
        (error: unknown) => toAgaroseError(error, "STORE_FAILED"),
      );
      if (refusal) await put();
      const response = await this.#store.get(name, { signal: this.#options.signal });
      const stored = Buffer.from(await new Response(response.body).arrayBuffer());
      if (!stored.equals(body)) {
        this.#add("stream", "fail", `a stream of ${STREAM_BYTES} bytes came back as ${stored.length} other bytes`);
      } else if (refusal) {
        const message = `streams are stored without a checksum, because the store refused one (${refusal.message})`;
        this.#add("stream", "warn", message);
      } else this.#add("stream", "ok", "large objects can be stored and read back");
    });
  }

  /** Whether the store refuses a write whose condition does not hold; what coordinates writers depends on it. */
  async writeConditionally(): Promise<void> {
    const put = (condition: { ifNoneMatch: "*" } | { ifMatch: string }): Promise<PutReceipt> =>
      this.#put(this.#name, this.#body, PROBE_BYTES, condition);
    const unknown: string[] = [];
    const isRefused = (condition: Parameters<typeof put>[0]): Promise<boolean> =>
      put(condition).then(
        () => false,
        (error: unknown) => {
          const { status } = toAgaroseError(error).details;
          if (status === 412) return true;
          // The answers of stores to a header that they do not implement.
          if (status === 400 || status === 501) {
            unknown.push(...Object.keys(condition));
            return false;
          }
          throw error;
        },
      );
    if (this.#store.region.conditionalWrites === false) {
      const message = "left out by conditionalWrites: two writers of one key at the same moment may both succeed here";
      this.#add("conditional writes", "warn", message);
      return;
    }
    await this.#step("conditional writes", async () => {
      const ignored: string[] = [];
      if (!(await isRefused({ ifNoneMatch: "*" }))) ignored.push("If-None-Match");
      if (!(await isRefused({ ifMatch: OTHER_ETAG }))) ignored.push("If-Match");
      const matches = this.#etag === undefined || (await succeeds(put({ ifMatch: this.#etag })));
      if (ignored.length === 0 && matches)
        this.#add("conditional writes", "ok", "If-Match and If-None-Match are obeyed");
      else {
        const what = ignored.length > 0 ? ignored.join(" and ") : "a right If-Match";
        const message = `the store does not support ${what}: set conditionalWrites to false for this region, and let one writer at a time change a key`;
        // Where the header itself is refused, no object can be stored at all.
        this.#add("conditional writes", unknown.length > 0 ? "fail" : "warn", message);
      }
    });
  }

  /** Whether the store keeps an object whose ETag is not the one given; `gc` and undone puts use it. */
  async removeConditionally(): Promise<void> {
    if (this.#store.region.conditionalWrites === false) return;
    const name = `${this.#name}-delete`;
    this.#names.push(name);
    await this.#step("conditional deletes", async () => {
      await this.#put(name, this.#body, PROBE_BYTES);
      const refusal = await this.#store.removeMatching(name, OTHER_ETAG).then(
        () => undefined,
        (error: unknown) => toAgaroseError(error),
      );
      const isKept = (await this.#store.head(name, this.#options.signal)) === PROBE_BYTES;
      if (isKept && refusal?.details["status"] === 412) this.#add("conditional deletes", "ok", "If-Match is obeyed");
      else {
        const what = isKept ? `is answered by ${refusal?.message ?? "success, and nothing is deleted"}` : "is ignored";
        const risk = "a put that is undone can delete what another writer has just put";
        const message = `If-Match on a deletion ${what}: ${risk}; let one writer at a time change a key`;
        this.#add("conditional deletes", "warn", message);
      }
    });
  }

  /** As a browser reads: a range of a chunk, without credentials, from another origin. */
  async readPublicly(): Promise<void> {
    const headers = { range: `bytes=0-${RANGE_BYTES - 1}`, origin: this.#origin };
    const startedMs = this.#options.nowMs();
    const response = await this.#fetch("public read", { headers });
    if (!response) return;
    const body = new Uint8Array(await response.arrayBuffer());
    const { url, private: isPrivate } = this.#store.region;
    if (isPrivate) {
      this.#judgePrivate(response, url);
    } else if (response.status === 401 || response.status === 403) {
      this.#judgeRefused(response.status);
    } else if (response.status !== 200 && response.status !== 206) {
      this.#add("public read", "fail", `${url} answers ${response.status} for an object that is there: check \`url\``);
    } else {
      this.#add("public read", "ok", `${url} serves objects to anyone`);
      this.#judgeRange(response, body);
      this.#judgeCors(response);
    }
    this.#judgeClock(response, (startedMs + this.#options.nowMs()) / 2);
  }

  async preflight(): Promise<void> {
    const response = await this.#askBefore("preflight", "GET", ["range"]);
    if (!response) return;
    // A single range is a safelisted header in today's browsers, so reads work without this too.
    if (this.#allows(response, "headers", ["range"]))
      return this.#add("preflight", "ok", "the Range header is allowed");
    const message = `the Range header is not allowed (${response.status}): add it to AllowedHeaders`;
    this.#add("preflight", "warn", message, "set CORS");
  }

  /** The preflight of a browser before it sends a chunk to its signed address. */
  async preflightPut(): Promise<void> {
    const { endpoint, bucket } = this.#store.region;
    const asked = ["cache-control", "content-type", "if-none-match"];
    const response = await this.#askBefore("uploads", "PUT", asked, `${endpoint}/${bucket}`);
    if (!response) return;
    if (this.#allows(response, "methods", ["put"]) && this.#allows(response, "headers", asked)) {
      return this.#add("uploads", "ok", `pages of ${this.#origin} may store chunks`);
    }
    const rule = { AllowedOrigins: [this.#options.origin ?? "*"], AllowedMethods: ["PUT"], AllowedHeaders: asked };
    const message = `pages may not store chunks (${response.status}): add the CORS rule ${JSON.stringify(rule)}`;
    this.#add("uploads", "fail", message);
  }

  async remove(): Promise<void> {
    const [failed] = await this.#store.remove(this.#names);
    if (failed) this.#add("remove", "warn", `${failed.name} could not be removed again: ${failed.problem}`);
    else this.#add("remove", "ok", "objects can be removed");
  }

  /** The store was asked with them first, unless the configuration says that it refuses them. */
  #judgeChecksums(): void {
    const { takesChecksums = true, region } = this.#store;
    if (takesChecksums) return this.#add("checksums", "ok", "uploads carry a checksum");
    if (region.checksums === false) {
      return this.#add("checksums", "ok", "left out by checksums: uploads carry Content-MD5 in their place");
    }
    const message =
      "the store refuses the checksum headers of uploads, so that each command sends its first upload twice: set " +
      "checksums to false for this region, or upgrade the store; uploads then carry Content-MD5";
    this.#add("checksums", "fail", message);
  }

  /** Only what is served at the bucket's own address is known to be refused by the bucket. */
  #judgeRefused(status: number): void {
    const { region } = this.#store;
    const refused = `${region.url} answers ${status} without credentials`;
    if (isOwnAddress(region)) {
      const message = `${refused}: give the bucket the policy ${publicReadPolicy(region.bucket)}`;
      this.#add("public read", "fail", message, "allow public reads");
    } else {
      const message = `${refused}: allow public reads there, or give the bucket the policy ${publicReadPolicy(region.bucket)}`;
      this.#add("public read", "fail", message);
    }
  }

  /** An answer that refuses carries CORS headers too. */
  #judgePrivate(response: Response, url: string): void {
    if (response.status === 401 || response.status === 403) {
      this.#add("private read", "ok", `${url} refuses unsigned reads`);
      this.#judgeCors(response);
    } else {
      const message = `${url} is configured as private and answers ${response.status} without a signature: remove public reads`;
      this.#add("private read", "fail", message);
    }
  }

  #judgeRange(response: Response, body: Uint8Array): void {
    const right = body.length === RANGE_BYTES && body.every((byte, at) => byte === this.#body[at]);
    if (response.status === 206 && right) this.#add("range", "ok", "byte ranges are served");
    else {
      const answer = `${response.status} with ${body.length} bytes`;
      this.#add(
        "range",
        "fail",
        `a range of ${RANGE_BYTES} bytes is answered by ${answer}: the server must support Range`,
      );
    }
  }

  #judgeCors(response: Response): void {
    if (!this.#allowsOrigin(response)) {
      const message = `${this.#origin} is not allowed to read: set CORS on the bucket (GET and HEAD, AllowedOrigins), or check for the origin of your app`;
      this.#add("cors", "fail", message, "set CORS");
      return;
    }
    this.#add("cors", "ok", `${this.#origin} may read`);
    const names = namesIn(response.headers.get("access-control-expose-headers"));
    const hidden = names.has("*") ? [] : HEADERS_TO_EXPOSE.filter((name) => !names.has(name));
    if (hidden.length === 0) this.#add("exposed headers", "ok", HEADERS_TO_EXPOSE.join(", "));
    else {
      const message = `scripts cannot see ${hidden.join(", ")}: add them to ExposeHeaders`;
      this.#add("exposed headers", "warn", message, "set CORS");
    }
  }

  #judgeClock(response: Response, nowMs: number): void {
    const serverMs = Date.parse(response.headers.get("date") ?? "");
    if (Number.isNaN(serverMs)) return this.#add("clock", "warn", "the answer has no Date header to compare with");
    // The Date header counts whole seconds, so half of one is its best guess.
    const skewMs = Math.round(nowMs - (serverMs + 500));
    const state = Math.abs(skewMs) > SKEW_MS_FAIL ? "fail" : Math.abs(skewMs) > SKEW_MS_WARN ? "warn" : "ok";
    const skew = `${Math.abs(skewMs / 1000).toFixed(0)} s ${skewMs < 0 ? "behind" : "ahead of"} the server`;
    if (state === "ok") return this.#add("clock", state, `this machine is ${skew}`);
    const times = `it shows ${new Date(nowMs).toISOString()}, the server's ${new Date(serverMs).toISOString()}`;
    const remedy =
      "set this machine's clock, as by NTP: requests are refused once before they are signed by the server's time, " +
      "and gc and expire delete nothing";
    this.#add("clock", state, `this machine is ${skew} (${times}): ${remedy}`);
  }

  /** The answer to the preflight of a browser. */
  async #askBefore(name: string, method: string, names: string[], base?: string): Promise<Response | undefined> {
    const headers = {
      origin: this.#origin,
      "access-control-request-method": method,
      "access-control-request-headers": names.join(),
    };
    const response = await this.#fetch(name, { method: "OPTIONS", headers }, base);
    await response?.body?.cancel();
    return response;
  }

  #allows(response: Response, list: "headers" | "methods", names: readonly string[]): boolean {
    const allowed = namesIn(response.headers.get(`access-control-allow-${list}`));
    return (
      response.ok && this.#allowsOrigin(response) && (allowed.has("*") || names.every((name) => allowed.has(name)))
    );
  }

  #allowsOrigin(response: Response): boolean {
    const allowed = response.headers.get("access-control-allow-origin");
    return allowed === "*" || allowed === this.#origin;
  }

  get #origin(): string {
    return this.#options.origin ?? ORIGIN_DEFAULT;
  }

  #put(name: string, body: PutBody, bytes: number, condition?: Pick<PutOptions, "ifMatch" | "ifNoneMatch">) {
    const options = { bytes, contentType: "application/octet-stream", signal: this.#options.signal };
    return this.#store.put(name, body, { ...options, ...condition });
  }

  async #fetch(name: string, init: RequestInit, base = this.#store.region.url): Promise<Response | undefined> {
    const url = objectUrl(base, this.#name);
    try {
      const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      return await this.#options.fetch(url, { ...init, signal });
    } catch (error) {
      this.#options.signal.throwIfAborted();
      this.#add(name, "fail", `${this.#store.region.url} does not answer (${(error as Error).message}): check \`url\``);
      return undefined;
    }
  }

  /** @param action returns false when it has added its own failure. */
  async #step(name: string, action: () => Promise<boolean | void>): Promise<boolean> {
    try {
      return (await action()) ?? true;
    } catch (error) {
      this.#options.signal.throwIfAborted();
      const { code, message } = toAgaroseError(error, "SOURCE_FAILED");
      this.#add(name, "fail", `${code}: ${message}`);
      return false;
    }
  }

  #add(name: string, state: Check["state"], message: string, remedy?: Remedy): void {
    this.checks.push({ subject: this.#store.region.name, name, state, message, ...(remedy && { remedy }) });
  }
}

/** Whether `url` leads to the bucket itself, and not to a CDN or another server before it. */
function isOwnAddress({ endpoint, bucket, url }: RegionConfig): boolean {
  const withoutSlash = (address: string): string => address.replace(/\/+$/, "");
  const { protocol, host } = new URL(endpoint);
  const own = [`${withoutSlash(endpoint)}/${bucket}`, `${protocol}//${bucket}.${host}`];
  return own.includes(withoutSlash(url));
}
