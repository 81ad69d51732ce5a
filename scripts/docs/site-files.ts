/**
 * The files of the documentation site that programs read: `llms.txt`, `openapi.json` of a PoP, and the JSON Schema of
 * `agarose.config.json`. Each build of the site writes them into its public folder, so the repository has none of them.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DESCRIBED_ROUTES, type DescribedRoute } from "@agarose/worker/reference";
import { configJsonSchema } from "./config-reference.ts";

const DOCS = new URL("../../docs/", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, DOCS), "utf8");
/** Markdown without its links. */
const plain = (markdown: string): string => markdown.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1");

/** Returns every file with its text. */
export function siteFiles(): Readonly<Record<string, string>> {
  const json = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`;
  return { "config-schema.json": json(configJsonSchema()), "llms.txt": llmsText(), "openapi.json": json(openApi()) };
}

/** The index of the documents as https://llmstxt.org wants it: a summary, and a list of the pages by heading. */
function llmsText(): string {
  const [head = "", ...sections] = read("README.md").split(/^## /m);
  const summary = plain(/\*\*(.+?)\*\*/s.exec(head)?.[1] ?? "").replaceAll("\n", " ");
  const lists = sections.flatMap((section) => {
    const links = section.matchAll(/\[([^\]]+)\]\(((?:guides|explanation|reference)\/[\w-]+)\.md\)/g);
    const pages = [...links].filter(([, , path]) => path !== "reference/format");
    const lines = pages.map(([, name, path]) => `- [${name!.replaceAll("\n", " ")}](/${path})`);
    return lines.length > 0 ? [`## ${section.split("\n")[0]}\n\n${lines.join("\n")}`] : [];
  });
  return `${[`# Agarose`, `> ${summary}`, ...lists].join("\n\n")}\n`;
}

/** The routes of a PoP without those of its peers, from the table that the application is made of. */
function openApi(): object {
  const { version } = JSON.parse(read("../package.json")) as { version: string };
  const routes = DESCRIBED_ROUTES.filter(([, { access }]) => access !== "peers");
  return {
    openapi: "3.1.0",
    info: { title: "Agarose PoP", version, license: { name: "MIT", identifier: "MIT" } },
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    paths: Object.fromEntries(
      routes.map(([name, route]) => [
        route.path.endsWith("/") ? `${route.path}{key}` : route.path,
        { [route.method.toLowerCase()]: operation(name, route) },
      ]),
    ),
  };
}

function operation(operationId: string, { path, access, returns, query = {} }: DescribedRoute): object {
  const schema = { type: "string" };
  const key = { name: "key", in: "path", required: true, schema, description: "Its slashes may stay as they are." };
  return {
    operationId,
    summary: plain(returns),
    parameters: [
      ...(path.endsWith("/") ? [key] : []),
      ...Object.entries(query).map(([name, text]) => ({ name, in: "query", schema, description: plain(text) })),
    ],
    // A private key needs the token, or a signature in its URL.
    security: [...(access === "admin token" ? [] : [{}]), ...(access === "open" ? [] : [{ token: [] }])],
    responses: {
      "200": { description: plain(returns) },
      default: { description: "JSON with the code of the error, which the header x-agarose-error repeats" },
    },
  };
}

if (import.meta.main) {
  const folder = new URL("public/", DOCS);
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(siteFiles())) writeFileSync(fileURLToPath(new URL(name, folder)), text);
}
