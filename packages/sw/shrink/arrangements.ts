/**
 * What may stand in another order in a script: function declarations among statements, properties of a literal, what a pattern
 * takes, variables of one declaration, the two sides of a comparison; what may be one statement or several, and what may have
 * another form (`other-forms.ts`).
 */
import { otherForms } from "./other-forms.ts";
import { isConstant, isFunction, isPure, isPureProperty } from "./purity.ts";
import { walk, type Node } from "./syntax-tree.ts";

export interface Arrangement {
  readonly start: number;
  readonly end: number;
  /** In the order of the script. */
  readonly items: readonly { readonly start: number; readonly end: number }[];
  /** How many ways there are to join the items in the same order, if more than one. */
  readonly ways?: number;
  /** The text of items that stand in this order, joined in one of these ways. */
  join(order: readonly number[], textOf: (item: number) => string, way: number): string;
  /** Whether an item may not be moved, but only be passed by others. */
  isFixed(item: number): boolean;
}

export function arrangementsOf(script: string, tree: Node): Arrangement[] {
  const found: Arrangement[] = [];
  const negated = new Set<Node>();
  walk(tree, (node) => {
    const { type } = node;
    if (type === "Program" || type === "BlockStatement") {
      found.push(...bodyOf(script, node));
      for (const statement of node["body"]) found.push(...sequenceOf(script, statement));
    }
    if (type === "ObjectExpression") found.push(...runs(node["properties"], isPureProperty));
    if (type === "ObjectPattern") found.push(...runs(node["properties"], isPureTaking));
    if (type === "VariableDeclaration") found.push(...runs(node["declarations"], isPureDeclarator(node)));
    if (type === "ConditionalExpression") {
      const choice = choiceOf(script, node);
      found.push(...choice);
      if (choice.length > 0) negated.add(node["test"]);
    }
    if (type === "BinaryExpression" && !negated.has(node)) found.push(...comparisonOf(script, node));
    found.push(...otherForms(script, node));
  });
  return found;
}

const never = (): boolean => false;

/** Lists with commas between their items, which are as many neighbours as possible that may change places. */
function runs(nodes: readonly Node[], mayMove: (node: Node) => boolean): Arrangement[] {
  const found: Arrangement[] = [];
  let run: Node[] = [];
  for (const node of [...nodes, undefined]) {
    if (node && mayMove(node)) run.push(node);
    else {
      if (run.length > 1) found.push(list(run));
      run = [];
    }
  }
  return found;
}

function list(items: readonly Node[]): Arrangement {
  const join: Arrangement["join"] = (order, textOf) => order.map(textOf).join(",");
  return { start: items[0]!.start, end: items.at(-1)!.end, items, join, isFixed: never };
}

/** Functions are there before the first statement runs, so they may stand anywhere. */
function bodyOf(script: string, { body }: Node): Arrangement[] {
  const statements = body as Node[];
  const functions = statements.filter(({ type }) => type === "FunctionDeclaration");
  if (functions.length === 0 || statements.length < 2 || statements.some(({ directive }) => directive)) return [];
  const isTerminated = statements.map(needsSemicolon);
  const items = statements.map(({ start, end }, i) => ({
    start,
    end: isTerminated[i] && script[end - 1] === ";" ? end - 1 : end,
  }));
  // Nothing is after the last semicolon.
  const join: Arrangement["join"] = (order, textOf) =>
    order.map((item, i) => `${textOf(item)}${isTerminated[item] && i < order.length - 1 ? ";" : ""}`).join("");
  return [
    {
      start: statements[0]!.start,
      end: items.at(-1)!.end,
      items,
      join,
      isFixed: (item) => statements[item]!.type !== "FunctionDeclaration",
    },
  ];
}

