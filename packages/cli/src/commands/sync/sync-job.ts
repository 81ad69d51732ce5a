/**
 * What a sync is to do, what it needs, and what it reports.
 */
import type { AgaroseError } from "@agarose/core";
import { sampleOf, type Danger } from "../../ui/confirm.ts";
import type { CommandContext } from "../../lib/context.ts";
import type { SkippedEntry } from "@agarose/storage/files/folder-entries";
import type { Consistency } from "@agarose/storage/objects/manifests";
import { formatCount } from "../../ui/output.ts";
import type { AdaptiveWidth } from "@agarose/storage/listing/adaptive-pool";
import type { Progress } from "../../ui/progress.ts";
import type { Filter } from "@agarose/storage/sync/filter";
import type { KnownEqual } from "@agarose/storage/sync/known-equal";

/** A sync between a folder and the keys that begin with a prefix. */
export interface SyncJob {
  readonly folder: string;
  /** Empty, or with a `/` at its end. */
  readonly prefix: string;
  readonly filter: Filter;
  /** Whether to remove what the source does not have. */
  readonly delete: boolean;
  readonly dryRun: boolean;
  /** Whether to compare hashes also where length and times agree. */
  readonly checksum: boolean;
  readonly follow: boolean;
  /** Response headers of what is stored. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What a sync works with. */
export interface SyncContext extends CommandContext {
  /** Of what comes to the folder. */
  readonly consistency: Consistency;
  readonly known: KnownEqual;
  readonly width: AdaptiveWidth;
  readonly hasJobs: boolean;
  readonly progress: Progress;
  /** Asks before names are removed, where there is somebody to ask. ABORTED or USAGE. */
  readonly confirm: (danger: Danger) => Promise<void>;
  /** Reports what was done to a key, or would be done with `dryRun`. */
  readonly report: (event: SyncEvent) => Promise<void>;
}

/** What was done to one key. What is unchanged is only counted. */
export type SyncEvent =
  | { readonly key: string; readonly outcome: "stored" | "fetched"; readonly bytes: number }
  | { readonly key: string; readonly outcome: "removed" }
  /** Equal in a majority; these regions did not answer. */
  | { readonly key: string; readonly outcome: "kept"; readonly regions: readonly string[] }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

/** What a sync found beside its events. */
export interface SyncResult {
  readonly unchanged: number;
  /** Equal by the regions that were listed, while others could not be. Those of events are not counted here. */
  readonly kept: number;
  /** Keys of which PoPs may have another version: replaced and removed ones. */
  readonly stale: readonly string[];
  readonly skipped: readonly SkippedEntry[];
  /** Why nothing was removed although `delete` was asked for. */
  readonly notRemoved?: string;
}

/** What `--delete` is about to do: `isTotal` says that the target keeps nothing of what it has. */
export function removalOf(names: readonly string[], where: string, noun: string, isTotal: boolean): Danger {
  const what = formatCount(names.length, noun);
  return {
    summary: [
      `--delete removes ${isTotal ? `everything that is in ${where}: ${what}` : `${what} from ${where}`}, ` +
        `such as ${sampleOf(names)}.`,
    ],
    question: `Remove ${what}?`,
    isTotal,
  };
}
