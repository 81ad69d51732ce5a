/**
 * Variables of the Worker (wrangler.toml) as valibot schemas. Each room declares and checks its own variables with
 * these constructors; the declarations also carry what the reference page prints.
 */
import { AgaroseError } from "@agarose/core";
import * as v from "valibot";

/** One variable: how to check its text, and what a reader of the reference must know. */
export interface Variable<T = unknown> {
  /** Checks the text and returns the setting. */
  readonly schema: v.GenericSchema<string | undefined, T>;
  /** One sentence. */
  readonly description: string;
  /** The type in words, with bounds. */
  readonly type: string;
  /** The default as it is written in wrangler.toml. Undefined: the variable is required, or unset by default. */
  readonly default?: string | undefined;
  readonly required?: boolean;
  /** Whether it is set by `wrangler secret put` and its value never appears in a message. */
  readonly secret?: boolean;
}

/** Variables by name. */
export type Variables = Readonly<Record<string, Variable>>;

/** The setting of MEMORY_BYTES is `memoryBytes`. */
type SettingName<N> = N extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<SettingName<Rest>>}`
  : Lowercase<N & string>;

/** The settings that a group of variables checks to. Their descriptions are those of the variables. */
export type Parsed<V extends Variables> = {
  readonly [K in keyof V as SettingName<K>]: V[K] extends Variable<infer T> ? T : never;
};

/** Checks the variables of `env`. Throws CONFIG_INVALID, which names the first wrong variable and what it expects. */
export function parseVariables<V extends Variables>(variables: V, env: object): Parsed<V> {
  const texts = env as Readonly<Record<string, string | undefined>>;
  const entries = Object.entries(variables).map(([name, variable]) => {
    const result = v.safeParse(variable.schema, texts[name]);
    if (result.success)
      return [name.toLowerCase().replace(/_(.)/g, (_, letter) => letter.toUpperCase()), result.output];
    const [issue] = result.issues;
    const kind = variable.secret ? "secret" : "variable";
    throw new AgaroseError("CONFIG_INVALID", `${kind} ${name} ${problemOf(issue)} (wrangler.toml)`, { variable: name });
  });
  return Object.fromEntries(entries) as Parsed<V>;
}

/** A text of at least one character. */
export function requiredText(description: string): Variable<string> {
  const schema = v.pipe(v.optional(v.string(), ""), v.nonEmpty("is not set"));
  return { schema, description, type: "text", required: true };
}

/** A whole number from 0 to `max`. */
export function wholeNumber(description: string, fallback: number, max: number): Variable<number> {
  const message = ({ input }: { input: unknown }): string =>
    `is ${JSON.stringify(input)}: a whole number from 0 to ${max} is expected`;
  const schema = v.pipe(
    v.optional(v.string(), String(fallback)),
    v.regex(/^\d+$/, message),
    v.check((text) => Number(text) <= max, message),
    v.transform(Number),
  );
  return { schema, description, type: `whole number, 0 to ${max}`, default: String(fallback) };
}

/** US dollars; an empty text has the default. An infinite default prints as an empty text. */
export function amount(description: string, fallback: number): Variable<number> {
  const schema = v.pipe(
    v.optional(v.string(), ""),
    v.check(
      (text) => text === "" || (/^\d+(\.\d+)?$/.test(text) && Number.isFinite(Number(text))),
      ({ input }) => `is ${JSON.stringify(input)}: an amount such as 5 or 0.005 is expected`,
    ),
    v.transform((text) => (text === "" ? fallback : Number(text))),
  );
  return { schema, description, type: "US dollars", default: Number.isFinite(fallback) ? String(fallback) : "" };
}

/** One of `choices`. */
export function choice<T extends string>(description: string, choices: readonly T[], fallback: T): Variable<T> {
  const schema = v.optional(
    v.picklist(choices, ({ input }) => `is ${JSON.stringify(input)}: ${choices.join(", ")} are known`),
    () => fallback,
  ) as v.GenericSchema<string | undefined, T>;
  return { schema, description, type: `one of ${choices.join(", ")}`, default: fallback };
}

/** "true" or "false". */
export function flag(description: string, fallback: boolean): Variable<boolean> {
  const schema = v.pipe(
    v.optional(v.string(), String(fallback)),
    v.picklist(["true", "false"], ({ input }) => `is ${JSON.stringify(input)}: "true" or "false" is expected`),
    v.transform((text) => text === "true"),
  );
  return { schema, description, type: '"true" or "false"', default: String(fallback) };
}

/** Shorter secrets can be guessed. */
const SECRET_LENGTH_MIN = 16;

/** A secret of at least 16 characters, or undefined while it is empty or not set. */
export function secret(description: string): Variable<string | undefined> {
  const schema = v.pipe(
    v.optional(v.string(), ""),
    v.check(
      (text) => text === "" || text.length >= SECRET_LENGTH_MIN,
      ({ input }) => `has ${String(input).length} characters: at least ${SECRET_LENGTH_MIN} are expected`,
    ),
    v.transform((text) => text || undefined),
  );
  return { schema, description, type: `secret, at least ${SECRET_LENGTH_MIN} characters`, secret: true };
}

/** JSON that `schema` checks; an empty text has the default. */
export function json<T>(
  description: string,
  type: string,
  schema: v.GenericSchema<unknown, T>,
  options: { readonly fallback?: string; readonly secret?: boolean } = {},
): Variable<T> {
  const { fallback } = options;
  const text = v.pipe(
    v.optional(v.string(), fallback ?? ""),
    v.transform((given) => (given === "" && fallback !== undefined ? fallback : given)),
    v.parseJson(undefined, "is not JSON"),
    schema,
  );
  return {
    schema: text as v.GenericSchema<string | undefined, T>,
    description,
    type,
    ...(fallback === undefined ? { required: true } : { default: fallback }),
    ...(options.secret ? { secret: true } : {}),
  };
}

/** Checks that JSON from outside has the form of `schema`; returns undefined where it does not. */
export function parseJson<T>(schema: v.GenericSchema<unknown, T>, text: string): T | undefined {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), text);
  return result.success ? result.output : undefined;
}

/** Says in words what is wrong: valibot's own messages are for programmers. The value itself is omitted. */
export function problemOf(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue);
  const field = path === null ? "" : `has \`${path}\` that `;
  if (issue.kind !== "schema" || issue.type === "picklist" || issue.type === "custom")
    return `${field}${issue.message}`;
  if (issue.received === "undefined") return path === null ? "is missing" : `has no \`${path}\``;
  return `${field}must be of type ${issue.type.replace("strict_", "")}, and is ${issue.received}`;
}
