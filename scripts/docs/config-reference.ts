/** The JSON Schema of the configuration file, and its reference, both from the schema that checks the file. */
import { configSchema } from "@agarose/storage/config/config-schema";
import { toJsonSchema, type JsonSchema } from "@valibot/to-json-schema";
import type { GenericSchema, LazySchema } from "valibot";
import { code, table } from "./table.ts";

/** The file as a JSON Schema of draft 7, by which editors complete and check it. */
export function configJsonSchema(): JsonSchema {
  return { ...jsonSchemaOf(configSchema), title: "agarose.config.json" };
}

/** Rules that JSON Schema cannot express, such as that two fields belong together, are omitted. */
function jsonSchemaOf(schema: GenericSchema): JsonSchema {
  const { $defs: _, ...converted } = toJsonSchema(schema, {
    errorMode: "ignore",
    overrideSchema({ valibotSchema }) {
      if (valibotSchema.type !== "lazy") return undefined;
      // It depends on whether the input is this literal.
      const { getter } = valibotSchema as LazySchema<GenericSchema>;
      const { $schema: _draft, ...other } = jsonSchemaOf(getter(undefined));
      return { anyOf: [{ const: "auto" }, other] };
    },
  });
  return converted;
}

/** Every field as a Markdown table, parents before their fields. Fields of a part used twice are listed once. */
export function configReference(): string {
  return table(["field", "type", "default", "meaning"], rowsOf(configJsonSchema(), "", new Map()));
}

/** The rows below a path, in which `[]` is a list's items and `*` any name. */
function rowsOf(schema: JsonSchema, path: string, seen: Map<string, string>): string[][] {
  const { items, additionalProperties, properties = {}, required = [] } = fieldsOf(schema);
  if (items) return rowsOf(items as JsonSchema, `${path}[]`, seen);
  if (additionalProperties) return rowsOf(additionalProperties as JsonSchema, `${path}.*`, seen);
  return Object.entries(properties as Record<string, JsonSchema>).flatMap(([name, field]) => {
    const own = path === "" ? name : `${path}.${name}`;
    const shape = JSON.stringify(fieldsOf(field).properties);
    const listedAt = shape && seen.get(shape);
    if (shape && !listedAt) seen.set(shape, own);
    const fallback = field.default === undefined ? "" : code(JSON.stringify(field.default));
    const meaning = listedAt ? `${field.description} Fields: those of ${code(listedAt)}.` : field.description!;
    const row = [code(own), typeOf(field), required.includes(name) ? "required" : fallback, meaning];
    return listedAt ? [row] : [row, ...rowsOf(field, own, seen)];
  });
}

/** Of an alternative to a literal, the fields are of the second. */
function fieldsOf(schema: JsonSchema): JsonSchema {
  return (schema.anyOf?.[1] as JsonSchema | undefined) ?? schema;
}

function typeOf({ title, type, items }: JsonSchema): string {
  if (!items) return title ?? String(type);
  return `list of ${typeOf(items as JsonSchema)}s`;
}
