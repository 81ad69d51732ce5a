/**
 * The reference of the configuration file, generated from its schema.
 */
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
  readonly getter?: (input: undefined) => Schema;
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
