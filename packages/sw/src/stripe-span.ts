/**
 * Which stripes of an object a request touches: exactly once the manifest is known, by its headers alone before.
 */
import { STRIPE_BYTES_DEFAULT, type ByteRange, type Manifest } from "@agarose/core";
import type { StripeSpan } from "./bundle-request.ts";

/** The stripes of `range`, which is not empty unless the object is. */
export function spanOf(manifest: Manifest, range: ByteRange): StripeSpan {
  const from = Math.floor(range.start / manifest.stripeBytes);
  const last = Math.floor((range.end - 1) / manifest.stripeBytes);
  return { from, to: Math.max(from, last) };
}

/**
 * The stripes to ask for while nothing is known of the object: those of its range if its stripes are of the usual size,
 * the first one where only the plan is of use, and else all.
 */
export function guessSpan(method: "GET" | "HEAD", rangeHeader: string | null): StripeSpan | undefined {
  if (method === "HEAD") return { from: 0, to: 0 };
  const match = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(rangeHeader ?? "");
  if (!match) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") return { from: 0, to: 0 };
  const from = Math.floor(Number(first) / STRIPE_BYTES_DEFAULT);
  return last === "" ? { from } : { from, to: Math.max(from, Math.floor(Number(last) / STRIPE_BYTES_DEFAULT)) };
}

/** Whether a bundle asked for with `asked` has the stripes `wanted`, and none before them. */
export function serves(asked: StripeSpan | undefined, wanted: StripeSpan): boolean {
  if ((asked?.from ?? 0) !== wanted.from) return false;
  return asked?.to === undefined || (wanted.to !== undefined && wanted.to <= asked.to);
}
