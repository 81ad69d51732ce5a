/** The steps of one change of a deployment, each of which is killed and then runs to its end. For tests. */
import { expect } from "vitest";
import type { Dice } from "@agarose/storage/testing";
import type { Files, KillWorld, Run, Seen } from "./kill-world.ts";
import { pointOf } from "./search.ts";

const MARK_OLD_HOURS = 48;
/** For each kill. */
const ATTEMPTS = 4;

export class Steps {
  /** Those of the folder that the commands run in, as the last one left them. */
  files: Files;
  readonly #world: KillWorld;
  readonly #dice: Dice;
  readonly #what: string;
  readonly #objects: ReadonlyMap<string, Seen>;
  readonly #regions: readonly string[];

  /** Readers of `regions` have to see `objects` after every kill. `what` repeats a run. */
  constructor(
    world: KillWorld,
    given: { files: Files; dice: Dice; what: string; objects: ReadonlyMap<string, Seen>; regions: readonly string[] },
  ) {
    this.#world = world;
    this.files = given.files;
    this.#dice = given.dice;
    this.#what = given.what;
    this.#objects = given.objects;
    this.#regions = given.regions;
  }

  /**
   * Kills a command `times` times in its middle, hours apart, then lets it end. It may end before a kill point, and is
   * killed less often then. Resolves with how often it was killed.
   */
  async kill(args: string[], times: number, requests: number, aged?: "garbage"): Promise<number> {
    if (aged) for (const key of this.#objects.keys()) await this.#world.age(aged, key, MARK_OLD_HOURS);
    let killed = 0;
    for (let n = 0; n < ATTEMPTS * times && killed < times; n++) {
      await this.#ageClaims();
      // A command that ends before its point has less to do from then on: the first point is early enough for any.
      const point = n === 0 ? { ...pointOf(this.#dice, 1), delayMs: 0 } : pointOf(this.#dice, requests);
      const run = await this.#world.runIn(this.files, args, point);
      const what = `${this.#what}: ${args.join(" ")} killed at ${JSON.stringify(point)}`;
      expect(run.isKilled || run.code === 0, `${what}: ${run.stdout}${run.stderr}`).toBe(true);
      if (run.isKilled) killed++;
      this.files = run.files;
      await this.check(this.#regions, what);
    }
    await this.end(args);
    return killed;
  }

  /** Runs a command to its end. */
  async end(args: string[]): Promise<Run> {
    await this.#ageClaims();
    const run = await this.#world.runIn(this.files, args);
    expect(run.code, `${this.#what}: ${args.join(" ")}: ${run.stdout}${run.stderr}`).toBe(0);
    this.files = run.files;
    return run;
  }

  /** Whether readers of these regions see every object. */
  async check(regions: readonly string[], what = "at the end"): Promise<void> {
    const stores = this.#world.stores.filter(({ region }) => regions.includes(region.name));
    for (const [key, seen] of this.#objects) {
      const all = await this.#world.read(key, stores);
      expect(all, `${what}: what readers see of ${key}`).toEqual(all.map(() => seen));
    }
  }

  async #ageClaims(): Promise<void> {
    for (const key of this.#objects.keys()) await this.#world.ageClaims(key);
  }
}
