/** The completion of commands and options, from the commands themselves. Pure. */
import type { Command } from "commander";
import type { SHELLS } from "./index.ts";

/** A command by the words that call it. */
interface Known {
  readonly words: string;
  readonly command: Command;
}

/** The script that a shell reads. */
export function completionOf(shell: (typeof SHELLS)[number], program: Command): string {
  const known = commandsBelow(program, "");
  if (shell === "fish") return fishScript(program, known);
  const script = bashScript(program, known);
  return shell === "bash" ? script : `#compdef agarose\nautoload -U +X bashcompinit && bashcompinit\n${script}`;
}

function commandsBelow(command: Command, before: string): Known[] {
  return command.commands.flatMap((inner) => {
    const words = `${before} ${inner.name()}`.trim();
    return [{ words, command: inner }, ...commandsBelow(inner, words)];
  });
}

/** The names of inner commands, and the long options. */
function candidatesOf(command: Command): string {
  const options = command.options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []));
  return [...command.commands.map((inner) => inner.name()), ...options, "--help"].join(" ");
}

/** Words before the cursor make a path of commands; anything else among them is an argument. */
function bashScript(program: Command, known: readonly Known[]): string {
  const paths = known.map(({ words }) => (words.includes(" ") ? `"${words}"` : `" ${words}"`));
  return `_agarose() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word candidates=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${paths.join(" | ")}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
    "") candidates="${candidatesOf(program)}" ;;
${known.map(({ words, command }) => `    "${words}") candidates="${candidatesOf(command)}" ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _agarose agarose`;
}

function fishScript(program: Command, known: readonly Known[]): string {
  const seen = (words: string): string =>
    words === ""
      ? "__fish_use_subcommand"
      : words
          .split(" ")
          .map((word) => `__fish_seen_subcommand_from ${word}`)
          .join("; and ");
  return [{ words: "", command: program }, ...known]
    .flatMap(({ words, command }) => [
      ...command.commands.map(
        (inner) => `complete -c agarose -n '${seen(words)}' -f -a ${inner.name()} -d ${quoted(inner.description())}`,
      ),
      ...command.options.flatMap(({ long, required, description, hidden }) => {
        if (!long || hidden) return [];
        return `complete -c agarose -n '${seen(words)}' -l ${long.slice(2)}${required ? " -r" : ""} -d ${quoted(description)}`;
      }),
    ])
    .join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
