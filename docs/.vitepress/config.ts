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
  // For contributors and implementers, who read them in the repository.
  srcExclude: ["internals/**", "reference/format.md"],
  rewrites: { "README.md": "index.md" },
  head: [["link", { rel: "icon", href: "/logo.svg" }]],
  themeConfig: {
    logo: "/logo.svg",
    // Guides are found before the generated pages of the packages' types, which have a list of their own.
    search: {
      provider: "local",
      options: {
        _render: (source, env, md) => (env.relativePath.startsWith("reference/api/") ? "" : md.render(source, env)),
      },
    },
    outline: [2, 3],
    socialLinks: [{ icon: "github", link: repository() }],
    editLink: { pattern: `${repository()}/edit/main/docs/:path`, text: "Edit this page" },
    footer: { message: `Version ${version()}. MIT licence.` },
    nav: [
      { text: "Start", link: "/start" },
      { text: "Guides", link: "/guides/web-app" },
      { text: "Compare", link: "/explanation/compare" },
      { text: "Reference", link: "/reference/cli" },
    ],
    sidebar: [
      { text: "Start", link: "/start" },
      section("In your app", "guides", [
        "web-app",
        "existing-service-worker",
        "libraries",
        "upload-from-the-browser",
        "offline",
        "test-your-app",
        "trace-reads",
      ]),
      section("Store and deploy", "guides", [
        "deploy",
        "sync",
        "gateway",
        "move-a-bucket",
        "back-up",
        "sign",
        "private-objects",
        "encrypt",
        "own-pop",
        "simulate-your-log",
      ]),
      section("Operate", "guides", ["operate", "monitor", "heal", "troubleshooting"]),
      section("Explanation", "explanation", [
        "compare",
        "performance",
        "faq",
        "architecture",
        "reading",
        "caching-and-policies",
        "security",
        "guarantees",
        "limits",
      ]),
      section("Reference", "reference", [
        "cli",
        "config",
        "worker-config",
        "cloudflare",
        "http-api",
        "s3-operations",
        "service-worker-api",
        "browsers",
        "events-and-metrics",
        "request-costs",
        "errors",
        "scenarios",
        "versions",
        "api/index",
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

/** Links to files that are no pages go to the repository, where VitePress would call them dead. Fails on a missing file. */
function linkOut(tokens: Token[], page: string): void {
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    const href = token.type === "link_open" ? token.attrGet("href") : null;
    if (!href || /^([a-z]+:|#|\/)/.test(href)) continue;
    const [path = "", anchor] = href.split("#");
    const target = normalize(join(dirname(page), path));
    const inDocs = relative(docs, target);
    if (!/^(\.\.|internals\/|reference\/format\.md)/.test(inDocs)) continue;
    if (!existsSync(target))
      throw new Error(`${relative(root, page)} links to ${relative(root, target)}: no such file`);
    token.attrSet("href", `${repository()}/blob/main/${relative(root, target)}${anchor ? `#${anchor}` : ""}`);
  }
}

function version(): string {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
}

function repository(): string {
  const { repository: field } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const url: string = field?.url ?? field ?? "https://github.com/agarose/agarose";
  return url.replace(/^git\+/, "").replace(/\.git$/, "");
}
