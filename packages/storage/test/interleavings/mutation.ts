/** Changes one place of a function, found by its syntax: neither format nor comments nor messages matter. */
import { parseSync } from "vite";

/**
 * A place of a function, and what it says instead, in which `$&` is what it says now.
 *
 * - `call NAME`: a call of that function or method.
 * - `value NAME`: the value of the variable or property of that name.
 * - `test NAME`, `return NAME`: the condition of an `if` or `?:`, or what a `return` returns, that mentions the name.
 *
 * Where several places fit, a number behind the name says which, from 1.
 */
export type Edit = readonly [file: string, functionName: string, place: string, instead: string];

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly name?: string;
  readonly [part: string]: unknown;
}

/** The text of a file with an edit. Throws unless just one place fits. */
export function edited(text: string, [file, functionName, place, instead]: Edit): string {
  const [kind = "", name = "", number] = place.split(" ");
  const fail = (problem: string): never => {
    throw new Error(`${file}, function ${functionName}: ${problem}`);
  };
  const functions = nodesIn(parseSync(file, text).program).filter((node) => isFunction(node, functionName));
  if (functions.length !== 1) fail(`it is there ${functions.length} times`);
  const places = nodesIn(functions[0]).flatMap((node) => PLACES[kind]!(node, name) ?? []);
  const found = number === undefined && places.length > 1 ? undefined : places[Number(number ?? 1) - 1];
  if (!found) return fail(`\`${place}\` fits ${places.length} places`);
  const now = text.slice(found.start, found.end);
  const label = found.type === "Property" ? `${name}: ` : "";
  return `${text.slice(0, found.start)}${label}${instead.replaceAll("$&", () => now)}${text.slice(found.end)}`;
}

/** By the first word of a place: what of a node it means, if anything. */
const PLACES: Readonly<Record<string, (node: Node, name: string) => Node | readonly Node[] | undefined>> = {
  call: (node, name) => {
    if (node.type !== "CallExpression") return undefined;
    const callee = node["callee"] as Node;
    return ((callee["property"] as Node | undefined) ?? callee).name === name ? node : undefined;
  },
  value: (node, name) => {
    if (node.type === "VariableDeclarator" && node["init"] && mentions(node["id"], name)) return node["init"] as Node;
    if (node.type !== "ObjectExpression") return undefined;
    const own = (node["properties"] as Node[]).filter(({ key }) => (key as Node | undefined)?.name === name);
    return own.map((property) => (property["shorthand"] ? property : (property["value"] as Node)));
  },
  test: ({ type, test }, name) => (/^(If|Conditional)/.test(type) && mentions(test, name) ? (test as Node) : undefined),
  return: ({ type, argument }, name) =>
    type === "ReturnStatement" && mentions(argument, name) ? (argument as Node) : undefined,
};

function isFunction({ type, id, key }: Node, name: string): boolean {
  if (type === "FunctionDeclaration") return (id as Node).name === name;
  return type === "MethodDefinition" && (key as Node).name === name;
}

function mentions(node: unknown, name: string): boolean {
  return nodesIn(node).some((inner) => inner.name === name);
}

/** A node and those within it, in the order of the text. */
function nodesIn(node: unknown): Node[] {
  if (typeof node !== "object" || node === null) return [];
  const inner = Object.values(node).flatMap(nodesIn);
  return "type" in node ? [node as Node, ...inner] : inner;
}
