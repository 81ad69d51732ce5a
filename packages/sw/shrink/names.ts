/**
 * Names that repeat: variables are called so that the script around them has been seen before, which is what a compressor
 * spares. Minifiers count how often names stand in a script, and not beside what.
 *
 * `for(let e of n)e.close()` in one place and `for(let r of t)r.close()` in another become the same text when what is before and
 * after a variable decides its name. Each variable in turn takes the name that stands most often in such surroundings,
 * of a few lengths; several rounds, because names are surroundings too.
 */
import { bindingsOf, type Binding, type Use } from "./scopes.ts";
import { edited } from "./syntax-tree.ts";

/** Characters before and after a variable, and what it weighs when another one has the same: the best of a few hundred such tables. */
const WINDOWS = [
  [10, 10, 2],
  [7, 6, 3],
  [6, 6, 2],
  [2, 6, 3],
  [3, 3, 1.5],
  [2, 2, 1],
  [12, 0, 4],
  [0, 12, 1],
  [8, 0, 2],
  [0, 8, 1.5],
  [5, 1, 1],
  [1, 5, 1],
  [5, 2, 1],
  [1, 3, 1],
] as const;
const REACH = 12;
const ROUNDS = 8;
/** Stands for the variable itself in its own surroundings. */
const ITSELF = "\u0001";

/** @param script minified: names of one character stay so, longer ones are left as they are. */
export function repeatingNames(script: string): string {
  const bindings = bindingsOf(script);
  const places = bindings
    .flatMap((binding) => binding.uses.map((use) => ({ binding, use })))
    .toSorted((a, b) => a.use.start - b.use.start);
  for (let round = 0; round < ROUNDS; round++) renameAll(script, bindings, places);
  return edited(
    script,
    places.map(({ binding, use }) => ({ start: use.start, end: use.end, text: textOf(use, binding.name) })),
  );
}

interface Place {
  readonly binding: Binding;
  readonly use: Use;
}

function textOf({ prefix, suffix }: Use, name: string): string {
  return `${prefix}${name}${suffix}`;
}

/** How often each name stands in the surroundings that a key describes. */
type Counts = Map<string, Map<string, number>>;

function renameAll(script: string, bindings: readonly Binding[], places: readonly Place[]): void {
  const between = places.map(({ use }, i) => script.slice(places[i - 1]?.use.end ?? 0, use.start));
  between.push(script.slice(places.at(-1)?.use.end ?? 0));
  const ofBinding = Map.groupBy(places.keys(), (i) => places[i]!.binding);
  const counts: Counts = new Map();
  for (const i of places.keys()) count(surroundings(i), places[i]!.binding.name, 1);
  for (const binding of bindings) {
    if (binding.name.length > 1) continue;
    // They do not depend on its own name.
    const around = (ofBinding.get(binding) ?? []).map(surroundings);
    for (const keys of around) count(keys, binding.name, -1);
    binding.name = bestName(binding, around, counts);
    for (const keys of around) count(keys, binding.name, 1);
  }

  function count(keys: readonly string[], name: string, change: number): void {
    for (const key of keys) {
      const names = counts.get(key) ?? new Map<string, number>();
      counts.set(key, names.set(name, (names.get(name) ?? 0) + change));
    }
  }

  function surroundings(at: number): string[] {
    const { binding, use } = places[at]!;
    const shown = (i: number): string => {
      const other = places[i]!;
      return textOf(other.use, other.binding === binding ? ITSELF : other.binding.name);
    };
    let before = between[at]! + use.prefix;
    for (let i = at - 1; i >= 0 && before.length < REACH; i--) before = between[i]! + shown(i) + before;
    let after = use.suffix + between[at + 1]!;
    for (let i = at + 1; i < places.length && after.length < REACH; i++) after += shown(i) + between[i + 1]!;
    before = before.slice(-REACH).padStart(REACH);
    return WINDOWS.map(([left, right], i) => `${i} ${before.slice(REACH - left)} ${after.slice(0, right)}`);
  }
}

function bestName(binding: Binding, surroundings: readonly string[][], counts: Counts): string {
  const taken = new Set([...binding.rivals].map(({ name }) => name));
  const scores = new Map([[binding.name, 0]]);
  for (const keys of surroundings) {
    for (const [i, [, , weight]] of WINDOWS.entries()) {
      for (const [name, times] of counts.get(keys[i]!) ?? []) {
        // Below zero where the surroundings have changed within the round. Twice as frequent is not worth twice as much.
        if (times > 0) scores.set(name, (scores.get(name) ?? 0) + weight * Math.sqrt(times));
      }
    }
  }
  let best = binding.name;
  for (const [name, score] of scores) {
    if (score <= scores.get(best)! || name.length > 1 || taken.has(name) || binding.globals.has(name)) continue;
    best = name;
  }
  return best;
}
