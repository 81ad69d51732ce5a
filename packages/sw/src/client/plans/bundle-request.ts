/** One request to a PoP: the plan of an object, and behind it the chunks that the PoP has cached. */
import { AgaroseError, type FetchedResponse, type FetchPort } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";
import {
  BUNDLE_CONTENT_TYPE,
  bundleError,
  encodeKey,
  parsePlan,
  type ExpectedManifest,
  type Frame,
  type Manifest,
  type Plan,
} from "@agarose/core/format";
import { FrameReader, readChecked, type Frames } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";
import type { StripeSpan } from "../stripe-span.ts";

/** A plan with its manifest, whether the PoP sent that or we had it. */
export type FullPlan = Plan & {
  readonly manifest: Manifest;
  /** Until when its signatures are good, on the clock; set by `learn`. */
  readonly signedUntilMs?: number;
};

/** A client's request to a PoP: the plan of an object, and the cached chunks of some stripes. */
export interface BundleRequest {
  readonly key: string;
  readonly pop: Endpoint;
  /** Spares the PoP to send the manifest again when it has no newer one. */
  readonly known?: FullPlan | undefined;
  /** Stripes whose chunks to send. */
  readonly span: StripeSpan;
  /** The `Range` that the read is for: if it is small, the PoP sends its blocks instead of stripes. */
  readonly range?: string | undefined;
  /** Of a small range, the PoP sends the leaves and what it has cached: the client asks the buckets itself. */
  readonly leaves?: boolean | undefined;
  /** The id of the read, whose digits name its trace. In the query, as a header would cost a CORS preflight. */
  readonly trace: string;
  readonly signal: AbortSignal;
  readonly fetch: FetchPort;
}

/** A bundle whose plan has arrived. Who holds it must end its signal or cancel its frames. */
export interface Bundle {
  readonly pop: Endpoint;
  readonly plan: FullPlan;
  /** The stripes that were asked for. */
  readonly span: StripeSpan;
  readonly range: string | undefined;
  /** The frames after the plan. */
  readonly frames: Frames;
  /** The chunks that the PoP has cached. */
  readonly cached: readonly number[];
  /** Whether the PoP sends the chunks that `plan` names as cached whether it has them or not. */
  readonly sendsAll: boolean;
}

/** How a manifest from outside is checked. */
export type ManifestChecks = Pick<ExpectedManifest, "trust" | "sha256">;

/**
 * Asks a PoP and resolves when its plan is there. Rejects with FORBIDDEN, OBJECT_NOT_FOUND or KEY_INVALID when the PoP
 * says so, and with SOURCE_FAILED, BUNDLE_INVALID, MANIFEST_…, or as the network does otherwise.
 */
export async function requestBundle(request: BundleRequest, checks: ManifestChecks): Promise<Bundle> {
  const { pop, signal, span, range, fetch } = request;
  const response = await fetch(bundleUrl(request), { signal });
  if (response.status !== 200) throw await refusal(response, pop);
  const frames = new FrameReader(bundleBody(response, pop));
  try {
    const first = await frames.next();
    if (first.type !== "plan") throw unusable(pop, HAS_MESSAGES && `begins with a ${first.type} frame`);
    const plan = await planIn(first, request, checks);
    return { pop, span, range, frames, ...sentBehind(first, plan, first.chunk > 0) };
  } catch (error) {
    frames.cancel().catch(() => {});
    throw error;
  }
}

/**
 * Asks a PoP for the plans of several keys: docs/reference/format.md, "Bundle". Those that it has come in any order.
 *
 * @param query what to ask for beside the keys.
 */
export async function planFrames(
  pop: Endpoint,
  keys: readonly string[],
  { fetch, signal }: Pick<BundleRequest, "fetch" | "signal">,
  query = "",
): Promise<FrameReader> {
  const asked = new URLSearchParams(keys.map((key) => ["key", key]));
  return new FrameReader(bundleBody(await fetch(`${pop.url}/v1/plans?${asked}${query}`, { signal }), pop));
}

