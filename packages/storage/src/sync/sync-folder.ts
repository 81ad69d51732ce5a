/** Makes a folder and the objects below a prefix equal, in either direction. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { AgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import type { DeploymentParts } from "../parts.ts";
import { withTransfers } from "../upload/transfers.ts";
import { Filter } from "./filter.ts";
import { KnownEqual } from "./known-equal.ts";
import { pull } from "./pull.ts";
import { push } from "./push.ts";
import type { SyncEnd, SyncJob, SyncOptions, SyncOutcome, SyncRemoval, SyncTotals } from "./sync-job.ts";

const NO_PROGRESS = { addTotal: () => {}, add: () => {} };

/**
 * Makes `to` equal to `from`, and reports the action for each key. A file or an object that fails is an outcome, and
 * does not stop the others.
 *
 * @throws USAGE where the ends are not a folder and a prefix, where there is no such folder, where the source has
 * nothing and `delete` would remove all, or where `confirm` refuses; KEY_INVALID or KEY_TOO_LONG of the prefix;
 * NO_QUORUM at the end when so few regions could be listed that objects may be missing in the folder; DISK_FULL.
 */
export async function syncFolder(
  from: SyncEnd,
  to: SyncEnd,
  options: SyncOptions,
  emit: (outcome: SyncOutcome) => Promise<void>,
  parts: DeploymentParts,
): Promise<SyncTotals> {
  const job = jobOf(from, to, options);
  const isPush = "folder" in from;
  parts.signal.throwIfAborted();
  await requireFolder(job.folder, isPush);
  const { regions, encryption, headers: rules } = parts.config;
  const encrypted = encryption.map((rule) => rule.prefix);
  const { folder, prefix, headers } = job;
  const what = [!isPush, resolve(folder), prefix, headers, rules, regions.map(({ name }) => name), ...encrypted];
  const known = await KnownEqual.open(options.cache, JSON.stringify(what));
  let failures = 0;
  try {
    const totals = await withTransfers(options.jobs, parts, (transfer) =>
      (isPush ? push : pull)(job, {
        ...parts,
        confirm: options.confirm ?? refuseTotal,
        progress: options.progress ?? NO_PROGRESS,
        onWarning: options.onWarning ?? (() => {}),
        onIncomplete: options.onIncomplete ?? (() => {}),
        onLeftover: options.onLeftover ?? (() => {}),
        known,
        transfer,
        report: (outcome) => {
          if (outcome.outcome === "failed") failures++;
          return emit(outcome);
        },
        failures: () => failures,
      }),
    );
    await (job.dryRun ? known.discard(undefined) : known.save());
    return totals;
  } catch (error) {
    await known.discard(error);
    throw error;
  }
}

function jobOf(from: SyncEnd, to: SyncEnd, options: SyncOptions): SyncJob {
  const ends: Partial<Record<"folder" | "prefix", string>> = { ...from, ...to };
  if (ends.folder === undefined || ends.prefix === undefined) {
    throw new AgaroseError("USAGE", "a sync is between a folder and a prefix: give one { folder } and one { prefix }");
  }
  const { include = [], exclude = [], headers = {}, consistency = "strong" } = options;
  const { delete: removes = false, deleteAfter = 0, dryRun = false, checksum = false, follow = false } = options;
  if ("folder" in from && consistency !== "strong") {
    const message = `\`consistency\` ${consistency} is for what comes to a folder: a majority decides what is stored`;
    throw new AgaroseError("USAGE", message, { consistency });
  }
  if (!(deleteAfter >= 0) || (deleteAfter > 0 && (!removes || "prefix" in from))) {
    const message = `\`deleteAfter\` ${deleteAfter} is milliseconds for \`delete\` of a sync from a folder to a prefix`;
    throw new AgaroseError("USAGE", message, { deleteAfter });
  }
  const filter = new Filter({ include, exclude });
  const prefix = prefixOf(ends.prefix);
  const how = { delete: removes, deleteAfter, dryRun, checksum, follow, headers, consistency };
  return { folder: ends.folder, prefix, filter, ...how };
}

/** The prefix with a `/` at its end, so that `app` is not the beginning of `apple`. KEY_INVALID or KEY_TOO_LONG. */
export function prefixOf(text: string): string {
  const prefix = text.replace(/\/$/, "");
  return prefix === "" ? "" : `${parseKey(prefix)}/`;
}

async function requireFolder(folder: string, isSource: boolean): Promise<void> {
  const status = await stat(folder).catch(() => undefined);
  if (status?.isDirectory() || (!isSource && status === undefined)) return;
  throw new AgaroseError("USAGE", `${folder} ${status === undefined ? "does not exist" : "is not a folder"}`, {
    folder,
  });
}

function refuseTotal({ names, isTotal }: SyncRemoval): void {
  if (!isTotal) return;
  const message =
    `\`delete\` would remove all that the target has (${names.length}, such as ${JSON.stringify(names[0])}), because the ` +
    "source has none of it: look with `dryRun`, then allow it by `confirm`";
  throw new AgaroseError("USAGE", message, { names: names.length });
}
