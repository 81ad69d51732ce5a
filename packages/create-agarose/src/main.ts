/**
 * `npm create agarose [folder]`: asks, writes a project, installs it, and makes its key and the configuration of its
 * Workers.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { basename, resolve } from "node:path";
import { parseArgs } from "node:util";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { checkAnswers, defaultAnswers, QUESTIONS, type Answers } from "./answers.ts";
import { ask } from "./ask.ts";
import { projectFiles } from "./project-files.ts";
import { writeProject } from "./write-project.ts";

const HELP = `Usage: npm create agarose [folder] [-- options]

Writes a web app that reads erasure-coded objects, with its PoPs, its buckets and a latency test.

Options:
${QUESTIONS.map(({ field, text, choices }) => `  --${field} <${choices?.join("|") ?? "name"}>`.padEnd(42) + text).join("\n")}
  --yes                                   take the defaults for what is not given, and ask nothing
  --packages <folder>                     install the packages from tarballs in this folder
  --no-install                            write the files only
  --help                                  show this
`;
const FOLDER_DEFAULT = "agarose-app";

/** Runs the command `argv` (without node and script). Returns the exit code: 2 for bad input, 1 when a step failed. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    return await create(argv);
  } catch (error) {
    const { code, message } = toAgaroseError(error);
    process.stderr.write(`${code}: ${message}\n`);
    return code === "USAGE" ? 2 : 1;
  }
}

async function create(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parse(argv);
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const [folder = FOLDER_DEFAULT, ...others] = positionals;
  if (others.length > 0) throw usage(`${others[0]} is one argument too many: give one folder`);
  const given = givenAnswers(values);
  const defaults = defaultAnswers(basename(resolve(folder)));
  checkAnswers({ ...defaults, ...given });
  const answers = values.yes ? { ...defaults, ...given } : await askPerson(defaults, given);
  const { version } = createRequire(import.meta.url)("../package.json") as { version: string };
  await writeProject(folder, await projectFiles(checkAnswers(answers), { version, packages: values.packages }));
  process.stdout.write(`wrote ${folder}\n`);
  if (!values["no-install"]) process.stdout.write("installing its packages, which takes a minute\n");
  const steps: readonly (readonly string[])[] = [["install"], ["run", "setup"]];
  for (const step of values["no-install"] ? [] : steps) {
    const { code, output } = await npm([...step, "--loglevel=error"], folder);
    if (code === 0) continue;
    process.stderr.write(output);
    const rest = steps.slice(steps.indexOf(step)).map((one) => `npm ${one.join(" ")}`);
    process.stderr.write(`npm ${step.join(" ")} failed with ${code}: in ${folder}, run \`${rest.join(" && ")}\`\n`);
    return 1;
  }
  const left = values["no-install"] ? steps.map((step) => `npm ${step.join(" ")}`) : [];
  process.stdout.write(`\nthen:\n${[`cd ${folder}`, ...left, "npm run dev"].map((line) => `  ${line}`).join("\n")}\n`);
  return 0;
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        ...Object.fromEntries(QUESTIONS.map(({ field }) => [field, { type: "string" as const }])),
        yes: { type: "boolean" },
        help: { type: "boolean" },
        packages: { type: "string" },
        "no-install": { type: "boolean" },
      },
    });
  } catch (error) {
    throw usage(`${(error as Error).message}; --help shows all options`);
  }
}

function givenAnswers(values: Readonly<Record<string, string | boolean | undefined>>): Partial<Answers> {
  const given: Partial<Record<keyof Answers, string>> = {};
  for (const { field } of QUESTIONS) {
    const value = values[field];
    if (typeof value === "string") given[field] = value;
  }
  return given;
}

async function askPerson(defaults: Answers, given: Partial<Answers>): Promise<Answers> {
  if (!process.stdin.isTTY) throw usage("there is no terminal for questions: use --yes to accept the defaults");
  return ask(defaults, given, { input: process.stdin, output: process.stdout }).catch(() => {
    throw usage("the questions were not answered: nothing is written");
  });
}

/** Runs npm. Returns its output, which is of interest only when it fails. */
async function npm(args: readonly string[], folder: string): Promise<{ code: number; output: string }> {
  const isWindows = process.platform === "win32";
  const child = spawn("npm", [...args], { cwd: resolve(folder), stdio: ["ignore", "pipe", "pipe"], shell: isWindows });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (output += String(part)));
  const [code] = await once(child, "close");
  return { code: (code as number | null) ?? 1, output };
}

function usage(message: string): AgaroseError {
  return new AgaroseError("USAGE", message);
}
