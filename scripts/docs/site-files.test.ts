/** The files for programs have every route, page and field that there is. */
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { DESCRIBED_ROUTES } from "@agarose/worker/reference";
import { configReference } from "./config-reference.ts";
import { siteFiles } from "./site-files.ts";

const files = siteFiles();

test("the JSON Schema has every field, with its description, pattern and bounds", () => {
  type Node = {
    readonly properties?: Record<string, Node>;
    readonly items?: Node;
    readonly additionalProperties?: Node | false;
    readonly anyOf?: readonly Node[];
    readonly required?: readonly string[];
    readonly description?: string;
  };
  const schema = JSON.parse(files["config-schema.json"]!) as Node;
  const fieldAt = (path: string): Node | undefined =>
    path.split(/\.|(?=\[\])/).reduce<Node | undefined>((at, name) => {
      const inner = at?.anyOf?.find(({ properties }) => properties) ?? at;
      if (name === "[]") return inner?.items;
      return name === "*" ? inner?.additionalProperties || undefined : inner?.properties?.[name];
    }, schema);
  const paths = [...configReference().matchAll(/^\| `(\S+)` \|/gm)].map(([, path]) => path!);
  expect(paths.length).toBeGreaterThan(50);
  expect(paths).toContain("providers.*.credentials");
  expect(paths.filter((path) => !fieldAt(path)?.description)).toEqual([]);
  expect(schema.required).toEqual(["regions"]);
  expect(fieldAt("regions[].bucket")).toMatchObject({ type: "string", pattern: expect.stringContaining("a-z0-9") });
  expect(fieldAt("regions[].latencyMs")).toMatchObject({ type: "number", minimum: 0 });
  expect(fieldAt("stripeBytes")).toMatchObject({ type: "integer", minimum: 0 });
  expect(fieldAt("publicKeys")).toMatchObject({ minItems: 1, maxItems: 8 });
  expect(fieldAt("code")).toMatchObject({ anyOf: [{ const: "auto" }, { type: "object", required: ["k", "m"] }] });
  expect(fieldAt("compress")).toMatchObject({ enum: ["none", "small", "all"], default: "small" });
});

test("openapi.json has every route but those between PoPs", () => {
  const { paths } = JSON.parse(files["openapi.json"]!) as { paths: Record<string, Record<string, { security: [] }>> };
  const open = DESCRIBED_ROUTES.filter(([, { access }]) => access !== "peers");
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  expect(operations).toMatchObject(open.map(([operationId]) => ({ operationId })));
  expect(paths["/v1/purge"]!["post"]!.security).toEqual([{ token: [] }]);
  expect(paths["/o/{key}"]!["get"]!.security).toEqual([{}, { token: [] }]);
  expect(files["openapi.json"], "Markdown links lead nowhere there").not.toMatch(/\]\(/);
});

test("llms.txt begins with a summary and links to pages that exist", () => {
  const text = files["llms.txt"]!;
  expect(text).toMatch(/^# Agarose\n\n> Keep serving .+\n\n## In your app\n\n- /);
  const pages = [...text.matchAll(/\]\(\/([^)]+)\)/g)].map(([, path]) => path!);
  expect(pages.length).toBeGreaterThan(30);
  const missing = pages.filter((path) => !existsSync(new URL(`../../docs/${path}.md`, import.meta.url)));
  expect(missing).toEqual([]);
});
