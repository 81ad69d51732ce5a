/** Variables written into the text of wrangler.toml, with every other line left as it is. Pure. */
import { AgaroseError } from "@agarose/core";

/** A string of TOML, of one line or of several. */
const TOML_STRING = String.raw`'''[\s\S]*?'''|"""[\s\S]*?"""|'[^'\n]*'|"(?:[^"\\\n]|\\.)*"`;

/**
 * Returns `text` of wrangler.toml with `variables` in the table [env.`pop`.vars]: over what is there, or at the head of
 * the table. Throws CONFIG_INVALID, with the lines to write by hand, for a file without that table, and for a value
 * with an apostrophe.
 */
export function withVariables(text: string, pop: string, variables: Readonly<Record<string, string>>): string {
  const section = new RegExp(`^[ \\t]*\\[env\\.${escaped(pop)}\\.vars\\][^\\n]*$`, "m").exec(text);
  const lines = Object.entries(variables).map(([name, value]) => [name, `${name} = '${value}'`] as const);
  if (!section || Object.values(variables).some((value) => value.includes("'"))) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      `Wrangler's configuration has no section [env.${pop}.vars] to write ${Object.keys(variables).join(" and ")} into: ` +
        `write there yourself: ${lines.map(([, line]) => line).join(", ")}`,
      { pop },
    );
  }
  const start = section.index + section[0].length;
  const rest = text.slice(start);
  // A line of an array may begin with a bracket, too, but not with a letter behind it.
  const end = /^[ \t]*\[+[A-Za-z_]/m.exec(withoutTexts(rest))?.index ?? rest.length;
  let table = rest.slice(0, end);
  const added: string[] = [];
  for (const [name, line] of lines) {
    const known = new RegExp(`^[ \\t]*${name}\\s*=\\s*(?:${TOML_STRING}|true|false)`, "m");
    if (known.test(table)) table = table.replace(known, () => line);
    else added.push(`\n${line}`);
  }
  return text.slice(0, start) + added.join("") + table + rest.slice(end);
}

/** Returns TOML of the same length in which no text of several lines looks like a section. */
function withoutTexts(toml: string): string {
  return toml.replace(/'''[\s\S]*?'''|"""[\s\S]*?"""/g, (text) => text.replaceAll("[", " "));
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
