/**
 * Makes local variables and functions of private fields and methods: a minifier shortens and inlines those, but must leave
 * `this.#` as it is.
 *
 *     class Counter { #n = 0; constructor(start) { this.#n = start; } next() { return this.#n++; } }
 *
 * becomes a function that makes such an object, and `new Counter(1)` a call of it:
 *
 *     function Counter(start) { const self = { next() { return n++; } }; let n = 0; n = start; return self; }
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
  readonly #variables = new Map<string, string>();
  readonly #functions: string[] = [];

  constructor(script: string, node: Node, number: number) {
    this.#script = script;
    this.#class = node;
    this.#number = number;
  }

  text(): string {
    let made: Node | undefined;
    for (const member of this.#class["body"].body as Node[]) {
      if (member["static"] || member["computed"]) throw this.#refused(member, "is static or computed");
      if (member["kind"] === "constructor") made = member["value"] as Node;
      else if (member.type === "PropertyDefinition") this.#field(member);
      else this.#method(member);
    }
    const name = String(this.#class["id"]?.name ?? "");
    const self = `const ${this.#self} = { ${this.#members.join(", ")} };`;
    const [parameters, statements] = made ? this.#construction(made) : ["", []];
    // Functions are hoisted; variables are set in order before the constructor's own statements, as fields are.
    const body = [self, ...this.#variables.values(), ...statements, `return ${this.#self};`, ...this.#functions].join(
      "\n",
    );
    return `function ${name}(${parameters}) {\n${body}\n}`;
  }

  get #self(): string {
    return this.#local("self");
  }

  #local(name: string): string {
    return `${name}$${this.#number}`;
  }

  /**
   * The constructor's parameters and statements, which become those of the function itself: what they name gets names that no
   * other member can mean.
   */
  #construction(made: Node): [string, string[]] {
    const { params, body } = made as unknown as { params: Node[]; body: Node };
    const own = new Set([...params, ...declaredIn(body)].flatMap(boundNames));
    walk(body, (node) => {
      if (isFunction(node)) return false;
      if (node.type === "ReturnStatement") throw this.#refused(node, "ends a constructor");
    });
    const text = (node: Node): string => edited(this.#script, this.#edits(node, own), node.start, node.end);
    let isLeading = true;
    const statements = (body["body"] as Node[]).map((statement) => {
      const field = assignedField(statement);
      // Nothing has read it yet: it may come to be here.
      const isFirst = isLeading && field !== undefined && this.#variables.get(field) === `let ${this.#local(field)};`;
      if (isFirst) this.#variables.delete(field);
      isLeading &&= !callsOwn(statement);
      return `${isFirst ? "let " : ""}${text(statement)}`;
    });
    return [params.map(text).join(", "), statements];
  }

  #field({ key, value }: Node): void {
    const initial = value ? ` = ${this.#rewritten(value)}` : "";
    if (key.type === "PrivateIdentifier") this.#variables.set(key.name, `let ${this.#local(key.name)}${initial};`);
    else if (value) this.#variables.set(`.${key.name}`, `${this.#self}.${key.name}${initial};`);
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

  /** @param own names that the constructor has for itself. */
  #edits(root: Node, own: ReadonlySet<string> = new Set()): Edit[] {
    const edits: Edit[] = [];
    const renamed = (name: string): string => `${name}_$${this.#number}`;
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
      if (node.type === "Identifier" && own.has(node["name"])) edits.push({ start, end, text: renamed(node["name"]) });
      if (node.type === "MemberExpression" && !node["computed"]) {
        edits.push(...this.#edits(node["object"], own));
        return false;
      }
      if (node.type === "Property" && !node["computed"]) {
        const { key, shorthand, value } = node;
        // A shorthand property is key and value at once.
        if (shorthand && own.has(key.name))
          edits.push({ start: key.start, end: key.end, text: `${key.name}: ${renamed(key.name)}` });
        const rest = !shorthand ? value : value.type === "AssignmentPattern" ? value.right : undefined;
        if (rest) edits.push(...this.#edits(rest, own));
        return false;
      }
    });
    return edits;
  }

  #refused({ start, end }: Node, problem: string): Error {
    return new Error(`${this.#script.slice(start, end)} ${problem}: private members cannot become local variables`);
  }
}

function isFunction({ type }: Node): boolean {
  return type === "FunctionExpression" || type === "FunctionDeclaration" || type === "ArrowFunctionExpression";
}

/** What the statements of a block declare, as patterns. */
function declaredIn(block: Node): Node[] {
  return (block["body"] as Node[]).flatMap((statement) => {
    if (statement.type === "VariableDeclaration")
      return (statement["declarations"] as Node[]).map(({ id }) => id as Node);
    return statement.type.endsWith("Declaration") ? [statement["id"] as Node] : [];
  });
}

/** The names that a pattern binds. */
function boundNames(pattern: Node): string[] {
  if (pattern.type === "Identifier") return [pattern["name"]];
  if (pattern.type === "AssignmentPattern") return boundNames(pattern["left"]);
  if (pattern.type === "Property") return boundNames(pattern["value"]);
  return childrenOf(pattern).flatMap(boundNames);
}

/** The private field that a statement does nothing else than set. */
function assignedField({ expression }: Node): string | undefined {
  if (expression?.type !== "AssignmentExpression" || expression.operator !== "=") return undefined;
  const { object, property } = expression.left;
  return object?.type === "ThisExpression" && property.type === "PrivateIdentifier" ? property.name : undefined;
}

/** Whether a statement calls a method, which may read a field. */
function callsOwn(statement: Node): boolean {
  let calls = false;
  walk(statement, ({ type, callee }) => {
    calls ||= type === "CallExpression" && callee.object?.type === "ThisExpression";
  });
  return calls;
}
