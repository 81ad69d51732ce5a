/**
 * What a client may keep of the objects it has read (`offline-store.ts` does, where a worker has it).
 */
import type { Manifest, StripeSharing } from "@agarose/core";
import type { FullPlan } from "./plans/bundle-request.ts";
import type { StripeSpan } from "./stripe-span.ts";

export interface ObjectStore {
  /** The plan by which `key` was read last. */
  plan(key: string): Promise<FullPlan | undefined>;
  /** Takes note of a plan that was heard; stripes of another version of its object go. */
  learn(key: string, plan: FullPlan): void;
  /** Whether it has all stripes of a span. */
  holds(manifest: Manifest, span: StripeSpan): boolean;
  /** Counts a read that no PoP sees, because all of it is kept here. */
  countRead(key: string): void;
  /** Those reads by key, as counted since they were taken last; undefined without any. */
  takeReads(): Readonly<Record<string, number>> | undefined;
  /** Gives the reader the stripes it has, and keeps those that it has not. */
  sharing(manifest: Manifest): StripeSharing;
  /** Drops what is kept of the keys for which `isPurged`. */
  purge(isPurged: (key: string) => boolean): Promise<void>;
}
