/**
 * `agarose verify`: reads every stored byte of objects and says what is damaged and what still reads.
 */
import type { Command } from "commander";
import { READING, withContext, type GlobalOptions } from "../../lib/context.ts";
import { selectKeys } from "../../lib/objects/keys.ts";
import {
  refuseUnknown,
  stateOf,
  unreachableLines,
  unreachableRegions,
  verdictLines,
  type ObjectState,
} from "../../lib/objects/verdicts.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, printResult } from "../../lib/output.ts";
import { mapPool } from "../../lib/pool.ts";
import { verifyObject, type ObjectVerdict } from "../../lib/objects/verify-object.ts";

interface VerifyOptions extends GlobalOptions {
  readonly prefix?: string;
}

const OBJECTS_AT_A_TIME = 2;

export function register(program: Command): void {
  program
    .command("verify")
    .description("check every manifest and every byte of every chunk; exit 1 when something is damaged")
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await verify(keys, command.optsWithGlobals<VerifyOptions>());
    });
}

async function verify(keys: readonly string[], options: VerifyOptions): Promise<number> {
  return withContext(options, READING, async (context) => {
    const names = await selectKeys(keys, options.prefix, context);
    const verdicts = await mapPool(names, OBJECTS_AT_A_TIME, (key) => verifyObject(key, context));
    if (keys.length > 0) refuseUnknown(verdicts);
    const objects = verdicts.map((verdict) => ({ ...verdict, state: stateOf(verdict) }));
    const totals = totalsOf(objects);
    printResult(context.json, { objects, ...totals, regionsUnreachable: unreachableRegions(verdicts) }, [
      ...verdicts.flatMap(verdictLines),
      ...unreachableLines(verdicts),
      summaryOf(verdicts.length, totals),
    ]);
    return objects.every(({ sound }) => sound) ? EXIT_OK : EXIT_FAILED;
  });
}

interface Totals {
  /** Objects with missing or wrong bytes, the unreadable ones included. */
  readonly damaged: number;
  readonly unreadable: number;
  /** Objects without known damage that could not be checked in full. */
  readonly unchecked: number;
}

function totalsOf(objects: readonly (ObjectVerdict & { readonly state: ObjectState })[]): Totals {
  const count = (wanted: ObjectState): number => objects.filter(({ state }) => state === wanted).length;
  const unreadable = count("unreadable");
  return { damaged: count("damaged") + unreadable, unreadable, unchecked: count("unchecked") };
}

function summaryOf(objects: number, { damaged, unreadable, unchecked }: Totals): string {
  const rest = unchecked > 0 ? `, ${unchecked} not checked in full because a region did not answer` : "";
  return `${formatCount(objects, "object")}, ${damaged} damaged, ${unreadable} unreadable${rest}`;
}
