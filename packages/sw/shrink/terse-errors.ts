/**
 * Leaves the words out of `new AgaroseError(code, message, details, cause)`: code and details say the same to a program,
 * and `docs/reference/errors.md` to a person. The minifier then drops what only made up the words. Where the code says all
 * that matters, nothing else is left.
 */
import { edited, parse, walk, type Edit, type Node } from "./syntax-tree.ts";

/** Made of words; anything else is a message that came from elsewhere. */
const WORDS = new Set(["Literal", "TemplateLiteral", "BinaryExpression"]);

/** The class, and the function that makes errors of its shape in `ec-wasm`: a bundle of both does with the class. */
const MAKERS = new Set(["AgaroseError", "codecError"]);

/** What an error's code says in the table of HTTP statuses. */
const CODE = /^[A-Z]+(_[A-Z]+)*$/;

/**
 * Leaves the codes out of the table of HTTP statuses that nothing in `script` names: nothing in it can make such an error, and
 * what a PoP says is taken over by code.
 *
 * @throws when there is no such table.
 */
export function knownStatuses(script: string): string {
  const program = parse(script);
  const named = new Set<unknown>();
  const tables: Node[][] = [];
  walk(program, (node) => {
    if (node.type === "Literal") named.add(node["value"]);
    const properties = node.type === "ObjectExpression" ? (node["properties"] as Node[]) : [];
    const isTable = properties.every(({ key, value }) => CODE.test(key?.name) && typeof value?.value === "number");
    if (isTable && properties.length > 1) tables.push(properties);
  });
  if (tables.length !== 1) throw new Error(`${tables.length} tables of statuses by code, 1 is expected`);
  const [table] = tables as [Node[]];
  const kept = table.filter(({ key }) => named.has(key.name)).map(({ start, end }) => script.slice(start, end));
  return edited(script, [{ start: table[0]!.start, end: table.at(-1)!.end, text: kept.join(", ") }]);
}

/**
 * Codes that say all that a worker has to say. Errors of chunks, bundles and sources never leave it: whoever gets one reads its code,
 * and tells what it could not do by another one. Whoever asked knows the key, and `agarose verify` says more of a manifest.
 */
const BARE = /^(BUNDLE_INVALID|CHUNK_\w+|SOURCE_FAILED|CODE_INVALID|KEY_\w+|MANIFEST_\w+)$/;

/** @throws when there is no error in `script`, which would mean that the class goes by another name. */
export function terseErrors(script: string): string {
  const edits: Edit[] = [];
  walk(parse(script), (node) => {
    const { callee } = node;
    if (!MAKERS.has(String(callee?.name))) return;
    if (node.type === "CallExpression") edits.push({ start: callee.start, end: callee.end, text: "new AgaroseError" });
    const [code, message] = node["arguments"] as Node[];
    if (message && codesOf(code!).every((text) => BARE.test(String(text)))) {
      edits.push({ start: code!.end, end: node["arguments"].at(-1).end, text: "" });
      return;
    }
    if (message && WORDS.has(message.type)) edits.push({ start: message.start, end: message.end, text: '""' });
    // Words may be in the choice between two as well, but nothing else may: both are dropped or none.
    else if (message?.type === "ConditionalExpression")
      throw new Error(`which words? ${script.slice(message.start, message.end)}`);
  });
  if (edits.length === 0) throw new Error("no AgaroseError is made in this script");
  // Nested errors would overlap: an outer message holds no inner error.
  return edited(script, edits);
}

/** What a code may be, where it is written down or one of two that are. */
function codesOf(code: Node): unknown[] {
  if (code.type === "ConditionalExpression") return [...codesOf(code["consequent"]), ...codesOf(code["alternate"])];
  return [code["value"]];
}
