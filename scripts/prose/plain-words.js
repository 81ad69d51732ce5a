/** textlint rule: refuses words and phrases that have a plainer one. Inline code and code blocks are exempt. */
export const PLAIN = [
  [/\bt(?:old|ells?)\b/gi, "says, reports or returns"],
  [/\bnobody\b/gi, "no one, or say what does not happen"],
  [/\bwhoever\b/gi, "the reader, the caller or the client"],
  [/\banew\b/gi, "again"],
  [/\bso long as\b/gi, "while, or if"],
  [/\bstands?\b/gi, "is"],
  [/\bgo(?:es|ing)? on\b/gi, "continues"],
  [/\bheard\b/gi, "receives or learns"],
  [/\bas far as\b/gi, "within, or if"],
];

export default function plainWords({ Syntax, RuleError, report, getSource, locator }) {
  return {
    [Syntax.Str](node) {
      const text = getSource(node);
      for (const [pattern, better] of PLAIN) {
        for (const { 0: word, index } of text.matchAll(pattern)) {
          report(node, new RuleError(`"${word}": write ${better}`, { padding: locator.at(index) }));
        }
      }
    },
  };
}
