/**
 * The ways to spell a script that mean the same: the names of its variables and of properties that only it reads, and what
 * `arrangements.ts` tells of.
 *
 * The text is kept in stretches, each with its own text as long as nothing in it changes, because whoever looks for a good
 * spelling asks for the text of many.
 */
import type { Random } from "@agarose/solver";
import { arrangementsOf, type Arrangement } from "./arrangements.ts";
import { mentionsOf, Property, type Mention } from "./mentions.ts";
import type { Binding } from "./scopes.ts";
import { parse } from "./syntax-tree.ts";

type Named = Mention["named"];

type Piece = string | Mention | Group;

class Stretch {
  readonly pieces: Piece[] = [];
  readonly parent: Stretch | undefined;
  #text: string | undefined;

  constructor(parent: Stretch | undefined) {
    this.parent = parent;
  }

  get text(): string {
    return (this.#text ??= joined(this.pieces));
  }

  changed(): void {
    // What is above a changed stretch was told then.
    if (this.#text === undefined) return;
    this.#text = undefined;
    this.parent?.changed();
  }
}

/** An arrangement whose items are stretches. */
interface Group extends Arrangement {
  readonly stretches: readonly Stretch[];
  readonly parent: Stretch;
  /** Positions in `items`. */
  order: number[];
  way: number;
}

const NAMES = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"];
/** For properties; there are more of them than names of one character. */
const PROPERTY_NAMES = [...NAMES, ...NAMES.flatMap((first) => [..."aenorst"].map((second) => first + second))];
/** Characters before or after a name by which places are alike. */
const CONTEXTS = [2, 3, 4, 6, 8];

export class Spellings {
  readonly #random: Random;
  readonly #whole: Stretch;
  readonly #groups: Group[] = [];
  readonly #properties: readonly Property[];
  readonly #bindings: Binding[];
  readonly #propertyNames: readonly string[];
  /** The stretches that mention a variable or a property. */
  readonly #mentionedIn = new Map<Named, Set<Stretch>>();
  /** Variables that stand in places which are alike; each several times, once for every such place. */
  readonly #alike = new Map<Binding, Binding[][]>();

  /**
   * @param script a minified ES module.
   * @param internal its properties that only it reads.
   */
  constructor(script: string, internal: ReadonlySet<string>, random: Random) {
    this.#random = random;
    const tree = parse(script);
    const { mentions, properties, others } = mentionsOf(script, tree, internal);
    this.#properties = properties;
    this.#propertyNames = PROPERTY_NAMES.filter((name) => !others.has(name));
    const parts = [...mentions, ...arrangementsOf(script, tree)];
    // What encloses another one comes first.
    parts.sort((a, b) => a.start - b.start || b.end - a.end);
    this.#whole = this.#stretch(script, parts, { start: 0, end: script.length }, undefined);
    this.#bindings = [...this.#mentionedIn.keys()].filter((named): named is Binding => !(named instanceof Property));
    this.#compareContexts(script, mentions);
  }

  get text(): string {
    return this.#whole.text;
  }

  /** Changes one thing, if it can be; the returned function takes that back. */
  change(): (() => void) | undefined {
    const draw = this.#random.next();
    if (draw < 0.2 && this.#groups.length > 0) return this.#rearrange();
    if (draw < 0.28 && this.#properties.length > 0) return this.#renameProperty();
    return this.#renameVariable();
  }

  #stretch(script: string, parts: (Mention | Arrangement)[], range: Range, parent: Stretch | undefined): Stretch {
    const stretch = new Stretch(parent);
    let at = range.start;
    while (parts.length > 0 && parts[0]!.start < range.end) {
      const part = parts.shift()!;
      if (part.start < at) throw new Error(`the parts of the script overlap at character ${part.start}`);
      const before = script.slice(at, part.start);
      if ("items" in part) {
        // The space after a keyword is needed before some items and not before others.
        stretch.pieces.push(before.replace(/(?<=\w) $/, ""));
        const stretches = part.items.map((item) => this.#stretch(script, parts, item, stretch));
        const group = { ...part, stretches, parent: stretch, order: [...part.items.keys()], way: 0 };
        stretch.pieces.push(group);
        this.#groups.push(group);
      } else {
        stretch.pieces.push(before, part);
        for (const named of [part.named, part.key]) {
          if (named instanceof Property || named === part.named) this.#mentionsIn(named as Named).add(stretch);
        }
      }
      at = part.end;
    }
    stretch.pieces.push(script.slice(at, range.end));
    return stretch;
  }

  #mentionsIn(named: Named): Set<Stretch> {
    const stretches = this.#mentionedIn.get(named) ?? new Set();
    this.#mentionedIn.set(named, stretches);
    return stretches;
  }

  #compareContexts(script: string, mentions: readonly Mention[]): void {
    const sorted = mentions.toSorted((a, b) => a.start - b.start);
    const places = new Map<string, Binding[]>();
    for (const [i, { named, start, end }] of sorted.entries()) {
      if (named instanceof Property) continue;
      const before = script.slice(sorted[i - 1]?.end ?? 0, start);
      const after = script.slice(end, sorted[i + 1]?.start ?? script.length);
      const lists = this.#alike.get(named) ?? [];
      for (const length of CONTEXTS) {
        for (const key of [`${length}<${before.slice(-length)}`, `${length}>${after.slice(0, length)}`]) {
          const list = places.get(key) ?? [];
          list.push(named);
          places.set(key, list);
          lists.push(list);
        }
      }
      this.#alike.set(named, lists);
    }
  }

  #renameVariable(): (() => void) | undefined {
    const binding = this.#any(this.#bindings);
    const { name: old, rivals, globals } = binding;
    const name = this.#random.next() < 0.1 ? this.#any(NAMES) : this.#any(this.#any(this.#alike.get(binding)!)).name;
    if (name === old || name.length > 1 || globals.has(name)) return undefined;
    // Whoever has that name and may not share it takes the old one.
    const clashing = [...rivals].filter((rival) => rival.name === name);
    const isSound = (rival: Binding): boolean =>
      !rival.globals.has(old) && ![...rival.rivals].some((other) => other !== binding && other.name === old);
    return clashing.every(isSound) ? this.#exchange(binding, clashing, name) : undefined;
  }

  #renameProperty(): (() => void) | undefined {
    const property = this.#any(this.#properties);
    const name = this.#any(this.#propertyNames);
    if (name === property.name) return undefined;
    const others = this.#properties.filter((other) => other.name === name);
    return this.#exchange(property, others, name);
  }

