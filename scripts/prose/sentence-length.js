/** textlint rule: refuses sentences of more than `max` words. Inline code counts as one word. */
const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });

export default function sentenceLength({ Syntax, RuleError, report }, { max }) {
  const check = (node) => {
    for (const { segment } of segmenter.segment(plainText(node))) {
      const words = segment.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
      const start = segment.trim().slice(0, 40);
      if (words > max) report(node, new RuleError(`${words} words in a sentence, at most ${max}: "${start}…"`));
    }
  };
  return { [Syntax.Paragraph]: check, [Syntax.TableCell]: check };
}

function plainText(node) {
  if (node.type === "Code") return "code";
  return node.children ? node.children.map(plainText).join("") : (node.value ?? " ");
}
