/**
 * `npm run lint:prose [-- --quiet] [FILE…]`: checks Markdown against docs/internals/writing.md. Exit code 1 on errors;
 * warnings alone pass, and `--quiet` hides them.
 */
import { execFileSync } from "node:child_process";
import { TextlintKernelDescriptor } from "@textlint/kernel";
import markdown from "@textlint/textlint-plugin-markdown";
import { createLinter, loadLinterFormatter } from "textlint";
import headings from "./headings.js";
import links from "./links.js";

/** Not our prose: licences of the sample files, and what changesets writes into packages. */
const EXEMPT = /^(demo\/samples\/|packages\/[^/]+\/CHANGELOG\.md|docs\/reference\/api\/)/;

const descriptor = new TextlintKernelDescriptor({
  rules: [
    { ruleId: "links", rule: links },
    { ruleId: "headings", rule: headings },
  ],
  plugins: [{ pluginId: "@textlint/markdown", plugin: markdown.default ?? markdown }],
  filterRules: [],
});

const given = process.argv.slice(2);
const quiet = given.includes("--quiet");
const named = given.filter((argument) => argument !== "--quiet");
const results = await createLinter({ descriptor, quiet }).lintFiles(named.length > 0 ? named : trackedMarkdown());
const formatter = await loadLinterFormatter({ formatterName: "stylish" });
const report = formatter.format(results);
if (report.trim()) console.log(report);
process.exitCode = results.some(({ messages }) => messages.some(({ severity }) => severity === 2)) ? 1 : 0;

function trackedMarkdown() {
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "*.md"], { encoding: "utf8" });
  return files.split("\n").filter((file) => file && !EXEMPT.test(file));
}
