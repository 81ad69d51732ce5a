/**
 * Asks a PoP as its operator: for its health, and with an admin token for its state, or to forget keys. Nothing else
 * in the command line and the library requests anything from a PoP.
 */
import { AgaroseError } from "@agarose/core";
import * as v from "valibot";
import { POP_ANSWER_BYTES_MAX, readRecordText } from "../buckets/small-record.ts";
import { ADMIN_TOKEN_VARIABLE, adminTokenOf } from "./admin-token.ts";

/** A PoP as `pops` of the configuration lists it. */
export interface PopAddress {
  readonly name: string;
  readonly url: string;
  /** The place of its Worker, such as `aws:eu-central-1`. */
  readonly placement?: string | undefined;
  /** Path of a file that holds its admin token, for an environment that does not. */
  readonly adminTokenFile?: string | undefined;
}

/** How a client sends its requests. */
export interface PopClientOptions {
  readonly fetch?: typeof globalThis.fetch;
  /** How long a PoP may take for an answer, in milliseconds; 10 s by default. A purge gets a minute. */
  readonly timeoutMs?: number;
  /** Aborts all requests. */
  readonly signal?: AbortSignal;
  /** The page on whose behalf the client asks, so that answers have the headers that a browser needs. */
  readonly origin?: string;
}

/** The egress of fills on one day, in bytes. */
export type FillEgressToday = v.InferOutput<typeof FILL_EGRESS_SHAPE>;

/** One idea of the papers, as the PoP reports it. */
export type IdeaStatus = v.InferOutput<typeof IDEA_SHAPE>;

/** `/v1/status`, in the part that is used here. */
export type StatusAnswer = v.InferOutput<typeof STATUS_SHAPE>;

/** `/healthz`. The caller compares the name, and a PoP outside Cloudflare has neither entry nor version. */
export type HealthAnswer = v.InferOutput<typeof HEALTH_SHAPE>;

const TEXT_OR_NOTHING = v.fallback(v.optional(v.string()), undefined);
const HEALTH_SHAPE = v.fallback(
  v.object({ pop: TEXT_OR_NOTHING, entry: TEXT_OR_NOTHING, version: TEXT_OR_NOTHING }),
  {},
);

const IDEA_SHAPE = v.object({
  name: v.string(),
  atWork: v.boolean(),
  /** Why it is not at work. */
  reason: v.nullable(v.string()),
  /** Estimates of what it saves a read, in milliseconds and in US dollars of egress; null while unknown. */
  savedMs: v.nullable(v.number()),
  savedUsd: v.nullish(v.number()),
});

const FILL_EGRESS_SHAPE = v.object({ bytes: v.number(), bytesPerDayMax: v.number(), refusedStripes: v.number() });

/** A mean or a count that others add to. */
const AMOUNT = v.pipe(v.number(), v.finite(), v.minValue(0));

const STATUS_SHAPE = v.object({
  epoch: v.number(),
  policy: v.string(),
  cache: v.object({
    capacityBytes: v.number(),
    cachedBytes: v.number(),
    objects: v.array(v.object({ key: v.string(), chunks: v.array(v.number()) })),
  }),
  regions: v.array(
    v.object({
      name: v.string(),
      down: v.boolean(),
      slow: v.boolean(),
      /** Of a request, as the PoP believes it now. */
      meanMs: v.optional(AMOUNT),
      sdMs: v.optional(AMOUNT),
      p50Ms: v.nullish(v.number()),
      p99Ms: v.nullish(v.number()),
    }),
  ),
  lastPeriod: v.nullable(
    v.object({
      at: v.number(),
      errors: v.array(v.string()),
      popular: v.optional(v.array(v.object({ key: v.string(), popularity: AMOUNT }))),
      savings: v.optional(v.object({ imbalancePercent: v.optional(v.number()), regretMs: v.optional(v.number()) })),
    }),
  ),
  spending: v.optional(v.object({ usd: v.number() })),
  fillEgress: v.optional(FILL_EGRESS_SHAPE),
  place: v.nullish(
    v.object({
      location: v.string(),
      worker: v.nullable(v.string()),
      popState: v.nullable(v.string()),
      requestMonitor: v.array(v.nullable(v.string())),
      peerState: v.nullable(v.string()),
    }),
  ),
  ideas: v.optional(v.array(IDEA_SHAPE)),
  /** Whose state one Worker everywhere has answered with. */
  continent: v.nullish(v.string()),
  /** Keys that regions lack the newest version of, as the PoP has seen. */
  behind: v.optional(v.array(v.object({ key: v.string(), regions: v.array(v.string()) }))),
  publisherKeys: v.optional(v.array(v.string())),
  peers: v.nullish(
    v.object({ peers: v.array(v.object({ name: v.string(), down: v.boolean(), silent: v.boolean() })) }),
  ),
  isolate: v.object({
    chunkCache: v.object({ hits: v.number(), misses: v.number() }),
    recoveredChunks: v.optional(v.number()),
    deniedRegions: v.optional(v.array(v.string())),
  }),
});

