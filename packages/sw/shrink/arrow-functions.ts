/**
 * Function declarations as arrow functions, which are shorter: `function f(a){return a}` becomes `f=a=>a`, declared at the start
 * of its scope, where it is there before the first statement runs as a function would be.
 */
import { childrenOf, edited, parse, readsThis, walk, type Edit, type Node } from "./syntax-tree.ts";

/** @param script a minified ES module. */
export function arrowFunctions(script: string): string {
  const tree = parse(script);
  const constructors = new Set<string>();
  walk(tree, ({ type, callee }) => void (type === "NewExpression" && constructors.add(callee.name)));
  return written(tree);

  /** The text of a node, with the functions below it as arrows. */
  function written(node: Node): string {
    if (isBody(node)) return bodyOf(node);
    const edits: Edit[] = [];
    walk(node, (below) => {
      if (below === node || !isBody(below)) return true;
      edits.push({ start: below.start, end: below.end, text: bodyOf(below) });
      return false;
    });
    return edited(script, edits, node.start, node.end);
  }

  function bodyOf({ type, body }: Node): string {
    const isModule = type === "Program";
    const functions = (body as Node[]).filter(mayBeArrow);
    const keyword = isModule ? "var" : "let";
    const isDeclaration = new RegExp(`^${keyword}\\b`);
    const texts = functions.length > 0 ? [`${keyword} ${functions.map(arrowOf).join(",")};`] : [];
    for (const statement of (body as Node[]).filter((one) => !mayBeArrow(one))) {
      const text = written(statement);
      const before = texts.at(-1) ?? "";
      // One declaration with the one before, which may be that of the functions.
      const goesOn = statement["kind"] === keyword && isDeclaration.test(before) && before.endsWith(";");
      if (goesOn) texts[texts.length - 1] = `${before.slice(0, -1)},${text.replace(isDeclaration, "").trimStart()}`;
      else texts.push(text);
    }
    return isModule ? texts.join("") : `{${texts.join("")}}`;
  }

  function arrowOf({ id, params, body, async }: Node): string {
    const [first, ...others] = params as Node[];
    const isPlain = first?.type === "Identifier" && others.length === 0;
    const parameters = params.map(written).join(",");
    const head = isPlain ? `${async ? "async " : ""}${parameters}` : `${async ? "async" : ""}(${parameters})`;
    return `${id.name}=${head}=>${resultOf(body) ?? written(body)}`;
  }

  /** What a function that does nothing else returns. */
  function resultOf({ body }: Node): string | undefined {
    const [{ type, argument }] = body.length === 1 ? body : [{}];
    if (type !== "ReturnStatement" || !argument) return undefined;
    const text = written(argument);
    return argument.type === "SequenceExpression" || text.startsWith("{") ? `(${text})` : text;
  }

  function mayBeArrow(node: Node): boolean {
    const { type, generator, id } = node;
    if (type !== "FunctionDeclaration" || generator || constructors.has(id.name)) return false;
    return !childrenOf(node).some(readsThis);
  }
}

function isBody({ type }: Node): boolean {
  return type === "Program" || type === "BlockStatement";
}
