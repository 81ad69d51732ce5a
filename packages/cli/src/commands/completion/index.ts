import { AgaroseError } from "@agarose/core";
import { defineCommand, positional } from "../../command.ts";

/** The shells that it knows. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** Its arguments and options. */
export const args = { shell: positional("<shell>", SHELLS.join(", ")) };

/** `agarose completion`. */
export const command = defineCommand({
  name: "completion",
  category: "More",
  description: "print the completion of commands and options for a shell",
  summary: "print the completion for a shell",
  examples: [
    ["completion bash > ~/.local/share/bash-completion/completions/agarose", "for bash"],
    ["completion zsh > ~/.zfunc/_agarose", "for zsh, where fpath has ~/.zfunc"],
    ["completion fish > ~/.config/fish/completions/agarose.fish", "for fish"],
  ],
  args,
  withoutConfig: true,
  async run({ shell, ...options }) {
    const known = SHELLS.find((name) => name === shell);
    if (known === undefined) throw new AgaroseError("USAGE", `${shell} is not ${SHELLS.join(", ")}`);
    const [{ completionOf }, { buildProgram }] = await Promise.all([import("./scripts.ts"), import("../../main.ts")]);
    const { printResult } = await import("../../ui/output.ts");
    const script = completionOf(known, await buildProgram([]));
    printResult(options, { shell, script }, [script]);
  },
});
