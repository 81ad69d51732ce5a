/** Makes the workers' scripts small. What each step gives is in the README. */
import { minify as terser } from "terser";
import { minify as oxc } from "vite";
import { arrowFunctions } from "./arrow-functions.ts";
import { repeatingNames } from "./names.ts";
import { plainOperators } from "./plain-operators.ts";
import { privateLocals } from "./private-locals.ts";
import { knownStatuses, terseErrors } from "./terse-errors.ts";
import { NEVER_SET, NEVER_STORED, OF_STORE, unsetOptions } from "./unset-options.ts";

export { INTERNAL_NAMES } from "./internal-names.ts";

/**
 * @param script what esbuild has bundled, not minified.
 * @param stores whether it keeps what was read.
 */
export async function shrunk(script: string, stores: boolean): Promise<string> {
  const used = unsetOptions(script, stores ? NEVER_SET : [...NEVER_SET, ...OF_STORE], NEVER_SET);
  return minified(privateLocals(knownStatuses(terseErrors(used))), plainOperators);
}

/**
 * The same for pages, whose errors are read by people: they keep their words. A page's own client stores nothing.
 *
 * @param script what esbuild has bundled, not minified.
 */
export async function shrunkForPages(script: string): Promise<string> {
  return minified(privateLocals(unsetOptions(script, NEVER_STORED)));
}

/** Two minifiers, one after the other: each does what the other leaves, and `between` what both do; then names that repeat. */
export async function minified(script: string, between = (one: string): string => one): Promise<string> {
  const first = await terser(script, {
    module: true,
    ecma: 2020,
    compress: {
      passes: 4,
      inline: 1,
      keep_fargs: false,
      // What only made up the words of an error has no other effect, so it may go with them.
      pure_funcs: ["JSON.stringify", "Array.isArray", "String"],
      pure_getters: true,
      sequences: false,
      unsafe: true,
      unsafe_arrows: true,
    },
    // Names are chosen at the end.
    mangle: false,
    format: { comments: false },
  });
  const options = { compress: { target: "es2022" }, mangle: { toplevel: true }, codegen: { removeWhitespace: true } };
  const { code, errors } = await oxc("file.js", between(first.code!), { ...options, module: true });
  if (errors.length === 0) return repeatingNames(arrowFunctions(code));
  throw new Error(`the bundle was not minified: ${errors.map(({ message }) => message).join("; ")}`);
}
