/** textlint rule: a heading names a task or a noun, so it may begin with "What" only as a question. */
/** Records and design notes, whose headings others link to. */
const NOTES = /\/docs\/internals\//;

export default function headings({ Syntax, RuleError, report, getSource, getFilePath }) {
  if (NOTES.test(getFilePath() ?? "")) return {};
  return {
    [Syntax.Header](node) {
      const text = getSource(node).replace(/^#+ /, "");
      if (/^What\b.*[^?]$/.test(text)) report(node, new RuleError(`"${text}": name the thing or the task`));
    },
  };
}
