/**
 * Makes local variables and functions of private fields and methods: a minifier shortens and inlines those, but must leave
 * `this.#` as it is.
 *
 *     class Counter { #n = 0; constructor(start) { this.#n = start; } next() { return this.#n++; } }
 *
 * becomes a function that makes such an object, and `new Counter(1)` a call of it:
 *
 *     function Counter(a) { const self = { next() { return n++; } }; let n = 0; init(a); return self;
 *                           function init(start) { n = start; } }
 *
 * Only classes as they are written here: what would not mean the same afterwards is refused.
 */
import { childrenOf, edited, parse, walk, type Edit, type Node } from "./syntax-tree.ts";

/** @throws on a class that cannot be rewritten: static or private accessors, private access to another instance. */
export function privateLocals(script: string): string {
  const names = new Set(classesIn(parse(script)).map(({ name }) => name));
  const calling = edited(script, callsInsteadOfNew(script, names));
  const edits = classesIn(parse(calling)).map(({ node }, i) => ({
    start: node.start,
    end: node.end,
    text: new Rewriting(calling, node, i).text(),
  }));
  return edited(calling, edits);
}

/** The classes that extend no other, with the names that they are called by. */
function classesIn(program: Node): { readonly node: Node; readonly name: string }[] {
  const found = new Map<Node, string>();
  walk(program, (node) => {
    const made = node.type === "VariableDeclarator" ? (node["init"] as Node | null) : node;
    if (!made || !isClass(made) || made["superClass"] || found.has(made)) return;
    found.set(made, String(node["id"]?.name ?? ""));
  });
  return [...found].map(([node, name]) => ({ node, name }));
}

/** A minifier may make an arrow function of a function, which cannot be called with `new`. */
function callsInsteadOfNew(script: string, names: ReadonlySet<string>): Edit[] {
  const edits: Edit[] = [];
  walk(parse(script), (node) => {
    const { type, start, callee, operator, right } = node;
    if (type === "NewExpression" && names.has(callee.name)) edits.push({ start, end: callee.start, text: "" });
    if (type === "BinaryExpression" && operator === "instanceof" && names.has(right.name))
      throw new Error(`instances of ${right.name} are no longer known as such`);
  });
  return edits;
}

function isClass({ type }: Node): boolean {
  return type === "ClassExpression" || type === "ClassDeclaration";
}

class Rewriting {
  readonly #script: string;
  readonly #class: Node;
  readonly #number: number;
  /** The object's public side, its variables, and its functions, as text. */
  readonly #members: string[] = [];
  readonly #variables: string[] = [];
  readonly #functions: string[] = [];

  constructor(script: string, node: Node, number: number) {
    this.#script = script;
    this.#class = node;
    this.#number = number;
  }

  text(): string {
    let parameters = "";
    for (const member of this.#class["body"].body as Node[]) {
      if (member["static"] || member["computed"]) throw this.#refused(member, "is static or computed");
      if (member["kind"] === "constructor") parameters = this.#parameters(member["value"]);
      else if (member.type === "PropertyDefinition") this.#field(member);
      else this.#method(member);
    }
    const name = String(this.#class["id"]?.name ?? "");
    const self = `const ${this.#self} = { ${this.#members.join(", ")} };`;
    // Functions are hoisted; variables are set in order before the constructor runs, as fields are.
    const init = parameters === "" ? "" : `${this.#local("init")}(${parameters});`;
    const body = [self, ...this.#variables, init, `return ${this.#self};`, ...this.#functions].join("\n");
    return `function ${name}(${parameters}) {\n${body}\n}`;
  }

  get #self(): string {
    return this.#local("self");
  }

  #local(name: string): string {
    return `${name}$${this.#number}`;
  }

  /** Names as many parameters as the constructor has, and makes that a function of its own: its names are its own. */
  #parameters(value: Node): string {
    this.#functions.push(`function ${this.#local("init")}${this.#signatureAndBody(value)}`);
    const names = (value["params"] as Node[]).map(({ type }, i) => {
      const name = this.#local(`parameter${i}_`);
      return type === "RestElement" ? `...${name}` : name;
    });
    return names.join(", ");
  }

  #field({ key, value }: Node): void {
    const initial = value ? ` = ${this.#rewritten(value)}` : "";
    if (key.type === "PrivateIdentifier") this.#variables.push(`let ${this.#local(key.name)}${initial};`);
    else if (value) this.#variables.push(`${this.#self}.${key.name}${initial};`);
  }

  #method(member: Node): void {
    const { key, kind, value } = member;
    const isPrivate = key.type === "PrivateIdentifier";
    if (isPrivate && kind !== "method") throw this.#refused(member, "is a private accessor");
    const rest = this.#signatureAndBody(value);
    const [async, star] = [value.async ? "async " : "", value.generator ? "*" : ""];
    if (isPrivate) this.#functions.push(`${async}function${star} ${this.#local(key.name)}${rest}`);
    else this.#members.push(`${kind === "method" ? `${async}${star}` : `${kind} `}${key.name}${rest}`);
  }

  /** `(parameters) { … }` of a function. */
  #signatureAndBody(value: Node): string {
    const text = edited(
      this.#script,
      childrenOf(value).flatMap((child) => this.#edits(child)),
      value.start,
      value.end,
    );
    return text.slice(text.indexOf("("));
  }

  #rewritten(node: Node): string {
    return edited(this.#script, this.#edits(node), node.start, node.end);
  }

  #edits(root: Node): Edit[] {
    const edits: Edit[] = [];
    walk(root, (node) => {
      const { start, end } = node;
      if (node.type === "FunctionExpression" || node.type === "FunctionDeclaration") {
        walk(node, (inner) => {
          if (inner.type === "ThisExpression") throw this.#refused(inner, "is the `this` of an inner function");
        });
        return false;
      }
      if (node["property"]?.type === "PrivateIdentifier") {
        if (node["object"].type !== "ThisExpression") throw this.#refused(node, "is private to another instance");
        edits.push({ start, end, text: this.#local(node["property"].name) });
        return false;
      }
      if (node.type === "ThisExpression") edits.push({ start, end, text: this.#self });
      // A shorthand property is key and value at once.
      if (node.type === "Property" && node["shorthand"]) return false;
    });
    return edits;
  }

  #refused({ start, end }: Node, problem: string): Error {
    return new Error(`${this.#script.slice(start, end)} ${problem}: private members cannot become local variables`);
  }
}
