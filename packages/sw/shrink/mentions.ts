/** Where in a script stand names that may be others: those of variables, and of properties that only the script reads. */
import { bindingsOf, type Binding } from "./scopes.ts";
import { walk, type Node } from "./syntax-tree.ts";

/** A property of internal objects. All of them differ from each other and from every other property of the script. */
export class Property {
  name: string;

  constructor(name: string) {
    this.name = name;
  }
}

export interface Mention {
  readonly start: number;
  readonly end: number;
  readonly named: Binding | Property;
  /** Where it is the variable of a property in a literal or a pattern: what the property is called. */
  readonly key?: { readonly name: string };
  /** What has to stand after it whatever it is called. */
  readonly suffix: string;
}

export interface Mentions {
  readonly mentions: readonly Mention[];
  readonly properties: readonly Property[];
  /** The names of all other properties. */
  readonly others: ReadonlySet<string>;
}

/** @param internal the names of properties that may be others. */
export function mentionsOf(script: string, tree: Node, internal: ReadonlySet<string>): Mentions {
  const properties = new Map([...internal].map((name) => [name, new Property(name)]));
  const others = new Set<string>();
  const mentions: Mention[] = [];
  /** Of the variable that begins at a character. */
  const keys = new Map<number, { start: number; key: { readonly name: string } }>();
  const bindings = bindingsOf(script);
  const starts = new Set(bindings.flatMap(({ uses }) => uses.map(({ start }) => start)));

  walk(tree, (node) => {
    const key = keyOf(node);
    if (!key) return;
    const property = properties.get(key["name"]);
    if (!property) others.add(String(key["name"] ?? key["value"]));
    const variable = node.type === "Property" ? variableOf(node) : undefined;
    if (variable && starts.has(variable.start))
      keys.set(variable.start, { start: key.start, key: property ?? { name: script.slice(key.start, key.end) } });
    else if (property) mentions.push({ start: key.start, end: key.end, named: property, suffix: "" });
  });
  for (const binding of bindings) {
    for (const { start, end, suffix } of binding.uses) {
      mentions.push({ start, ...keys.get(start), end, named: binding, suffix });
    }
  }
  const used = [...properties.values()].filter((property) =>
    mentions.some(({ named, key }) => [named, key].includes(property)),
  );
  return { mentions, properties: used, others };
}

/** What a node calls a property, where that is written as a name. */
function keyOf({ type, computed, key, property }: Node): Node | undefined {
  if (type === "MemberExpression") return computed ? undefined : property;
  return /^(Property|MethodDefinition|PropertyDefinition)$/.test(type) && !computed ? key : undefined;
}

/** The variable that is a property's whole value, but for a default. */
function variableOf({ value, method, kind }: Node): Node | undefined {
  if (method || kind !== "init") return undefined;
  const variable = value.type === "AssignmentPattern" ? value.left : value;
  return variable.type === "Identifier" ? variable : undefined;
}
