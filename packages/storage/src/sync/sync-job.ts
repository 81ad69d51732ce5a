/** The task, dependencies and report of a sync. */
import type { AgaroseError } from "@agarose/core";
import type { WholeFileOptions } from "../files/whole-file.ts";
import type { Consistency } from "../objects/manifests.ts";
import type { DeploymentParts } from "../parts.ts";
import type { Transfer, TransferProgress } from "../upload/transfers.ts";
import type { Filter, Patterns } from "./filter.ts";
import type { KnownEqual } from "./known-equal.ts";

/** One end of a sync: the files of a folder, or the keys that begin with a prefix and `/`. An empty one is all keys. */
export type SyncEnd = { readonly folder: string } | { readonly prefix: string };

/** The objects that a sync is about to remove. */
export interface SyncRemoval {
  /** Keys of objects, or paths of files from the folder on. */
  readonly names: readonly string[];
  /** Whether the target keeps nothing of what it has: it is another one than was meant, most likely. */
  readonly isTotal: boolean;
}

/** How a sync is done. By default it stores or fetches what has changed, and removes nothing. */
export interface SyncOptions extends Partial<Patterns>, Pick<WholeFileOptions, "onLeftover"> {
  /** Whether to remove what the source does not have, last, and only if nothing failed. Default: false. */
  readonly delete?: boolean;
  /**
   * Milliseconds for which syncs with this option must have found no file of an object before it is removed, so that a
   * page that is open finds the files of its build. Of what comes to a folder: not allowed. Default: 0.
   */
  readonly deleteAfter?: number;
  /**
   * Is asked before anything is stored, fetched or removed where `delete` removes something, and rejects to stop the
   * sync. Default: USAGE where the target would keep nothing of what it has.
   */
  readonly confirm?: (removal: SyncRemoval) => void | Promise<void>;
  /** Whether to report what would be done, and do nothing. Default: false. */
  readonly dryRun?: boolean;
  /** Whether to compare content also where times or `cache` say that nothing has changed. Default: false. */
  readonly checksum?: boolean;
  /** Whether to follow links that lead out of the folder. Default: false. */
  readonly follow?: boolean;
  /** Response headers of what is stored. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Of what comes to the folder; what is stored is always decided by a majority. Default: `strong`. */
  readonly consistency?: Consistency;
  /** The file that remembers what is equal, so that the next sync asks for nothing of it. Default: none. */
  readonly cache?: string;
  /** Files at a time, 1 to 64. Default: as many as the stores take. */
  readonly jobs?: number;
  readonly progress?: TransferProgress;
  /** Receives lines about regions that do not answer. Default: they go by unseen. */
  readonly onWarning?: (line: string) => void;
  /** Receives how many stored objects some region still lacks a part of. They are in the repair queue. */
  readonly onIncomplete?: (objects: number) => void;
}

/** The action for one key, or the planned one with `dryRun`. Unchanged keys are only counted. */
export type SyncOutcome = { readonly key: string } & (
  | {
      readonly outcome: "stored";
      readonly bytes: number;
      /** By it, `isFirst` knows a key that never had an object. Absent with `dryRun`. */
      readonly generation?: number;
    }
  | { readonly outcome: "fetched"; readonly bytes: number }
  | { readonly outcome: "removed" }
  /** An entry of the folder that is not stored, and below which nothing is removed. */
  | { readonly outcome: "skipped"; readonly path: string; readonly reason: string }
  /** Equal in a majority; these regions did not answer. */
  | { readonly outcome: "kept"; readonly regions: readonly string[] }
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

/** Findings of a sync besides its outcomes. */
export interface SyncTotals {
  readonly unchanged: number;
  /** Equal in a majority, while other regions did not answer, with those of outcomes. */
  readonly kept: number;
  /** Objects without a file that `deleteAfter` keeps for now; absent where it is 0. */
  readonly waiting?: number;
  /** Why nothing was removed although `delete` was asked for. */
  readonly notRemoved?: string;
}

/** The options of a sync with their defaults. */
export interface SyncJob extends Required<
  Pick<SyncOptions, "delete" | "deleteAfter" | "dryRun" | "checksum" | "follow" | "headers" | "consistency">
> {
  readonly folder: string;
  /** Empty, or with a `/` at its end. */
  readonly prefix: string;
  readonly filter: Filter;
}

/** The context of a sync. */
export interface SyncContext
  extends
    DeploymentParts,
    Required<Pick<SyncOptions, "confirm" | "progress" | "onWarning" | "onIncomplete" | "onLeftover">> {
  readonly known: KnownEqual;
  readonly transfer: Transfer;
  readonly report: (outcome: SyncOutcome) => Promise<void>;
  /** How many outcomes were failures so far. */
  readonly failures: () => number;
}
