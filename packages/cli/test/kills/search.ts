/**
 * Kills one process after the other, each at a moment that the seed chooses, and looks at what readers see.
 */
import { Dice } from "@agarose/storage/testing";
import type { Case } from "./case.ts";
import { ENCRYPTED, EXPIRING, KEPT, type KillWorld, type Run, type Seen } from "./kill-world.ts";
import type { KillPoint, Moment } from "./proxy.ts";
import { VERBS } from "./verbs.ts";

/** Report of the killed processes. */
export interface KillReport {
  /** Kills between the first request and the end of a process, by verb. */
  readonly kills: Readonly<Record<string, number>>;
  readonly byMoment: Readonly<Record<Moment, number>>;
  /** Processes that ended before the request at which they were to be killed. */
  readonly ended: number;
  /** Broken promises, with what repeats them. */
  readonly failures: readonly string[];
  /** For people. */
  readonly text: string;
}

type Counts<T> = { -readonly [K in keyof T]: T[K] };

const MOMENTS: readonly Moment[] = ["before", "half", "unanswered", "unanswered", "answered", "answered"];
const DELAY_MS_MAX = 30;
/** Every verb sends so many. The first case of each is killed within them, because its length is not known yet. */
const REQUESTS_MIN = 5;
/** Processes at once. */
const WORKERS = 2;

/** Runs `cases` cases from `seed`, the verbs in turn. Stops at the first broken promise. */
export async function killInTurn(
  world: KillWorld,
  cases: number,
  seed: number,
  onProgress: (done: number) => void = () => {},
): Promise<KillReport> {
  const names = Object.keys(VERBS);
  const kills: Record<string, number> = Object.fromEntries(names.map((name) => [name, 0]));
  const byMoment: Counts<Record<Moment, number>> = { before: 0, half: 0, unanswered: 0, answered: 0 };
  const lengths: Record<string, number> = {};
  const failures: string[] = [];
  const finished: { readonly key: string; readonly after: Seen }[] = [];
  let ended = 0;
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < cases && failures.length === 0) {
      const index = next++;
      const verb = names[index % names.length]!;
      const dice = new Dice(seed, index);
      const key = `${prefixOf(verb)}case-${index}`;
      const lines: string[] = [`seed ${seed}, case ${index}: ${verb}`];
      try {
        const own = await VERBS[verb]!(world, key, dice);
        for (let n = 0; n < own.kills; n++) {
          const point = pointOf(dice, lengths[verb] ?? REQUESTS_MIN);
          lines.push(JSON.stringify(point));
          const run = await world.run(own.args, point, own.config);
          if (run.isKilled) {
            kills[verb]!++;
            byMoment[point.moment]++;
          } else ended++;
          await checkKilled(world, key, own, run, lines);
        }
        const { requests } = await complete(world, key, own, lines);
        lengths[verb] = Math.max(lengths[verb] ?? 0, requests);
        finished.push({ key, after: own.after });
        onProgress(finished.length);
      } catch (error) {
        failures.push([...lines, (error as Error).message].join("\n  "));
      }
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  // Nothing that was acknowledged is lost by what came later.
  for (const { key, after } of failures.length === 0 ? finished : []) {
    const seen = await world.read(key);
    if (seen.some((one) => one !== after)) failures.push(`seed ${seed}: ${key} is ${seen.join(", ")} at the end`);
  }
  const parts = Object.entries({ ...kills, ...byMoment }).map(([name, count]) => `${name} ${count}`);
  const total = Object.values(kills).reduce((sum, count) => sum + count, 0);
  const text = `seed ${seed}: ${total} kills in the middle (${parts.join(", ")}), ${ended} ended before theirs`;
  return { kills, byMoment, ended, failures, text: [text, ...failures].join("\n") };
}

function prefixOf(verb: string): string {
  if (verb.includes("kept")) return KEPT;
  if (verb.includes("encrypted")) return ENCRYPTED;
  return verb === "expire" ? EXPIRING : "";
}

/** A moment in one of the first `requests` requests. */
export function pointOf(dice: Dice, requests: number): KillPoint {
  return { request: 1 + dice.below(requests), moment: dice.pick(MOMENTS), delayMs: dice.below(DELAY_MS_MAX) };
}

/** Every reader must see the old or the new version after a kill, and the new one if the process had ended. */
async function checkKilled(world: KillWorld, key: string, own: Case, run: Run, lines: string[]): Promise<void> {
  const seen = await world.read(key);
  const allowed = run.isKilled ? own.before : [own.after];
  if (!run.isKilled && run.code !== 0) throw new Error(`exit ${run.code}: ${run.stderr}`);
  lines.push(`${run.isKilled ? "killed" : "ended"} after ${run.requests} requests, readers see ${seen.join(", ")}`);
  const wrong = seen.find((one) => !allowed.includes(one));
  if (wrong !== undefined) throw new Error(`a reader sees ${wrong}, allowed is ${allowed.join(" or ")}`);
  await own.afterKill?.();
}

/** Runs the verb to its end, and checks that everything is as it says. */
async function complete(world: KillWorld, key: string, own: Case, lines: string[]): Promise<Run> {
  await own.beforeRetry?.();
  const run = await world.run(own.args, undefined, own.config);
  lines.push(`then exit ${run.code} after ${run.requests} requests`);
  // A removed object cannot be removed twice.
  const isDone = run.code === 0 || (own.after === "absent" && /OBJECT_NOT_FOUND/.test(run.stdout + run.stderr));
  if (!isDone) throw new Error(`run again, it exits with ${run.code}: ${run.stdout}${run.stderr}`);
  const seen = await world.read(key);
  const wrong = seen.find((one) => one !== own.after);
  if (wrong !== undefined) throw new Error(`after it has run again, a reader sees ${wrong}, not ${own.after}`);
  await own.atEnd?.();
  return run;
}
