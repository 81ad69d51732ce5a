/**
 * What a PoP answers to its operator: `/healthz`, and with an admin token `/v1/status`.
 */
import { AgaroseError } from "@agarose/core";
import * as v from "valibot";
import { POP_ANSWER_BYTES_MAX, readRecordText } from "../buckets/small-record.ts";
import { adminTokenOf } from "./admin-token.ts";

/** A PoP as `pops` of the configuration lists it. */
export interface PopAddress {
  readonly name: string;
  readonly url: string;
  /** What its Worker is placed near, such as `aws:eu-central-1`. */
  readonly placement?: string | undefined;
}

/** How a PoP is asked. */
export interface AskOptions {
  readonly fetch: typeof globalThis.fetch;
  /** Undefined where the route needs none. */
  readonly token: string | undefined;
  readonly timeoutMs: number;
  readonly headers?: Record<string, string>;
}

/** The egress of fills on one day, in bytes. */
export type FillEgressToday = v.InferOutput<typeof FILL_EGRESS_SHAPE>;

/** One idea of the papers, as the PoP reports it. */
export type IdeaStatus = v.InferOutput<typeof IDEA_SHAPE>;

/** `/v1/status`, in the part that is used here. */
export type StatusAnswer = v.InferOutput<typeof STATUS_SHAPE>;

/** `/healthz`: whatever it says, a name that is not the PoP's is only noted. */
const HEALTH_SHAPE = v.fallback(v.object({ pop: v.optional(v.unknown()) }), {});

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

const STATUS_SHAPE = v.object({
  epoch: v.number(),
  policy: v.string(),
  cache: v.object({ capacityBytes: v.number(), cachedBytes: v.number(), objects: v.array(v.unknown()) }),
  regions: v.array(
    v.object({
      name: v.string(),
      down: v.boolean(),
      slow: v.boolean(),
      p50Ms: v.nullish(v.number()),
      p99Ms: v.nullish(v.number()),
    }),
  ),
  lastPeriod: v.nullable(
    v.object({
      at: v.number(),
      errors: v.array(v.string()),
      popular: v.optional(v.array(v.object({ key: v.string(), popularity: v.number() }))),
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

/** Returns the state in an answer to `/v1/status`. Throws SOURCE_FAILED for what no PoP of this version answers. */
export function statusOf(body: unknown, url: string): StatusAnswer {
  const read = v.safeParse(STATUS_SHAPE, body);
  if (read.success) return read.output;
  const message = `${url}/v1/status is not what a PoP of this version answers: check its url, or deploy it again`;
  throw new AgaroseError("SOURCE_FAILED", message, { url });
}

/** An answer of a PoP. */
export interface PopAnswer {
  /** Its JSON. */
  readonly body: unknown;
  readonly headers: Headers;
  /** Where Cloudflare says that the Worker ran; null where it does not say. */
  readonly placement: string | null;
}

/** Resolves to an answer with JSON. Rejects with SOURCE_FAILED or FORBIDDEN, which say what was answered instead. */
export async function ask(
  url: string,
  { fetch, token, timeoutMs, headers: more = {} }: AskOptions,
): Promise<PopAnswer> {
  const headers: Record<string, string> = { ...more, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, { headers, signal, redirect: "manual" }).catch((error: unknown) => {
    const why = (error as Error).name === "TimeoutError" ? `in ${timeoutMs} ms` : `(${reasonOf(error)})`;
    throw new AgaroseError("SOURCE_FAILED", `${url} did not answer ${why}`, { url }, error);
  });
  if (response.status === 401 || response.status === 403) {
    // Where a server closes the connection of an answer that nobody reads, Node's client ends the process.
    await response.body?.cancel();
    throw new AgaroseError("FORBIDDEN", `${url} refused the admin token: is it the PoP's ADMIN_TOKEN?`, { url });
  }
  if (response.status !== 200) {
    const text = await readRecordText(response, url).catch(() => "with more than an error");
    throw new AgaroseError("SOURCE_FAILED", `${url} answered ${response.status}: ${text.slice(0, 200)}`, { url });
  }
  const body = await readRecordText(response, url, POP_ANSWER_BYTES_MAX)
    .then((text): unknown => JSON.parse(text))
    .catch((error: unknown) => {
      throw new AgaroseError("SOURCE_FAILED", `${url} did not answer with JSON: is it a PoP?`, { url }, error);
    });
  return { body, headers: response.headers, placement: response.headers.get("cf-placement") };
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: Error & { code?: string } };
  return cause?.code ?? cause?.message ?? message;
}

/** `GET /healthz`. Rejects as `ask` does. */
export async function askHealth(
  url: string,
  options: Omit<AskOptions, "token">,
): Promise<v.InferOutput<typeof HEALTH_SHAPE>> {
  const { body } = await ask(`${url}/healthz`, { ...options, token: undefined });
  return v.parse(HEALTH_SHAPE, body);
}

/** `GET /v1/status`, and where its Worker ran. Rejects as `ask` and `statusOf` do. */
export async function askStatus(
  url: string,
  options: AskOptions,
): Promise<{ readonly answer: StatusAnswer; readonly placement: string | null }> {
  const { body, placement } = await ask(`${url}/v1/status`, options);
  return { answer: statusOf(body, url), placement };
}

/**
 * The keys that PoPs have found regions to lack the newest version of. PoPs without an admin token here are not asked,
 * and those that do not answer are left out: a walk over all objects finds such keys, too.
 */
export async function keysBehind(pops: readonly PopAddress[]): Promise<string[]> {
  const keysOf = async ({ name, url }: PopAddress): Promise<string[]> => {
    const token = adminTokenOf(name);
    if (token === undefined) return [];
    const { answer } = await askStatus(url, { fetch, timeoutMs: BEHIND_TIMEOUT_MS, token });
    return (answer.behind ?? []).slice(0, BEHIND_MAX).map(({ key }) => key);
  };
  const found = await Promise.all(pops.map((pop) => keysOf(pop).catch(() => [])));
  return [...new Set(found.flat())];
}

/** Keys that a PoP may name: each takes a look at every region. */
const BEHIND_MAX = 1_000;
const BEHIND_TIMEOUT_MS = 5_000;
