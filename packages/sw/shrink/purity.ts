/** Which expressions may be evaluated earlier or later. As the minifiers before, this holds reading a property for free of effects. */
import { childrenOf, type Node } from "./syntax-tree.ts";

/** Whether evaluating has no effect and cannot tell when it happens but by the variables it reads. */
export function isPure(node: Node): boolean {
  const { type, operator, callee } = node;
  if (/^(Identifier|Literal)$/.test(type) || isFunction(node)) return true;
  if (type === "ObjectExpression") return (node["properties"] as Node[]).every(isPureProperty);
  if (type === "UnaryExpression" && operator === "delete") return false;
  if (type === "NewExpression" && !/^(Map|Set|AbortController)$/.test(callee.name)) return false;
  const parts =
    /^(Member|Unary|Binary|Logical|Conditional|Chain|Array|New)Expression$|^Template(Literal|Element)$/.test(type);
  return parts && childrenOf(node).every(isPure);
}

/** Whether it is the same whenever it is evaluated. */
export function isConstant(node: Node): boolean {
  if (node.type === "Identifier") return false;
  return isPure(node) && (isFunction(node) || childrenOf(node).every(isConstant));
}

export function isFunction({ type }: Node): boolean {
  return /^(Arrow)?FunctionExpression$/.test(type);
}

export function isPureProperty(property: Node): boolean {
  const { type, computed, value, kind } = property;
  return type === "Property" && !computed && (kind !== "init" || isPure(value));
}
