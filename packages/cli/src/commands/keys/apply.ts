/**
 * `agarose keys apply`: has the current key sign what another one has signed, and the first secret encrypt the data
 * keys of encrypted objects, kept versions included. The chunks stay where they are.
 */
import { systemClock, toAgaroseError, type AgaroseError } from "@agarose/core";
import { signingKeyId } from "@agarose/storage/config/signing";
import { walkObjects, type Walk } from "@agarose/storage/listing/walk-objects";
import { applyKeysToHistory } from "@agarose/storage/maintenance/apply-keys-to-history";
import { applyKeys, type ApplyKeysOutcome } from "@agarose/storage/maintenance/apply-keys";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { withReport, WRITING, type CommandContext } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, failedLine, formatCount, itemLine, logLine } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { applyArgs } from "./index.ts";

/** The options of `agarose keys apply`. */
export type ApplyOptions = Values<typeof applyArgs>;

type Outcome =
  | { readonly key: string; readonly outcome: ApplyKeysOutcome }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

type Totals = Readonly<Record<Outcome["outcome"], number>>;

const NONE: Totals = { applied: 0, due: 0, current: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;

/** Runs `agarose keys apply [KEY]`. The command exits with 1 when an object could not be signed or encrypted again. */
export function apply({ keys, ...options }: ApplyOptions): Promise<number> {
  const { dryRun = false } = options;
  return withReport(options, WRITING, async (report, command) => {
    const keyId = await signingKeyId(command.config);
    const context = { ...command, keyId, breaker: new Breaker(systemClock) };
    const walk: Walk<Outcome, Totals> = {
      name: `keys apply${dryRun ? " dry" : ""}`,
      keys,
      options,
      objectsAtATime: OBJECTS_AT_A_TIME,
      act: (key) => applyOne(key, options, context),
      add: (totals, { outcome }) => ({ ...totals, [outcome]: totals[outcome] + 1 }),
      onResult: (object) => report.item(object, object.outcome === "current" ? [] : [lineOf(object)]),
      onWarning: logLine,
    };
    const { applied, due, current, failed } = await walkObjects(walk, NONE, context);
    const objects = formatCount(applied + due + current + failed, "object");
    const what = dryRun ? `${due} due` : `${applied} applied`;
    await report.end({ ...(dryRun && { dryRun }) }, [`${objects}, ${what}, ${failed} failed`]);
    return failed === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

/** Undefined for an object that was removed, and of which no kept version was signed again. */
async function applyOne(
  key: string,
  { acceptNewest = false, vouch = false, dryRun = false }: Omit<ApplyOptions, "keys">,
  context: CommandContext & { readonly breaker: Breaker; readonly keyId: string | undefined },
): Promise<Outcome | undefined> {
  try {
    const own = { ...context, nowMs: Date.now, vouches: vouch, dryRun };
    const outcome = await applyKeys(key, { ...own, acceptsNewest: acceptNewest });
    const copies = await applyKeysToHistory(key, own);
    if (copies > 0) return { key, outcome: dryRun ? "due" : "applied" };
    return outcome && { key, outcome };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function lineOf(object: Outcome): string {
  return object.outcome === "failed" ? failedLine(object.key, object.error) : itemLine(object.outcome, object.key);
}
