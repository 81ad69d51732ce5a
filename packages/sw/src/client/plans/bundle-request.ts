/**
 * One request to a PoP: the plan of an object, and behind it the chunks that the PoP has cached.
 */
import {
  AgaroseError,
  HAS_MESSAGES,
  BUNDLE_CONTENT_TYPE,
  encodeKey,
  FrameReader,
  parsePlan,
  type FetchedResponse,
  type ExpectedManifest,
  type FetchPort,
  type Manifest,
  type Plan,
} from "@agarose/core";
import type { Endpoint } from "../../common/config.ts";
import type { StripeSpan } from "../stripe-span.ts";

/** A plan with its manifest, whether the PoP sent that or we had it. */
export type FullPlan = Plan & {
  readonly manifest: Manifest;
  /** Until when its signatures are good, on the clock; set by `learn`. */
  readonly signedUntilMs?: number;
};

export interface BundleRequest {
  readonly key: string;
  readonly pop: Endpoint;
  /** Spares the PoP to send the manifest again when its version is still this one. */
  readonly known?: FullPlan | undefined;
  /** Stripes whose chunks to send. */
  readonly span: StripeSpan;
  /** The `Range` that the read is for: if it is small, the PoP sends its blocks instead of stripes. */
  readonly range?: string | undefined;
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
  /** What follows the plan. */
  readonly frames: FrameReader;
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
    return {
      pop,
      span,
      range,
      frames,
      plan: withManifest(await parsePlan(first.payload, { ...checks, key: request.key }), request),
    };
  } catch (error) {
    frames.cancel().catch(() => {});
    throw error;
  }
}

/** Keys that a PoP takes in one request for plans. */
export const PLANS_MAX = 100;
const PLANS_TIMEOUT_MS = 10_000;

/**
 * The plans of several keys, those that the PoP has, in the order in which they come. Rejects when the PoP or the way
 * to it fails.
 */
export async function* requestPlans(
  pop: Endpoint,
  keys: readonly string[],
  fetch: FetchPort,
  checks: ManifestChecks,
): AsyncGenerator<readonly [key: string, plan: FullPlan]> {
  const query = new URLSearchParams(keys.map((key) => ["key", key]));
  const response = await fetch(`${pop.url}/v1/plans?${query}`, { signal: AbortSignal.timeout(PLANS_TIMEOUT_MS) });
  const frames = new FrameReader(bundleBody(response, pop));
  for (let frame = await frames.next(); frame.type === "plan"; frame = await frames.next()) {
    const key = keys[frame.stripe]!;
    yield [key, withManifest(await parsePlan(frame.payload, { ...checks, key }), { pop })];
  }
}

function bundleUrl({ key, pop, known, span, range }: BundleRequest): string {
  const query = { ...(known && { version: known.version }), ...span, ...(range && { range }) } as Record<
    string,
    unknown
  > as Record<string, string>;
  return `${pop.url}/v1/read/${encodeKey(key)}?${new URLSearchParams(query)}`;
}

/** Something else than a PoP may answer with 200: a captive portal, a wrong address. */
function bundleBody(response: FetchedResponse, pop: Endpoint): ReadableStream<Uint8Array> {
  const type = response.headers.get("content-type");
  if (type?.startsWith(BUNDLE_CONTENT_TYPE) && response.body) return response.body;
  response.body?.cancel().catch(() => {});
  throw unusable(pop, HAS_MESSAGES && `is of type ${type ?? "(none)"}, ${BUNDLE_CONTENT_TYPE} is expected`);
}

function withManifest(plan: Plan, { known, pop }: Pick<BundleRequest, "known" | "pop">): FullPlan {
  const manifest = plan.manifest ?? (known?.version === plan.version && known.manifest);
  if (manifest) {
    refuseOlder(manifest, known);
    return { ...plan, manifest };
  }
  throw unusable(pop, HAS_MESSAGES && `has no manifest of version ${plan.version}`);
}

/** Throws MANIFEST_STALE for a manifest that is older than the known one, so that reads never go back. */
function refuseOlder({ key, generation }: Manifest, known: FullPlan | undefined): void {
  if (!known || generation >= known.manifest.generation) return;
  throw new AgaroseError(
    "MANIFEST_STALE",
    HAS_MESSAGES &&
      `plan of ${JSON.stringify(key)} has generation ${generation}, ${known.manifest.generation} is known: it is not used`,
  );
}

/** What a PoP says in its own words about the key is its answer; any other status is a fault of the PoP. */
async function refusal(response: FetchedResponse, pop: Endpoint): Promise<AgaroseError> {
  const { status } = response;
  const body = (await new Response(response.body).json().catch(() => undefined)) as
    { error?: AgaroseError } | undefined;
  const error = body?.error;
  const details = { pop: pop.name, status, code: error?.code };
  if (error && isAnswer(error)) return new AgaroseError(error.code, error.message, details);
  const said = error ? ` (${error.code}: ${error.message})` : "";
  return new AgaroseError(
    "SOURCE_FAILED",
    HAS_MESSAGES && `PoP ${pop.name} answered ${status}${said}: the next source is asked`,
    details,
  );
}

/** Whether a failure is an answer about the key, which no other source would give differently. */
export function isAnswer({ code }: Pick<AgaroseError, "code">): boolean {
  return ANSWERS.has(code);
}

const ANSWERS: ReadonlySet<unknown> = new Set(["FORBIDDEN", "OBJECT_NOT_FOUND", "KEY_INVALID", "KEY_TOO_LONG"]);

function unusable(pop: Endpoint, problem: string | false): AgaroseError {
  return new AgaroseError(
    "BUNDLE_INVALID",
    HAS_MESSAGES && `bundle of PoP ${pop.name} ${problem}: the next source is asked`,
    {
      pop: pop.name,
    },
  );
}
