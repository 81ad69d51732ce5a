/** The reference of the configuration file, and its JSON Schema, generated from the schema that checks it. */
import * as v from "valibot";
import { configSchema } from "./config-schema.ts";

/** One field: its path (`[]` for a list's items, `*` for any name), type, default as JSON, and description. */
export interface ConfigField {
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  /** Undefined for a field without a default. */
  readonly default: string | undefined;
  readonly description: string;
}

/** The part of valibot's schemas that is read here. */
interface Schema {
  readonly type: string;
  readonly entries?: Readonly<Record<string, Schema>>;
  readonly item?: Schema;
  readonly value?: Schema;
  readonly wrapped?: Schema;
  readonly default?: unknown;
  /** Of a schema that depends on its input: any input that is no literal gives the one with fields. */
  readonly getter?: (input: unknown) => Schema;
  readonly options?: readonly string[];
  readonly literal?: string;
  /** The schema itself, and what else holds of a value. */
  readonly pipe?: readonly Rule[];
}

interface Rule {
  readonly type: string;
  readonly requirement?: unknown;
  readonly pipe?: readonly Rule[];
}

/** Every field of `agarose.config.json`, parents before their fields. Fields of a part used twice are listed once. */
export function configFields(): ConfigField[] {
  return fieldsOf(configSchema as unknown as Schema, "", new Map());
}

/** The fields as a Markdown table. */
export function configReference(): string {
  const rows = configFields().map(({ path, type, isRequired, default: value, description }) => {
    const fallback = isRequired ? "required" : value === undefined ? "" : `\`${value}\``;
    return `| \`${path}\` | ${type} | ${fallback} | ${description.replaceAll("|", "\\|")} |`;
  });
  return ["| field | type | default | meaning |", "| --- | --- | --- | --- |", ...rows, ""].join("\n");
}

/** The file as a JSON Schema of draft 7, by which editors complete and check it. */
export function configJsonSchema(): object {
  const $schema = "http://json-schema.org/draft-07/schema#";
  return { $schema, title: "agarose.config.json", ...jsonSchemaOf(configSchema as unknown as Schema) };
}

/** What JSON Schema calls a rule of ours. Others, such as that two fields belong together, it does not know. */
const KEYWORDS: Readonly<Record<string, string>> = {
  min_value: "minimum",
  max_value: "maximum",
  min_length: "minLength",
  max_length: "maxLength",
  regex: "pattern",
};

function jsonSchemaOf({ wrapped, ...schema }: Schema): object {
  if (wrapped) return { ...jsonSchemaOf(wrapped), ...(schema.default !== undefined && { default: schema.default }) };
  const description = v.getDescription(schema as never);
  const rules = rulesOf(schema).flatMap(({ type, requirement }) => {
    const keyword = schema.item && KEYWORDS[type] ? KEYWORDS[type].replace("Length", "Items") : KEYWORDS[type];
    return keyword ? [[keyword, requirement instanceof RegExp ? requirement.source : requirement]] : [];
  });
  return { ...(description && { description }), ...typeInJson(schema), ...Object.fromEntries(rules) };
}

/** Pipes may begin with pipes. */
function rulesOf({ pipe = [] }: Pick<Rule, "pipe">): Rule[] {
  return pipe.flatMap((rule) => (rule.pipe ? rulesOf(rule) : [rule]));
}

function typeInJson(schema: Schema): object {
  const { type, entries, item, value, getter, options, literal } = schema;
  // It depends on whether the input is this literal.
  if (getter) return { anyOf: [getter("auto"), getter(undefined)].map(jsonSchemaOf) };
  if (literal !== undefined) return { const: literal };
  if (options) return { enum: options };
  if (item) return { type: "array", items: jsonSchemaOf(item) };
  if (value) return { type: "object", additionalProperties: jsonSchemaOf(value) };
  if (!entries) return { type: rulesOf(schema).some((rule) => rule.type === "integer") ? "integer" : type };
  const fields = Object.entries(entries);
  return {
    type: "object",
    properties: Object.fromEntries(fields.map(([name, field]) => [name, jsonSchemaOf(field)])),
    required: fields.filter(([, { wrapped }]) => !wrapped).map(([name]) => name),
    additionalProperties: false,
  };
}

function fieldsOf(schema: Schema, path: string, pathOf: Map<unknown, string>): ConfigField[] {
  const below = (name: string): string => (path === "" ? name : `${path}.${name}`);
  if (schema.entries) {
    return Object.entries(schema.entries).flatMap(([name, field]) => {
      const outer = field.wrapped ?? field;
      const inner = outer.getter ? { ...outer, ...outer.getter(undefined), type: outer.type } : outer;
      const isRequired = field.wrapped === undefined;
      const listedAt = inner.entries && pathOf.get(inner.entries);
      if (inner.entries && listedAt === undefined) pathOf.set(inner.entries, below(name));
      const description = v.getDescription(outer as never) ?? "";
      const described: ConfigField = {
        path: below(name),
        type: typeOf(outer),
        isRequired,
        default: field.default === undefined ? undefined : JSON.stringify(field.default),
        description: listedAt === undefined ? description : `${description} Fields: those of \`${listedAt}\`.`,
      };
      return listedAt === undefined ? [described, ...fieldsOf(inner, below(name), pathOf)] : [described];
    });
  }
  if (schema.item?.entries) return fieldsOf(schema.item, `${path}[]`, pathOf);
  if (schema.value?.entries) return fieldsOf(schema.value, below("*"), pathOf);
  return [];
}

function typeOf(schema: Schema): string {
  const titled = v.getTitle(schema as never);
  if (titled !== undefined) return titled;
  if (schema.item) return `list of ${schema.item.entries ? "objects" : `${typeOf(schema.item)}s`}`;
  return { strict_object: "object", record: "object" }[schema.type] ?? schema.type;
}
