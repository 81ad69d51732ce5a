/**
 * Leaves out options that a file does without, so that the minifier drops what would have used them: those that only other
 * users of the same code give, and the store, which only the files named `offline` have.
 *
 *     const { delta, share = none } = options;   becomes   const { delta } = options, share = none;
 *     options.share?.(stripe)                    becomes   (void 0)?.(stripe)
 *     read({ delta, share: shared() })           becomes   read({ delta })
 */
import { edited, parse, walk, type Edit, type Node } from "./syntax-tree.ts";

/** No service worker gives these to the reader and its sources. */
export const NEVER_SET = ["onLatency", "proof", "windowBytes"];

/** What there is for a store of stripes alone, … */
export const NEVER_STORED = ["store", "share", "made"];
/** … and for who makes one: `register` looks at it too. */
export const OF_STORE = [...NEVER_STORED, "offline"];

/**
 * @param names properties to leave out.
 * @param neverSet of these, those that nothing in `script` may set.
 * @throws where one of them is set, or where a name is taken apart in another way than by a declaration.
 */
export function unsetOptions(script: string, names: readonly string[], neverSet: readonly string[] = []): string {
  const edits: Edit[] = [];
  const text = ({ start, end }: Node): string => script.slice(start, end);
  const isNamed = ({ type, key, computed }: Node): boolean =>
    type === "Property" && !computed && names.includes(key.name);

  function visit(node: Node): boolean | void {
    const { type, start, end } = node;
    if (type === "MemberExpression" && !node["computed"] && names.includes(node["property"].name)) {
      edits.push({ start, end, text: "(void 0)" });
      return false;
    }
    const list = type === "VariableDeclarator" ? (node["id"] as Node) : node;
    const properties = (list["properties"] ?? []) as Node[];
    const unset = properties.filter(isNamed);
    if (unset.length === 0) return;
    if (type === "ObjectPattern") throw new Error(`${text(node)} is no declaration: its options cannot be left out`);
    const kept = properties.filter((property) => !unset.includes(property));
    leaveOut(list, kept);
    if (type === "VariableDeclarator") {
      const defaults = unset.map(({ value }) =>
        value.type === "AssignmentPattern" ? text(value) : `${text(value)} = void 0`,
      );
      edits.push({ start: end, end, text: `, ${defaults.join(", ")}` });
      kept.push(node["init"] as Node);
    } else if (unset.some(({ key }) => neverSet.includes(key.name))) {
      throw new Error(`${text(node)} sets what nobody should: it must not be left out`);
    }
    for (const child of kept) walk(child, visit);
    return false;
  }

  /** Keeps nothing of a list in braces but `kept`. */
  function leaveOut(list: Node, kept: readonly Node[]): void {
    let at = list.start + 1;
    for (const property of kept) {
      edits.push({ start: at, end: property.start, text: at === list.start + 1 ? "" : "," });
      at = property.end;
    }
    edits.push({ start: at, end: list.end - 1, text: "" });
  }

  walk(parse(script), visit);
  return edited(script, edits);
}