const TIMEOUT_MS = 10_000;
/** A PoP waits up to 20 s for the period that runs, and then removes stripes for up to 20 s. */
const PURGE_TIMEOUT_MS = 60_000;
const REASON_LENGTH_MAX = 200;

/**
 * Sends the requests of an operator to one PoP. Every method rejects with SOURCE_FAILED, or with FORBIDDEN where the
 * admin token is missing or wrong. The error has the status of the answer, if one came, and says what to do.
 */
export class PopClient {
  readonly pop: PopAddress;
  readonly #options: PopClientOptions;
  readonly #token: string | undefined;

  /** The admin token is the one that `adminTokenOf` finds. Throws CONFIG_INVALID as it does. */
  constructor(pop: PopAddress, options: PopClientOptions = {}) {
    this.pop = pop;
    this.#options = options;
    this.#token = adminTokenOf(pop);
  }

  /** Whether there is an admin token, without which only `health` and `preflight` succeed. */
  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** `GET /healthz`: whether the PoP runs, with the headers of its answer. */
  async health(): Promise<{ readonly answer: HealthAnswer; readonly headers: Headers }> {
    const { body, headers } = await this.#json("/healthz");
    return { answer: v.parse(HEALTH_SHAPE, body), headers };
  }

  /** `GET /v1/status`: the state of the PoP, and where Cloudflare says that its Worker ran. Null: it does not say. */
  async status(): Promise<{ readonly answer: StatusAnswer; readonly placement: string | null }> {
    const { body, headers } = await this.#json("/v1/status", { headers: this.#authorization() });
    const read = v.safeParse(STATUS_SHAPE, body);
    if (read.success) return { answer: read.output, placement: headers.get("cf-placement") };
    throw failure(`${this.pop.url}/v1/status`, "is not what a PoP of this version answers", {
      advice: "check its url, or deploy it again",
    });
  }

  /** `POST /v1/purge`: the PoP forgets some keys, at most 100 of them, or all keys below a prefix. */
  async purge(which: { readonly keys: readonly string[] } | { readonly prefix: string }): Promise<void> {
    const init = { method: "POST", headers: this.#authorization(), body: JSON.stringify(which) };
    await this.#json("/v1/purge", init, PURGE_TIMEOUT_MS);
  }

  /** `OPTIONS`, as a browser sends it before a read with the headers `names`: those that the PoP allows. */
  async preflight(names: readonly string[]): Promise<ReadonlySet<string>> {
    const asked = {
      "access-control-request-method": "GET",
      "access-control-request-headers": names.join(", "),
    };
    const response = await this.#request("/v1/read/x", { method: "OPTIONS", headers: asked });
    await response.body?.cancel();
    return namesIn(response.headers.get("access-control-allow-headers"));
  }

  #authorization(): Record<string, string> {
    if (this.#token !== undefined) return { authorization: `Bearer ${this.#token}` };
    const message = `no admin token: set ${ADMIN_TOKEN_VARIABLE} to the ADMIN_TOKEN of the PoP`;
    throw new AgaroseError("FORBIDDEN", message, { pop: this.pop.name });
  }

  async #json(path: string, init?: RequestInit, timeoutMs?: number): Promise<{ body: unknown; headers: Headers }> {
    const response = await this.#request(path, init, timeoutMs);
    const url = `${this.pop.url}${path}`;
    try {
      const body: unknown = JSON.parse(await readRecordText(response, url, POP_ANSWER_BYTES_MAX));
      return { body, headers: response.headers };
    } catch (cause) {
      this.#options.signal?.throwIfAborted();
      throw failure(url, "did not answer with JSON", { advice: "check that its url is a PoP's", cause });
    }
  }

