/** Which name means which variable: the bindings of a script, where each is used, and which may not share a name. */
import { childrenOf, parse, type Node } from "./syntax-tree.ts";

/** A place where a variable stands, declared or used. */
export interface Use {
  readonly start: number;
  readonly end: number;
  /** What has to stay before or after another name: the key of `{ key }`, the name of `export { local as name }`. */
  readonly prefix: string;
  readonly suffix: string;
}

export interface Binding {
  name: string;
  /** In the order of the script. */
  readonly uses: Use[];
  /** Those that it must not have the name of, because one would hide the other. */
  readonly rivals: Set<Binding>;
  /** Nor any of these: names from outside that are used where it is known. */
  readonly globals: ReadonlySet<string>;
}

/**
 * The bindings of a script, in the order of their declaration.
 *
 * @throws where a function is declared in a block, which only strict scripts keep in there.
 */
export function bindingsOf(script: string): Binding[] {
  const scopes: Scope[] = [];
  const found: { readonly use: Use; readonly name: string; readonly scope: Scope }[] = [];
  visit(parse(script), new Scope(undefined, true, scopes));
  for (const { use, name, scope } of found) resolve(use, name, scope);
  for (const scope of scopes) {
    const own = [...scope.declared.values()];
    for (const binding of own)
      for (const other of [...own, ...scope.captured]) if (other !== binding) makeRivals(binding, other);
  }
  return scopes.flatMap(({ declared }) => [...declared.values()]);

  function resolve(use: Use, name: string, from: Scope): void {
    const passed: Scope[] = [];
    let scope: Scope | undefined = from;
    for (; scope && !scope.declared.has(name); scope = scope.parent) passed.push(scope);
    const binding = scope?.declared.get(name);
    binding?.uses.push(use);
    for (const { captured, globals } of passed) {
      if (binding) captured.add(binding);
      else globals.add(name);
    }
  }

  function mention({ start, end, name }: Node, scope: Scope, prefix = "", suffix = ""): void {
    found.push({ use: { start, end, prefix, suffix }, name, scope });
  }

  function visit(node: Node, scope: Scope): void {
    const { type } = node;
    if (type === "Identifier") return mention(node, scope);
    if (type === "MetaProperty") return;
    if (type === "MemberExpression") return visitAll([node["object"], node["computed"] && node["property"]], scope);
    if (type === "Property") return visitProperty(node, scope);
    if (type === "MethodDefinition" || type === "PropertyDefinition")
      return visitAll([node["computed"] && node["key"], node["value"]], scope);
    if (type === "ExportSpecifier") {
      const { local, exported } = node;
      return mention(local, scope, "", local.start === exported.start ? ` as ${exported.name}` : "");
    }
    const { id, body } = node;
    // The name of a declared function is of the scope around it.
    if (type === "FunctionDeclaration" && id) mention(id, scope);
    const below = childrenOf(node).flatMap((child) => {
      if (type === "FunctionDeclaration" && child === id) return [];
      // The block is the scope of the function or the catch clause itself.
      const isItself =
        child === body && child.type === "BlockStatement" && (isFunction(node) || type === "CatchClause");
      return isItself ? (child["body"] as Node[]) : [child];
    });
    visitAll(below, opened(node, scope));
  }

  function visitAll(nodes: (Node | false | null | undefined)[], scope: Scope): void {
    for (const node of nodes) if (node) visit(node, scope);
  }

  function visitProperty({ key, value, shorthand, computed }: Node, scope: Scope): void {
    if (!shorthand) return visitAll([computed && key, value], scope);
    const isDefaulted = value.type === "AssignmentPattern";
    mention(isDefaulted ? value.left : value, scope, `${key.name}:`);
    if (isDefaulted) visit(value.right, scope);
  }

  /** The scope of what is below a node, with what is declared there. */
  function opened(node: Node, outer: Scope): Scope {
    const { type, id, params, body, init, left, param } = node;
    if (isFunction(node)) {
      if (type === "FunctionExpression" && id) outer = new Scope(outer, false, scopes).declare(id);
      const scope = new Scope(outer, true, scopes);
      for (const parameter of params as Node[]) scope.declare(parameter);
      // One scope for parameters and body: they may not share names where they might.
      if (body.type === "BlockStatement") scope.declareAll(body.body);
      return scope;
    }
    if (type === "Program") return outer.declareAll(body);
    if (type === "BlockStatement") return new Scope(outer, false, scopes).declareAll(body);
    if (type === "SwitchStatement")
      return new Scope(outer, false, scopes).declareAll(node["cases"].flatMap((one: Node) => one["consequent"]));
    if (type.startsWith("For")) return new Scope(outer, false, scopes).declareAll([init ?? left]);
    if (type === "CatchClause") {
      const scope = new Scope(outer, false, scopes).declareAll(body.body);
      return param ? scope.declare(param) : scope;
    }
    if (type === "ClassExpression" && id) return new Scope(outer, false, scopes).declare(id);
    return outer;
  }
}

function isFunction({ type }: Node): boolean {
  return /^(Arrow)?Function/.test(type);
}

function makeRivals(one: Binding, other: Binding): void {
  one.rivals.add(other);
  other.rivals.add(one);
}

class Scope {
  readonly declared = new Map<string, Binding>();
  /** What is declared outside and used in here. */
  readonly captured = new Set<Binding>();
  readonly globals = new Set<string>();
  readonly parent: Scope | undefined;
  readonly #holdsVars: boolean;

  /** @param holdsVars whether it is that of a function or of the script, which `var` declares in. */
  constructor(parent: Scope | undefined, holdsVars: boolean, all: Scope[]) {
    this.parent = parent;
    this.#holdsVars = holdsVars;
    all.push(this);
  }

  get #ofVars(): Scope {
    return this.#holdsVars ? this : this.parent!.#ofVars;
  }

  /** Declares what a pattern binds. */
  declare(pattern: Node): this {
    if (pattern.type === "Identifier") {
      const { name } = pattern;
      if (!this.declared.has(name))
        this.declared.set(name, { name, uses: [], rivals: new Set(), globals: this.globals });
    } else {
      // A default is no part of the pattern, and a key is none either.
      const { type, left, value } = pattern;
      const parts = type === "AssignmentPattern" ? [left] : type === "Property" ? [value] : childrenOf(pattern);
      for (const part of parts as Node[]) this.declare(part);
    }
    return this;
  }

  /** Declares what statements declare in the scope that they stand in. */
  declareAll(statements: readonly (Node | null)[]): this {
    for (const statement of statements) {
      const { type, id, kind, declarations } = (statement?.["declaration"] ?? statement ?? { type: "" }) as Node;
      if (type === "FunctionDeclaration" && !this.#holdsVars) throw new Error(`${id.name} is declared in a block`);
      if (type === "FunctionDeclaration" || type === "ClassDeclaration") this.declare(id);
      if (type !== "VariableDeclaration") continue;
      const scope = kind === "var" ? this.#ofVars : this;
      for (const declaration of declarations as Node[]) scope.declare(declaration["id"]);
    }
    return this;
  }
}
