/**
 * textlint rule: refuses prose lines of more than 120 columns. Tables, code blocks, lines with an unbreakable address
 * and changesets, which become list items of a changelog, are exempt.
 */
const COLUMNS = 120;
const UNBREAKABLE = /\S{60}/;

export default function lineLength({ Syntax, RuleError, report, getSource, getFilePath, locator }) {
  if (/\.changeset\//.test(getFilePath() ?? "")) return {};
  const exempt = [];
  const skip = (node) => exempt.push(node.range);
  return {
    [Syntax.Table]: skip,
    [Syntax.CodeBlock]: skip,
    [Syntax.Html]: skip,
    [`${Syntax.Document}:exit`](node) {
      let start = 0;
      for (const line of getSource(node).split("\n")) {
        const isExempt = exempt.some(([from, to]) => from <= start && start < to);
        if (line.length > COLUMNS && !isExempt && !UNBREAKABLE.test(line)) {
          report(node, new RuleError(`${line.length} columns, at most ${COLUMNS}`, { padding: locator.at(start) }));
        }
        start += line.length + 1;
      }
    },
  };
}