  /** Resolves to an answer whose status is 2xx. */
  async #request(
    path: string,
    init: RequestInit = {},
    timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS,
  ): Promise<Response> {
    const { fetch = globalThis.fetch, signal, origin } = this.#options;
    const url = `${this.pop.url}${path}`;
    const headers = { ...(init.headers as Record<string, string>), ...(origin !== undefined && { origin }) };
    const timeout = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, {
      ...init,
      headers,
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    }).catch((cause: unknown) => {
      signal?.throwIfAborted();
      const why = timeout.aborted ? `in ${timeoutMs} ms` : `(${reasonOf(cause)})`;
      throw failure(url, `did not answer ${why}`, { advice: "check its url, and that it runs", cause });
    });
    if (response.ok) return response;
    const { status } = response;
    if (status === 401 || status === 403) {
      // Where a server closes the connection of an answer that nobody reads, Node's client ends the process.
      await response.body?.cancel();
      const { code, what, advice } = "authorization" in headers ? TOKEN_REFUSED : REFUSED;
      throw failure(url, `${what} with ${status}`, { code, status, advice });
    }
    const reason = await readRecordText(response, url).then(messageIn, () => "more than an error");
    throw failure(url, `answered ${status} (${reason})`, {
      status,
      reason,
      advice: "deploy it again, or read its log",
    });
  }
}

const TOKEN_REFUSED = {
  code: "FORBIDDEN",
  what: "refused the admin token",
  advice: `set ${ADMIN_TOKEN_VARIABLE} to the ADMIN_TOKEN of the PoP`,
} as const;
const REFUSED = {
  code: "SOURCE_FAILED",
  what: "refused the request",
  advice: "check that its url is a PoP's",
} as const;

/** The one error of a client. `reason` is what the PoP itself says. */
function failure(
  url: string,
  what: string,
  more: {
    readonly code?: "SOURCE_FAILED" | "FORBIDDEN";
    readonly advice: string;
    readonly status?: number;
    readonly reason?: string;
    readonly cause?: unknown;
  },
): AgaroseError {
  const { code = "SOURCE_FAILED", advice, status, reason, cause } = more;
  const details = { url, ...(status !== undefined && { status }), ...(reason !== undefined && { reason }) };
  return new AgaroseError(code, `${url} ${what}: ${advice}`, details, cause);
}

/** The message of an error as a PoP answers it, or the beginning of anything else. */
function messageIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error: { message: string } };
    return error.message.slice(0, REASON_LENGTH_MAX);
  } catch {
    return text.slice(0, REASON_LENGTH_MAX);
  }
}

/** The names in a header that lists some, in lower case. */
export function namesIn(header: string | null): ReadonlySet<string> {
  return new Set((header ?? "").split(",").map((name) => name.trim().toLowerCase()));
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: Error & { code?: string } };
  return cause?.code ?? cause?.message ?? message;
}

/**
 * The keys that PoPs have found regions to lack the newest version of. PoPs without an admin token here are not asked,
 * and those that do not answer are omitted: a walk over all objects finds such keys, too.
 */
export async function keysBehind(pops: readonly PopAddress[]): Promise<string[]> {
  const keysOf = async (pop: PopAddress): Promise<string[]> => {
    const { answer } = await new PopClient(pop).status();
    return (answer.behind ?? []).slice(0, BEHIND_MAX).map(({ key }) => key);
  };
  const found = await Promise.all(pops.map((pop) => keysOf(pop).catch(() => [])));
  return [...new Set(found.flat())];
}

/** Keys that a PoP may name: each takes a look at every region. */
const BEHIND_MAX = 1_000;