/** `a, b` and `return a, b` may be two statements where there may be two. */
function sequenceOf(script: string, { type, start, expression, argument }: Node): Arrangement[] {
  const sequence: Node | undefined = expression ?? argument;
  if (sequence?.type !== "SequenceExpression" || !/^(Expression|Return|Throw)Statement$/.test(type)) return [];
  const items = sequence["expressions"] as Node[];
  const keyword = type === "ExpressionStatement" ? "" : type.slice(0, -"Statement".length).toLowerCase();
  const isPlain = script.slice(start, items[0]!.start).trim() === keyword && sequence.end === items.at(-1)!.end;
  const startsStatement = items.some(({ start: at }) =>
    /^(\{|function|class|async|let)/.test(script.slice(at, at + 8)),
  );
  const areParted = items.some(({ start: at }, i) => i > 0 && script.slice(items[i - 1]!.end, at) !== ",");
  if (!isPlain || startsStatement || areParted) return [];
  const last = items.length - 1;
  return [
    {
      start,
      end: sequence.end,
      items,
      // With a keyword: after how many of the items it stands. Else a bit for each comma.
      ways: keyword === "" ? 2 ** last : items.length,
      isFixed: () => true,
      join(_order, textOf, way) {
        if (keyword === "") return items.map((_, i) => (i > 0 ? ",;"[(way >> (i - 1)) & 1] : "") + textOf(i)).join("");
        const whole = items
          .slice(way)
          .map((_, i) => textOf(way + i))
          .join(",");
        const parted = items.slice(0, way).map((_, i) => `${textOf(i)};`);
        return `${parted.join("")}${keyword}${/^[\w$]/.test(whole) ? " " : ""}${whole}`;
      },
    },
  ];
}

/** Whether a semicolon has to part a statement from the next one. */
function needsSemicolon({ type, body, alternate, consequent }: Node): boolean {
  if (type === "IfStatement") return needsSemicolon(alternate ?? consequent);
  if (/^(For|While|Labeled)/.test(type)) return needsSemicolon(body);
  return !/^(Block|Try|Switch|Empty)Statement$|^(Function|Class)Declaration$/.test(type);
}

/** Of a pattern: its default may need what stands before it. */
function isPureTaking({ type, computed, value }: Node): boolean {
  if (type !== "Property" || computed) return false;
  return value.type === "Identifier" || (value.type === "AssignmentPattern" && isConstant(value.right));
}

function isPureDeclarator({ declarations }: Node): (declarator: Node) => boolean {
  const names = new Set<string>(declarations.map(({ id }: Node) => id.name));
  return ({ id, init }) => id.type === "Identifier" && (!init || (isPure(init) && !uses(init, names)));
}

/** Whether an expression, once evaluated, has read one of these variables. */
function uses(expression: Node, names: ReadonlySet<string>): boolean {
  let found = false;
  walk(expression, (node) => {
    if (node.type === "Identifier" && names.has(node["name"])) found = true;
    return !isFunction(node);
  });
  return found;
}

const MIRRORED: Readonly<Record<string, string>> = {
  "===": "===",
  "!==": "!==",
  "==": "==",
  "!=": "!=",
  "<": ">",
  ">": "<",
  "<=": ">=",
  ">=": "<=",
};

function comparisonOf(script: string, node: Node): Arrangement[] {
  const { left, right, operator, start, end } = node;
  const mirrored = MIRRORED[operator];
  if (!mirrored || script.slice(left.end, right.start) !== operator) return [];
  if (!isOperand(left) || !isOperand(right) || left.start !== start || right.end !== end) return [];
  if (!isConstant(left) && !isConstant(right) && !(isPure(left) && isPure(right))) return [];
  const join: Arrangement["join"] = ([first, second], textOf) =>
    `${textOf(first!)}${first === 0 ? operator : mirrored}${textOf(second!)}`;
  return [{ start, end, items: [left, right], join, isFixed: never }];
}

const NEGATED: Readonly<Record<string, string>> = { "===": "!==", "!==": "===", "==": "!=", "!=": "==" };

/** `a === b ? c : d` is `a !== b ? d : c`. */
function choiceOf(script: string, { test, consequent, alternate, start, end }: Node): Arrangement[] {
  const negated = NEGATED[test.operator];
  const [comparison] = negated ? comparisonOf(script, test) : [];
  const gap = (before: Node, after: Node): string => script.slice(before.end, after.start);
  if (!comparison || gap(test, consequent) !== "?" || gap(consequent, alternate) !== ":" || test.start !== start)
    return [];
  const items = [...comparison.items, consequent, alternate];
  return [
    {
      start,
      end,
      items,
      ways: 4,
      isFixed: never,
      join(_order, textOf, way) {
        const [left, right] = way & 1 ? [1, 0] : [0, 1];
        const [then, other] = way & 2 ? [3, 2] : [2, 3];
        return `${textOf(left)}${way & 2 ? negated : test.operator}${textOf(right)}?${textOf(then)}:${textOf(other)}`;
      },
    },
  ];
}

/** Whether an expression binds tighter than comparisons do and may begin a statement. */
function isOperand({ type, operator, object, callee, left, argument }: Node): boolean {
  if (/^(Identifier|Literal|TemplateLiteral)$/.test(type)) return true;
  if (type === "MemberExpression") return isOperand(object);
  if (type === "CallExpression") return isOperand(callee);
  if (type === "UnaryExpression") return isOperand(argument);
  return type === "BinaryExpression" && /^[%*/+-]$/.test(operator) && isOperand(left);
}
