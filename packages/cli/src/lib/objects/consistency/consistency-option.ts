/**
 * The option by which a command reads from what is left when most regions do not answer.
 */
import { Option } from "commander";

/** `--consistency`, for `Command.addOption`. */
export function consistencyOption(): Option {
  const text =
    "strong reads what a majority of the regions holds; eventual takes the first sound copy, which may be an old " +
    "version, and needs one region and k chunks";
  return new Option("--consistency <word>", text).choices(["strong", "eventual"]).default("strong");
}
