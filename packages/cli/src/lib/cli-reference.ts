/** The reference of the command line, generated from its help texts. */
import type { Command } from "commander";

/** The help of `program` and of every command below it, as Markdown. Lines are 100 columns wide on every terminal. */
export function cliReference(program: Command): string {
  return [program, ...commandsBelow(program)].map(sectionOf).join("\n");
}

const COLUMNS = 100;

function commandsBelow(command: Command): Command[] {
  const visible = new Set(command.createHelp().visibleCommands(command));
  return command.commands.filter((inner) => visible.has(inner)).flatMap((inner) => [inner, ...commandsBelow(inner)]);
}

function sectionOf(command: Command): string {
  const words: string[] = [];
  for (let at: Command | null = command; at; at = at.parent) words.unshift(at.name());
  let help = "";
  // `outputHelp` prints what is added behind the help too, which `helpInformation` omits.
  command.configureOutput({
    getOutHelpWidth: () => COLUMNS,
    getOutHasColors: () => false,
    writeOut: (text) => {
      help += text;
    },
  });
  command.outputHelp();
  return `## \`${words.join(" ")}\`\n\n\`\`\`text\n${help.trimEnd()}\n\`\`\`\n`;
}
