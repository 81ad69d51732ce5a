/**
 * Functions that are called where they stand, which minifiers make of those that are called once, as the statements that they
 * consist of:
 *
 *     ((a) => { b(a); })(c);                          becomes   let a$1=c;b(a$1);
 *     return ((a) => { b(a); return a.d; })(c);       becomes   let a$1=c;b(a$1);return a$1.d;
 *     const e = ((a) => { b(a); return a.d; })(c);    becomes   let a$1=c;b(a$1);const e=a$1.d;
 *     (c) => ((a) => { b(a); return a.d; })(c)        becomes   (c)=>{let a$1=c;b(a$1);return a$1.d;}
 *
 * The same with `async` and `await` where both functions are so. What such a function declares gets a name of its own.
 */
import { bindingsOf, type Binding } from "./scopes.ts";
import { childrenOf, edited, parse, readsThis, walk, type Edit, type Node } from "./syntax-tree.ts";

/** @param script an ES module without names that end in `$` and a number. */
export function inlinedCalls(script: string): string {
  const names = { given: 0 };
  // What stands in an inlined function is inlined in the next round.
  for (let before = ""; before !== script;) [before, script] = [script, inlinedOnce(script, names)];
  return script;
}

/** Around a statement. */
interface Place {
  /** Of the function; undefined at the top. */
  readonly isAsync: boolean | undefined;
  readonly isGenerator: boolean;
  readonly isInTry: boolean;
  /** Whether a function may be declared here. */
  readonly isBody: boolean;
}

/** A function that is called where it stands. */
interface Call {
  readonly params: readonly Node[];
  readonly given: readonly Node[];
  /** Of a function that is an expression: undefined. */
  readonly statements: readonly Node[] | undefined;
  readonly called: Node;
  readonly isAwaited: boolean;
}

function inlinedOnce(script: string, names: { given: number }): string {
  const edits: Edit[] = [];
  const bindings = bindingsOf(script);
  const text = ({ start, end }: Node): string => script.slice(start, end);
  visit(parse(script), { isAsync: undefined, isGenerator: false, isInTry: false, isBody: true });
  return edited(script, edits);

  function visit(node: Node, place: Place): void {
    const { type } = node;
    if (/Function/.test(type)) {
      const inside = { isAsync: node["async"], isGenerator: node["generator"], isInTry: false, isBody: true };
      if (type === "ArrowFunctionExpression" && asBody(node)) return;
      return visitAll(node, inside);
    }
    if (type === "TryStatement") return visitAll(node, { ...place, isInTry: true, isBody: false });
    if (type !== "Program" && type !== "BlockStatement") return visitAll(node, place);
    for (const statement of node["body"])
      if (!asStatements(statement, place)) visit(statement, { ...place, isBody: false });
  }

  function visitAll(node: Node, place: Place): void {
    for (const child of childrenOf(node)) visit(child, place);
  }

  /** An arrow function that only calls another one. */
  function asBody({ body, async, start, params }: Node): boolean {
    const call = callOf(body);
    if (!call || body.type === "BlockStatement") return false;
    const { called, isAwaited } = call;
    if (isAwaited && !called["async"]) return false;
    // What fails before its first wait rejects in both.
    const becomesAsync = called["async"] && !async;
    if (becomesAsync && params.some((param: Node) => param.type !== "Identifier")) return false;
    if (becomesAsync) edits.push({ start, end: start, text: "async " });
    edits.push({ start: body.start, end: body.end, text: `{${inlined(call, "return")}}` });
    return true;
  }

  function asStatements(statement: Node, place: Place): boolean {
    const { type, start, end, expression, argument } = statement;
    const replace = (call: Call | undefined, mayBe: (call: Call) => boolean, made: (call: Call) => string): boolean => {
      if (!call || !mayBe(call) || (!place.isBody && call.statements?.some(isFunctionDeclaration))) return false;
      edits.push({ start, end, text: made(call) });
      return true;
    };
    const isWaitedFor = ({ called, isAwaited }: Call): boolean => Boolean(called["async"]) === isAwaited;
    if (type === "ExpressionStatement") {
      const isPlain = (call: Call): boolean => isWaitedFor(call) && returnsAtEnd(call);
      return replace(callOf(expression), isPlain, (call) => inlined(call, ""));
    }
    if (type === "ReturnStatement") {
      const isPassed = ({ called, isAwaited }: Call): boolean => {
        if (place.isGenerator) return false;
        return called["async"] ? Boolean(place.isAsync) && (isAwaited || !place.isInTry) : !isAwaited;
      };
      return replace(argument ? callOf(argument) : undefined, isPassed, (call) => inlined(call, "return"));
    }
    if (type !== "VariableDeclaration") return false;
    const all = statement["declarations"] as Node[];
    const at = all.findIndex(({ init }) => init && callOf(init));
    if (at < 0) return false;
    const isOne = (call: Call): boolean => isWaitedFor(call) && returnsAtEnd(call) && hasResult(call);
    return replace(callOf(all[at]!["init"]), isOne, (call) => {
      const list = (some: Node[]): string =>
        some.length > 0 ? `${statement["kind"]} ${some.map(text).join(",")};` : "";
      const result = inlined(call, `${statement["kind"]} ${text(all[at]!["id"])}=`);
      return `${list(all.slice(0, at))}${result}${list(all.slice(at + 1))}`;
    });
  }

  /** Its statements; `taken` is what is done with what it returns at its end. */
  function inlined({ params, given, statements, called, isAwaited }: Call, taken: string): string {
    const renamed = renamings(called);
    const within = ({ start, end }: Node): string =>
      edited(
        script,
        renamed.filter((edit) => edit.start >= start && edit.end <= end),
        start,
        end,
      );
    const taking = params.map((param, i) => (given[i] ? `${within(param)}=${text(given[i])}` : within(param)));
    const head = taking.length > 0 ? `let ${taking.join(",")};` : "";
    // What an async function returns is waited for.
    const result = (value: Node): string => {
      const waits = isAwaited && taken !== "return" && !/^(Object|Array)Expression$|^AwaitExpression$/.test(value.type);
      const passed = `${waits ? "await " : ""}${within(value)}`;
      // Nobody takes it: what begins with a brace would be a block.
      return taken === "" ? `(${passed});` : `${taken}${taken === "return" ? " " : ""}${passed};`;
    };
    if (!statements) return head + result(called["body"]);
    const last = lastOf(statements);
    const texts = statements.map((one) =>
      one === last && one.type === "ReturnStatement" && one["argument"] ? result(one["argument"]) : `${within(one)};`,
    );
    const ends = last && /^(Return|Throw)Statement$/.test(last.type);
    return `${head}${texts.join("")}${taken === "return" && !ends ? "return;" : ""}`;
  }

  /** Names of their own for all that a function declares. */
  function renamings({ start, end }: Node): Edit[] {
    const isInside = ({ uses }: Binding): boolean => uses.every((use) => use.start >= start && use.end <= end);
    return bindings.filter(isInside).flatMap(({ name, uses }) => {
      const own = `${name.replace(/\$\d+$/, "")}$${++names.given}`;
      return uses.map((use) => ({ start: use.start, end: use.end, text: `${use.prefix}${own}${use.suffix}` }));
    });
  }
}