  /** Gives one the name `name`, and those that have it the old one. */
  #exchange(one: Named, others: readonly Named[], name: string): () => void {
    const { name: old } = one;
    const stretches = [...new Set([one, ...others].flatMap((named) => [...this.#mentionedIn.get(named)!]))];
    const rename = (first: string, second: string): void => {
      one.name = first;
      for (const named of others) named.name = second;
      for (const stretch of stretches) stretch.changed();
    };
    rename(name, old);
    return () => rename(old, name);
  }

  #rearrange(): (() => void) | undefined {
    const group = this.#any(this.#groups);
    const { order, ways, way } = group;
    if (ways) {
      const join = (other: number): void => {
        group.way = other;
        group.parent.changed();
      };
      join(this.#random.integer(ways));
      return () => join(way);
    }
    const from = this.#random.integer(order.length);
    if (group.isFixed(order[from]!)) return undefined;
    const moved = order.toSpliced(from, 1).toSpliced(this.#random.integer(order.length), 0, order[from]!);
    const arrange = (positions: number[]): void => {
      group.order = positions;
      group.parent.changed();
    };
    arrange(moved);
    return () => arrange(order);
  }

  #any<T>(list: readonly T[]): T {
    return list[this.#random.integer(list.length)]!;
  }
}

interface Range {
  readonly start: number;
  readonly end: number;
}

function textOf(piece: Piece): string {
  if (typeof piece === "string") return piece;
  if ("stretches" in piece) return piece.join(piece.order, (item) => piece.stretches[item]!.text, piece.way);
  const { named, key, suffix } = piece;
  return `${key && key.name !== named.name ? `${key.name}:` : ""}${named.name}${suffix}`;
}

/** With a space where two words would become one. */
function joined(pieces: readonly Piece[]): string {
  let text = "";
  let endsInWord = false;
  for (const piece of pieces) {
    const part = textOf(piece);
    if (part === "") continue;
    // Characters of parts, because reading one of the whole would put its parts together each time.
    text += endsInWord && isWord(part.charCodeAt(0)) ? ` ${part}` : part;
    endsInWord = isWord(part.charCodeAt(part.length - 1));
  }
  return text;
}

function isWord(code: number): boolean {
  return (
    (code > 96 && code < 123) || (code > 64 && code < 91) || (code > 47 && code < 58) || code === 95 || code === 36
  );
}
