/** `agarose lab solve FILE`: the exact multiple-choice knapsack on an instance from a file. */
import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import * as v from "valibot";
import { AgaroseError } from "@agarose/core";
import { fileUnreadable } from "@agarose/dev-world/scenario-file";
import { solveKnapsack, type KnapsackInstance, type KnapsackSolution } from "@agarose/solver/knapsack";
import { printResult } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { solveArgs } from "./index.ts";

/** Instances of up to this many options are solved repeatedly until the code is compiled; both times are printed. */
const WARM_UP_OPTIONS_MAX = 20_000;
const WARM_UP_MS = 150;
const WARM_UP_RUNS = 20;

/**
 * Runs `agarose lab solve FILE`. Rejects with KNAPSACK_INVALID, naming the field, for an instance that cannot be used.
 */
export async function solve({ file, timeLimit, ...options }: Values<typeof solveArgs>): Promise<void> {
  const instance = parseInstance(await readText(file));
  const solution = solveMeasured(instance, timeLimit);
  printResult(options, toJson(solution), describe(instance, solution));
}

const now = (): number => performance.now();

interface Measured extends KnapsackSolution {
  /** Duration of the very first run, including compilation; `ms` is that of the last one. */
  readonly firstMs: number;
}

/** Solves with a clock; small instances are run a few times more, so that `ms` is what a long-lived process sees. */
function solveMeasured(instance: KnapsackInstance, timeLimitMs?: number): Measured {
  const limits = { now, ...(timeLimitMs === undefined ? {} : { timeLimitMs }) };
  const first = solveKnapsack(instance, limits);
  let last = first;
  if (instance.weights.length <= WARM_UP_OPTIONS_MAX && first.optimal) {
    const end = now() + WARM_UP_MS;
    for (let run = 0; run < WARM_UP_RUNS && now() < end; run++) last = solveKnapsack(instance, limits);
  }
  return { ...(last.optimal ? last : first), firstMs: first.ms ?? 0 };
}

const NUMBERS = v.array(v.number());
const INSTANCE = v.object({
  capacity: v.number(),
  objects: v.array(
    v.pipe(
      v.object({ weights: NUMBERS, values: NUMBERS }),
      v.check(({ weights, values }) => weights.length === values.length, "has not as many values as weights"),
    ),
  ),
});

/** Checks the shape of the file; the numbers themselves are the solver's to check. */
function parseInstance(text: string): KnapsackInstance {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw invalid(`the file is not JSON: ${(error as Error).message}`);
  }
  const read = v.safeParse(INSTANCE, json);
  if (!read.success) {
    const [issue] = read.issues;
    const field = v.getDotPath(issue) ?? "the file";
    const shape = '{"capacity": number, "objects": [{"weights": […], "values": […]}, …]}';
    throw invalid(`${field}: ${issue.message}: ${shape} is expected`, { field });
  }
  const { capacity, objects } = read.output;
  const start = new Uint32Array(objects.length + 1);
  for (const [i, { weights }] of objects.entries()) start[i + 1] = start[i]! + weights.length;
  const all = (name: "weights" | "values"): Float64Array =>
    Float64Array.from(objects.flatMap((object) => object[name]));
  return { capacity, start, weights: all("weights"), values: all("values") };
}

function toJson({ choice, ...rest }: KnapsackSolution): object {
  return { ...rest, choice: Array.from(choice) };
}

function describe(
  instance: KnapsackInstance,
  { value, weight, choice, upperBound, optimal, ms, firstMs }: Measured,
): string[] {
  const taken = choice.filter((option) => option >= 0).length;
  const proof = optimal ? "optimal" : `not proven: at most ${upperBound}, gap ${(upperBound - value).toPrecision(3)}`;
  return [
    `value     ${value} (${proof})`,
    `weight    ${weight} of ${instance.capacity}`,
    `objects   ${taken} of ${choice.length} have an option`,
    `time      ${ms?.toFixed(2)} ms (${firstMs.toFixed(2)} ms the first time)`,
  ];
}

async function readText(file: string): Promise<string> {
  try {
    return await (file === "-" ? textOf(process.stdin) : readFile(file, "utf8"));
  } catch (error) {
    throw fileUnreadable(file, error);
  }
}

function invalid(message: string, details: Record<string, unknown> = {}): AgaroseError {
  return new AgaroseError("KNAPSACK_INVALID", message, details);
}
