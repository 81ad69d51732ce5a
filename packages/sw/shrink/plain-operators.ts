/**
 * What an operator says shorter, and nothing by the name of a variable that is never set:
 *
 *     Number(text)     becomes   (+(text))
 *     void 0           becomes   nothing
 *     await void 0     becomes   nothing    (what `unset-options.ts` leaves behind)
 *
 * Nothing in a worker is a BigInt, which `+` would refuse.
 */
import { edited, parse, walk, type Edit } from "./syntax-tree.ts";

/** @param script an ES module in which `Number` is the platform's, and which has no variable named `nothing`. */
export function plainOperators(script: string): string {
  const edits: Edit[] = [];
  walk(parse(script), ({ type, start, end, operator, callee, argument, arguments: given }) => {
    const isNothing = (type === "AwaitExpression" ? argument : { operator }).operator === "void";
    if (isNothing) edits.push({ start, end, text: "nothing" });
    if (type === "CallExpression" && callee.name === "Number" && given.length === 1)
      edits.push({ start, end: callee.end, text: "(+" }, { start: end, end, text: ")" });
    return !isNothing;
  });
  return `let nothing;${edited(script, edits)}`;
}
