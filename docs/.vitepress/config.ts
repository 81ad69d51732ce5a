/** The documentation site: `npm run docs` serves it, `npm run docs:build` builds it and fails on a dead link. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const docs = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(docs);

export default defineConfig({
  title: "Agarose",
  description:
    "Keep serving files from your own buckets when a region or a cloud goes down, for 1.2 to 1.5 times the storage",
  cleanUrls: true,
  rewrites: { "README.md": "index.md" },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Start", link: "/start" },
      { text: "Guides", link: "/guides/web-app" },
      { text: "Reference", link: "/reference/cli" },
      { text: "Explanation", link: "/explanation/architecture" },
      { text: "Internals", link: "/internals/tour" },
    ],
    sidebar: [
      { text: "Start", link: "/start" },
      section("Guides", "guides", [
        "web-app",
        "existing-service-worker",
        "libraries",
        "offline",
        "sync",
        "gateway",
        "private-objects",
        "encrypt",
        "deploy",
        "own-pop",
        "monitor",
        "heal",
        "trace-reads",
        "incidents",
        "simulate-your-log",
        "test-your-app",
      ]),
      section("Reference", "reference", [
        "cli",
        "config",
        "worker-config",
        "http-api",
        "service-worker-api",
        "browsers",
        "events-and-metrics",
        "request-costs",
        "errors",
        "scenarios",
        "format",
        "versions",
        "api/index",
      ]),
      section("Explanation", "explanation", [
        "when-to-use",
        "architecture",
        "reading",
        "caching-and-policies",
        "cloudflare",
        "peers",
        "security",
        "guarantees",
        "limits",
      ]),
      section("Internals", "internals", [
        "tour",
        "contributing-map",
        "testing",
        "benchmarks",
        "papers",
        "policies-measured",
        "writing",
        "glossary",
      ]),
    ],
  },
  markdown: {
    config: (md) => md.core.ruler.push("links out of docs", ({ tokens, env }) => linkOut(tokens, env.path)),
  },
});

function section(text: string, folder: string, pages: readonly string[]) {
  return { text, items: pages.map((page) => ({ text: titleOf(`${folder}/${page}.md`), link: `/${folder}/${page}` })) };
}

function titleOf(page: string): string {
  const path = join(docs, page);
  const title = existsSync(path) && /^# (.+)$/m.exec(readFileSync(path, "utf8"))?.[1];
  if (!title) throw new Error(`${page} of the sidebar does not exist or has no title`);
  return title.replaceAll("`", "");
}

interface Token {
  type: string;
  children: Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** Links to files outside docs/ go to the repository, where VitePress would call them dead. Fails on a missing file. */
function linkOut(tokens: Token[], page: string): void {
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    const href = token.type === "link_open" ? token.attrGet("href") : null;
    if (!href || /^([a-z]+:|#|\/)/.test(href)) continue;
    const [path = "", anchor] = href.split("#");
    const target = normalize(join(dirname(page), path));
    if (!relative(docs, target).startsWith("..")) continue;
    if (!existsSync(target))
      throw new Error(`${relative(root, page)} links to ${relative(root, target)}: no such file`);
    token.attrSet("href", `${repository()}/blob/main/${relative(root, target)}${anchor ? `#${anchor}` : ""}`);
  }
}

function repository(): string {
  const { repository: field } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const url: string = field?.url ?? field ?? "https://github.com/agarose/agarose";
  return url.replace(/^git\+/, "").replace(/\.git$/, "");
}
