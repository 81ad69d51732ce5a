/** textlint rule: a relative link or picture must name a file, and its anchor a heading of that file. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Written by `npm run docs:api`, not committed. */
const GENERATED = /\/docs\/reference\/api\//;

export default function links({ Syntax, RuleError, report, getFilePath }) {
  const check = (node) => {
    if (/^[a-z]+:/.test(node.url)) return;
    const [path, anchor] = node.url.split("#");
    const file = path === "" ? getFilePath() : resolve(dirname(getFilePath()), decodeURI(path));
    if (GENERATED.test(file)) return;
    if (!existsSync(file)) report(node, new RuleError(`there is no ${path}`));
    else if (anchor && statSync(file).isFile() && !anchorsOf(file).has(anchor)) {
      report(node, new RuleError(`${path || "this page"} has no heading #${anchor}`));
    }
  };
  return { [Syntax.Link]: check, [Syntax.Image]: check, Definition: check };
}

/** Anchors of a page's headings, as GitHub makes them. */
function anchorsOf(file) {
  const headings = readFileSync(file, "utf8")
    .replace(/^```.*?^```/gms, "")
    .matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, text]) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}