/** The plan of a frame, checked. Rejects as `requestBundle` does. */
export async function planIn(
  { payload }: Frame,
  request: Pick<BundleRequest, "key" | "known" | "pop">,
  checks: ManifestChecks,
): Promise<FullPlan> {
  const { key, known, pop } = request;
  const plan = await parsePlan(payload, { ...checks, key });
  const manifest = plan.manifest ?? (known?.version === plan.version && known.manifest);
  if (!manifest) throw unusable(pop, HAS_MESSAGES && `has no manifest of version ${plan.version}`);
  refuseOlder(manifest, known);
  return { ...plan, manifest };
}

/** The plan and what comes behind it: as many first chunks as the frame says, or those that the PoP has cached. */
export function sentBehind(
  { chunk: length }: Frame,
  plan: FullPlan,
  sendsAll: boolean,
): Pick<Bundle, "plan" | "cached" | "sendsAll"> {
  const { cached } = plan;
  return { cached, sendsAll, plan: length ? { ...plan, cached: Array.from({ length }, (_, chunk) => chunk) } : plan };
}

function bundleUrl({ key, pop, known, span, range, leaves = false, trace }: BundleRequest): string {
  const query = {
    ...(known && { version: known.version, generation: known.manifest.generation }),
    ...span,
    ...(range && { range, leaves }),
    trace,
  } as Record<string, unknown> as Record<string, string>;
  return `${pop.url}/v1/read/${encodeKey(key)}?${new URLSearchParams(query)}`;
}

/** Something else than a PoP may answer with 200: a captive portal, a wrong address. */
function bundleBody(response: FetchedResponse, pop: Endpoint): ReadableStream<Uint8Array> {
  const type = response.headers.get("content-type");
  if (type?.startsWith(BUNDLE_CONTENT_TYPE) && response.body) return response.body;
  response.body?.cancel().catch(() => {});
  throw unusable(pop, HAS_MESSAGES && `is of type ${type ?? "(none)"}, ${BUNDLE_CONTENT_TYPE} is expected`);
}

/** Whether a manifest is older than the known one: reads never go back to it. */
export function isOlder({ generation }: Manifest, known: FullPlan | undefined): known is FullPlan {
  return known !== undefined && generation < known.manifest.generation;
}

/** Throws MANIFEST_STALE for an older manifest. */
export function refuseOlder(manifest: Manifest, known: FullPlan | undefined): void {
  if (!isOlder(manifest, known)) return;
  throw new AgaroseError(
    "MANIFEST_STALE",
    HAS_MESSAGES &&
      `plan of ${JSON.stringify(manifest.key)} has generation ${manifest.generation}, ` +
        `${known.manifest.generation} is known: it is not used`,
  );
}

/** No error of a PoP is longer. */
const ERROR_BYTES_MAX = 64 * 1024;

/** The error that an answer names; undefined for anything else, which may have no end. */
export async function errorIn({ body }: Pick<FetchedResponse, "body">): Promise<AgaroseError | undefined> {
  const check = (bytes: number): void => {
    if (bytes > ERROR_BYTES_MAX) throw bytes;
  };
  try {
    const text = new TextDecoder().decode(await readChecked({ body } as FetchedResponse, check));
    return (JSON.parse(text) as { error?: AgaroseError } | undefined)?.error;
  } catch {
    return undefined;
  }
}

/** An error with a code of Agarose is the PoP's answer about the key; any other status is a fault of the PoP. */
async function refusal(response: FetchedResponse, pop: Endpoint): Promise<AgaroseError> {
  const { status } = response;
  const error = await errorIn(response);
  const details = { pop: pop.name, status, code: error?.code };
  // A PoP that is too old itself says nothing about the next one.
  if (error && status < 500 && isAnswer(error)) return new AgaroseError(error.code, error.message, details);
  return new AgaroseError(
    "SOURCE_FAILED",
    HAS_MESSAGES &&
      `PoP ${pop.name} answered ${status}${error ? ` (${error.code}: ${error.message})` : ""}: the next source is asked`,
    details,
  );
}

/** Whether a failure is an answer about the key, which no other source would give differently. */
export function isAnswer({ code }: Pick<AgaroseError, "code">): boolean {
  return /^(FORBIDDEN|OBJECT_(NOT_FOUND|PLAIN)|KEY_.+|MANIFEST_NEWER)$/.test(code);
}

/** The error that refuses what a PoP sent. */
export function unusable(pop: Endpoint, problem: string | false): AgaroseError {
  return bundleError(HAS_MESSAGES && `of PoP ${pop.name} ${problem}`);
}
