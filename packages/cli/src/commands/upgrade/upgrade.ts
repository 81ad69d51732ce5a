/**
 * `agarose upgrade`: brings the manifests of objects from format 1 to format 2, and has the current key sign what
 * another one has signed, kept versions included. Their chunks stay where they are.
 */
import { systemClock, toAgaroseError, type AgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine, printable } from "../../ui/output.ts";
import { signingKeyId } from "@agarose/storage/config/signing";
import { ReportStream, type ReportOptions } from "../../ui/report-stream.ts";
import { walkObjects, type Walk, type WalkOptions } from "@agarose/storage/listing/walk-objects";
import { upgradeHistory } from "@agarose/storage/maintenance/upgrade-history";
import { upgradeObject } from "@agarose/storage/maintenance/upgrade-object";

/** The options of `agarose upgrade`. */
export type UpgradeOptions = GlobalOptions &
  WalkOptions &
  ReportOptions & { readonly acceptNewest?: boolean; readonly vouch?: boolean };

type Outcome =
  | { readonly key: string; readonly outcome: "upgraded" | "current" }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

type Totals = Readonly<Record<Outcome["outcome"], number>>;

const NONE: Totals = { upgraded: 0, current: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;

/** Runs `agarose upgrade [KEY]`. The command exits with 1 when regions hold different manifests of format 1. */
export async function upgrade(keys: readonly string[], options: UpgradeOptions): Promise<number> {
  return withContext(options, WRITING, async (command) => {
    const keyId = await signingKeyId(command.config);
    const context = { ...command, keyId, breaker: new Breaker(systemClock) };
    const report = new ReportStream(options);
    const walk: Walk<Outcome, Totals> = {
      name: "upgrade",
      keys,
      options,
      objectsAtATime: OBJECTS_AT_A_TIME,
      act: (key) => upgradeOne(key, options, context),
      add: (totals, { outcome }) => ({ ...totals, [outcome]: totals[outcome] + 1 }),
      onResult: (object) => report.item(object, object.outcome === "current" ? [] : [lineOf(object)]),
      onWarning: logLine,
    };
    try {
      const { upgraded, current, failed } = await walkObjects(walk, NONE, context);
      const objects = formatCount(upgraded + current + failed, "object");
      await report.end({}, [`${objects}, ${upgraded} upgraded, ${failed} failed`]);
      return failed === 0 ? EXIT_OK : EXIT_FAILED;
    } catch (error) {
      return report.fail(error);
    }
  });
}

/** Undefined for an object that was removed, and of which no kept version was signed again. */
async function upgradeOne(
  key: string,
  { acceptNewest = false, vouch = false }: UpgradeOptions,
  context: CommandContext & { readonly breaker: Breaker; readonly keyId: string | undefined },
): Promise<Outcome | undefined> {
  try {
    const outcome = await upgradeObject(key, {
      ...context,
      nowMs: Date.now,
      acceptsNewest: acceptNewest,
      vouches: vouch,
    });
    const copies = await upgradeHistory(key, { ...context, nowMs: Date.now, vouches: vouch });
    if (copies > 0) return { key, outcome: "upgraded" };
    return outcome && { key, outcome };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function lineOf(object: Outcome): string {
  const key = printable(object.key);
  if (object.outcome !== "failed") return `${object.outcome}  ${key}`;
  return `failed    ${key}  ${object.error.code}: ${printable(object.error.message)}`;
}
