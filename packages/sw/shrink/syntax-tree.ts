/** What the steps of shrinking share: walking a syntax tree, and editing the text that it was parsed from. */
import { parseSync } from "vite";

/** A node of an ESTree; fields beyond these depend on `type`. */
export interface Node {
  readonly type: string;
  /** Where its text begins and ends. */
  readonly start: number;
  readonly end: number;
  readonly [field: string]: any;
}

/** Puts `text` in the place of the characters [start, end). */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** @throws when `script` is no ES module. */
export function parse(script: string): Node {
  const { program, errors } = parseSync("script.js", script);
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("; "));
  return program as unknown as Node;
}

export function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof value?.type === "string");
}

/** Calls `visit` for `node` and all below it; what is below a node is left out where `visit` returns false. */
export function walk(node: Node, visit: (node: Node) => boolean | void): void {
  if (visit(node) === false) return;
  for (const child of childrenOf(node)) walk(child, visit);
}

/** The characters [start, end) of `script`, edited. The edits must not overlap. */
export function edited(script: string, edits: readonly Edit[], start: number = 0, end: number = script.length): string {
  let text = "";
  let at = start;
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    if (edit.start < at || edit.end > end) throw new Error(`edits overlap at character ${edit.start}`);
    text += script.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return text + script.slice(at, end);
}

/** Whether `this`, `arguments` or `new.target` in it are those of the function around it. */
export function readsThis(node: Node): boolean {
  let found = false;
  walk(node, ({ type, name }) => {
    if (/^(ThisExpression|Super|MetaProperty)$/.test(type) || (type === "Identifier" && name === "arguments"))
      found = true;
    return !/^Function|^Class/.test(type);
  });
  return found;
}