function callOf(expression: Node): Call | undefined {
  const plain = withoutParentheses(expression);
  const isAwaited = plain.type === "AwaitExpression";
  const { type, callee, optional, arguments: given } = isAwaited ? withoutParentheses(plain["argument"]) : plain;
  if (type !== "CallExpression" || optional) return undefined;
  const called = withoutParentheses(callee);
  const { params, body, generator, id } = called;
  if (!/^(ArrowFunction|Function)Expression$/.test(called.type) || generator || id) return undefined;
  if (called.type === "FunctionExpression" && childrenOf(called).some(readsThis)) return undefined;
  const isTaken = (param: Node, i: number): boolean =>
    param.type === "Identifier" || (param.type === "ObjectPattern" && given[i] !== undefined);
  if (!params.every(isTaken) || given.length > params.length) return undefined;
  if (given.some((one: Node) => one.type === "SpreadElement")) return undefined;
  return { params, given, statements: body.type === "BlockStatement" ? body.body : undefined, called, isAwaited };
}

function withoutParentheses(node: Node): Node {
  return node.type === "ParenthesizedExpression" ? withoutParentheses(node["expression"]) : node;
}

const isFunctionDeclaration = ({ type }: Node): boolean => type === "FunctionDeclaration";

/** Functions are there wherever they stand. */
function lastOf(statements: readonly Node[]): Node | undefined {
  return statements.findLast((statement) => !isFunctionDeclaration(statement));
}

/** Whether it returns nowhere but at its end. */
function returnsAtEnd({ statements }: Call): boolean {
  const last = statements && lastOf(statements);
  return (statements ?? []).every((statement) => {
    let isSo = true;
    if (statement === last && statement.type === "ReturnStatement") return true;
    walk(statement, ({ type }) => {
      if (type === "ReturnStatement") isSo = false;
      return !/Function/.test(type);
    });
    return isSo;
  });
}

function hasResult({ statements }: Call): boolean {
  const last = statements && lastOf(statements);
  return !statements || (last?.type === "ReturnStatement" && Boolean(last["argument"]));
}
