/**
 * Whether a bucket does what readers and writers need: signed requests, public reads, ranges, CORS, and a right clock.
 */
import { randomUUID } from "node:crypto";
import { MANIFEST_PREFIX, objectUrl, toAgaroseError } from "@agarose/core";
import type { Store } from "../../lib/store/store.ts";
import type { Check } from "./check.ts";

/** AWS refuses signatures that are more than 15 minutes off. */
const SKEW_MS_FAIL = 15 * 60_000;
const SKEW_MS_WARN = 60_000;
const PROBE_BYTES = 64;
const RANGE_BYTES = 8;
const TIMEOUT_MS = 10_000;
/** Any origin: whoever configured CORS for the app's own origin only is told to check that one. */
const ORIGIN_DEFAULT = "https://doctor.agarose.invalid";
/** Readable by scripts only when the bucket exposes them. */
const HEADERS_TO_EXPOSE = ["content-range", "etag", "date"];

export interface RegionCheckOptions {
  /** The web app's origin, which CORS is checked for. */
  readonly origin?: string;
  readonly fetch: typeof globalThis.fetch;
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
}

/** Stores a small object, reads it back in every way that Agarose reads, and removes it. */
export async function checkRegion(store: Store, options: RegionCheckOptions): Promise<Check[]> {
  const name = `doctor/${randomUUID()}`;
  const run = new RegionCheck(store, name, options);
  if (!(await run.list())) return run.checks;
  if (!(await run.write())) return run.checks;
  try {
    await run.readPublicly();
    await run.preflight();
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
  readonly #body = Uint8Array.from({ length: PROBE_BYTES }, (_, at) => at);

  constructor(store: Store, name: string, options: RegionCheckOptions) {
    this.#store = store;
    this.#name = name;
    this.#options = options;
  }

  list(): Promise<boolean> {
    return this.#step("credentials", async () => {
      // The first page is enough: the endpoint answers, and it takes our signature.
      for await (const _ of this.#store.list(MANIFEST_PREFIX, this.#options.signal)) break;
      const { endpoint, bucket } = this.#store.region;
      this.#add("credentials", "ok", `${endpoint} accepts them for ${bucket}`);
    });
  }

  write(): Promise<boolean> {
    return this.#step("write", async () => {
      const options = { bytes: PROBE_BYTES, contentType: "application/octet-stream", signal: this.#options.signal };
      await this.#store.put(this.#name, this.#body, options);
      this.#add("write", "ok", "objects can be stored");
    });
  }

  /** What a browser does: a range of a chunk, without credentials, from another origin. */
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
      this.#add(
        "public read",
        "fail",
        `${url} answers ${response.status} without credentials: allow public s3:GetObject`,
      );
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
    const response = await this.#fetch("preflight", {
      method: "OPTIONS",
      headers: {
        origin: this.#origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "range",
      },
    });
    if (!response) return;
    await response.body?.cancel();
    const allowed = (response.headers.get("access-control-allow-headers") ?? "").toLowerCase();
    const sound = response.ok && this.#allowsOrigin(response) && (allowed.includes("range") || allowed.includes("*"));
    // A single range is a safelisted header in today's browsers, so reads work without this too.
    if (sound) this.#add("preflight", "ok", "the Range header is allowed");
    else
      this.#add("preflight", "warn", `the Range header is not allowed (${response.status}): add it to AllowedHeaders`);
  }

  async remove(): Promise<void> {
    const [failed] = await this.#store.remove([this.#name]);
    if (failed) this.#add("remove", "warn", `${this.#name} could not be removed again: ${failed.problem}`);
    else this.#add("remove", "ok", "objects can be removed");
  }

  /** An answer that refuses carries CORS headers too. */
  #judgePrivate(response: Response, url: string): void {
    if (response.status === 401 || response.status === 403) {
      this.#add("private read", "ok", `${url} refuses whoever has no signature`);
      this.#judgeCors(response);
    } else {
      const message = `${url} is configured as private and answers ${response.status} without a signature: take public reads away`;
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
      const message = `${this.#origin} is not allowed to read: set CORS on the bucket (GET and HEAD, AllowedOrigins)`;
      this.#add("cors", "fail", message);
      return;
    }
    this.#add("cors", "ok", `${this.#origin} may read`);
    const exposed = (response.headers.get("access-control-expose-headers") ?? "").toLowerCase();
    const names = new Set(exposed.split(",").map((name) => name.trim()));
    const hidden = names.has("*") ? [] : HEADERS_TO_EXPOSE.filter((name) => !names.has(name));
    if (hidden.length === 0) this.#add("exposed headers", "ok", HEADERS_TO_EXPOSE.join(", "));
    else this.#add("exposed headers", "warn", `scripts cannot see ${hidden.join(", ")}: add them to ExposeHeaders`);
  }

  #judgeClock(response: Response, nowMs: number): void {
    const serverMs = Date.parse(response.headers.get("date") ?? "");
    if (Number.isNaN(serverMs)) return this.#add("clock", "warn", "the answer has no Date header to compare with");
    // The Date header counts whole seconds, so half of one is its best guess.
    const skewMs = Math.round(nowMs - (serverMs + 500));
    const state = Math.abs(skewMs) > SKEW_MS_FAIL ? "fail" : Math.abs(skewMs) > SKEW_MS_WARN ? "warn" : "ok";
    const advice = state === "ok" ? "" : ": set this machine's clock, or signatures are refused";
    this.#add(
      "clock",
      state,
      `this machine is ${Math.abs(skewMs / 1000).toFixed(0)} s ${skewMs < 0 ? "behind" : "ahead of"} the server${advice}`,
    );
  }

  #allowsOrigin(response: Response): boolean {
    const allowed = response.headers.get("access-control-allow-origin");
    return allowed === "*" || allowed === this.#origin;
  }

  get #origin(): string {
    return this.#options.origin ?? ORIGIN_DEFAULT;
  }

  async #fetch(name: string, init: RequestInit): Promise<Response | undefined> {
    const url = objectUrl(this.#store.region.url, this.#name);
    try {
      const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      return await this.#options.fetch(url, { ...init, signal });
    } catch (error) {
      this.#options.signal.throwIfAborted();
      this.#add(name, "fail", `${this.#store.region.url} does not answer (${(error as Error).message}): check \`url\``);
      return undefined;
    }
  }

  async #step(name: string, action: () => Promise<void>): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (error) {
      this.#options.signal.throwIfAborted();
      const { code, message } = toAgaroseError(error, "SOURCE_FAILED");
      this.#add(name, "fail", `${code}: ${message}`);
      return false;
    }
  }

  #add(name: string, state: Check["state"], message: string): void {
    this.checks.push({ subject: this.#store.region.name, name, state, message });
  }
}
