/** The port through which a client keeps what it has read. `offline/offline-store.ts` implements it. */
import type { Manifest } from "@agarose/core/format";
import type { ReadTarget } from "@agarose/core/read";
import type { FullPlan } from "./plans/bundle-request.ts";
import type { StripeSpan } from "./stripe-span.ts";

/** Plans and stripes that outlive a read. */
export interface ObjectStore {
  /** The plan of the latest read of `key`. */
  plan(key: string): Promise<FullPlan | undefined>;
  /** Keeps a plan, and drops stripes of other versions of the object. */
  learn(key: string, plan: FullPlan): void;
  holds(manifest: Manifest, span: StripeSpan): boolean;
  /** Gives the reader the stripes and the pages of hashes that it holds, and keeps those it does not hold. */
  sharing(manifest: Manifest): Pick<ReadTarget, "share" | "sharePage">;
  /** Drops the plans and stripes of the keys for which `isPurged`. */
  purge(isPurged: (key: string) => boolean): Promise<void>;
}
