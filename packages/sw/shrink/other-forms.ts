/**
 * What may be written in another form, each with the same parts in the same order:
 *
 *     {f(a){…}}               {f:a=>{…}}
 *     a&&b;                   if(a)b;
 *     return a?b:c            if(a)return b;return c
 *     ((a,b)=>…)(c,d)         ((b,a)=>…)(d,c)
 */
import type { Arrangement } from "./arrangements.ts";
import { isPure } from "./purity.ts";
import { childrenOf, readsThis, type Node } from "./syntax-tree.ts";

type Form = (textOf: (item: number) => string) => string;

/** Of a node and what stands in it directly. */
export function otherForms(script: string, node: Node): Arrangement[] {
  const { type } = node;
  const found: Arrangement[] = [];
  if (type === "CallExpression") found.push(...asReordered(script, node));
  if (type === "ObjectExpression") for (const property of node["properties"]) found.push(...asMethod(script, property));
  if (type === "Program" || type === "BlockStatement")
    for (const statement of node["body"]) found.push(...asCondition(script, statement));
  return found;
}

function asMethod(script: string, { type, method, kind, computed, key, value, start, end }: Node): Arrangement[] {
  if (type !== "Property" || kind !== "init" || computed || value.generator || value.body?.type !== "BlockStatement")
    return [];
  if (!method && value.type !== "ArrowFunctionExpression") return [];
  if (childrenOf(value).some(readsThis)) return [];
  const { params, body, async } = value;
  const list = params.length === 0 ? [] : [{ start: params[0].start, end: params.at(-1).end }];
  const items = [key, body, ...list];
  const given = (textOf: (item: number) => string): string => (list.length === 0 ? "" : textOf(2));
  const asMember: Form = (textOf) => `${async ? "async " : ""}${textOf(0)}(${given(textOf)})${textOf(1)}`;
  const isPlain = params.length === 1 && params[0].type === "Identifier";
  const asArrow: Form = (textOf) => {
    const parameters = isPlain ? `${async ? " " : ""}${textOf(2)}` : `(${given(textOf)})`;
    return `${textOf(0)}:${async ? "async" : ""}${parameters}=>${textOf(1)}`;
  };
  return inForms(script, { start, end }, items, method ? [asMember, asArrow] : [asArrow, asMember]);
}

function asCondition(script: string, { type, expression, argument, start }: Node): Arrangement[] {
  if (type === "ExpressionStatement" && expression.type === "LogicalExpression" && expression.operator === "&&") {
    const { left, right } = expression;
    if (/^(\{|function|class|async|let)/.test(script.slice(right.start, right.start + 8))) return [];
    const both: Form = (textOf) => `${textOf(0)}&&${textOf(1)}`;
    return inForms(script, expression, [left, right], [both, (textOf) => `if(${textOf(0)})${textOf(1)}`]);
  }
  if (type !== "ReturnStatement" || argument?.type !== "ConditionalExpression") return [];
  const { test, consequent, alternate, end } = argument;
  // Others have another way to be written already.
  if (test.type === "BinaryExpression") return [];
  const returned = (text: string): string => `return${/^[\w$]/.test(text) ? " " : ""}${text}`;
  const choice: Form = (textOf) => returned(`${textOf(0)}?${textOf(1)}:${textOf(2)}`);
  const parted: Form = (textOf) => `if(${textOf(0)})${returned(textOf(1))};${returned(textOf(2))}`;
  return inForms(script, { start, end }, [test, consequent, alternate], [choice, parted]);
}

/** A function that is called where it stands takes what it is given in any order. */
function asReordered(script: string, { callee, arguments: given, start, end }: Node): Arrangement[] {
  const called = callee.type === "ParenthesizedExpression" ? callee.expression : callee;
  const { type, params, body, async } = called;
  if (type !== "ArrowFunctionExpression" || params.length < 2 || params.length !== given.length) return [];
  const isPlain = (param: Node): boolean =>
    param.type === "Identifier" ||
    (param.type === "ObjectPattern" && param["properties"].every(({ value }: Node) => value?.type === "Identifier"));
  if (!params.every(isPlain) || !given.every(isPure)) return [];
  const places = [...params.keys()] as number[];
  const forms = permutations(places).map((order): Form => (textOf) => {
    const [taken, passed] = [order.map(textOf), order.map((place) => textOf(params.length + 1 + place))];
    return `(${async ? "async" : ""}(${taken.join(",")})=>${textOf(params.length)})(${passed.join(",")})`;
  });
  return inForms(script, { start, end }, [...params, body, ...given], forms);
}

/** The given order first. */
function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((others) => [item, ...others]));
}

type Range = Pick<Node, "start" | "end">;

/** @param forms the first is how it is written; where that is not so, with spaces say, it is left as it is. */
function inForms(
  script: string,
  { start, end }: Range,
  items: readonly Range[],
  forms: readonly Form[],
): Arrangement[] {
  const inOrder = items.toSorted((a, b) => a.start - b.start);
  const place = items.map((item) => inOrder.indexOf(item));
  const join: Arrangement["join"] = (_order, textOf, way) => forms[way]!((item) => textOf(place[item]!));
  const written = join([], (item) => script.slice(inOrder[item]!.start, inOrder[item]!.end), 0);
  if (written !== script.slice(start, end)) return [];
  return [{ start, end, items: inOrder, ways: forms.length, isFixed: () => true, join }];
}
