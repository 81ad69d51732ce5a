/** Prints the functions, options and fields of `@agarose/sw` as Markdown, from its types and doc comments. */
import { SourceTypes, type Field } from "../../../docs/.vitepress/source-types.ts";
import { code, table } from "../table.ts";

const api = new SourceTypes("packages/sw/src/index.ts");
const worker = new SourceTypes("packages/sw/src/sw.ts");

process.stdout.write(`
## Functions

${table(
  ["function", "effect"],
  api.functions().map(({ call, meaning }) => [code(call), meaning]),
)}
## Options of \`register\`

${fields(api.fieldsOf("RegisterOptions"))}
## Objects that \`register\` and \`createClient\` return

${table(
  ["member", "effect"],
  api.methodsOf("Agarose").map(({ call, meaning }) => [code(call), meaning]),
)}
## Client configuration

These are the fields of \`agarose.json\`, and of \`config\` of \`createClient\`, and of the first argument of \`agarose()\`. Two guides say how
to use [\`offline\`](../guides/offline.md) and [\`encryption\`](../guides/encrypt.md#read-in-the-browser).

${fields(api.fieldsOf("ClientConfigInput"))}
## Options of \`install\` and \`agarose()\`

\`agarose()\` takes those without \`codec\` and \`store\`. About \`navigations\`, see [objects as pages](#objects-as-pages).

${fields(worker.fieldsOf("InstallOptions"))}`);

function fields(list: readonly Field[]): string {
  return table(
    ["name", "type", "default", "meaning"],
    list.map(({ name, type, meaning, default: fallback }) => [
      code(name),
      code(asCallersWrite(type)),
      fallback ?? "",
      meaning,
    ]),
  );
}

/** Callers need no modifiers, and an optional field may be omitted. */
function asCallersWrite(type: string): string {
  return type.replaceAll("readonly ", "").replace(/ \| undefined$/, "");
}
