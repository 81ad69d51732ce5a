// Builds packages/ec-wasm/pkg: the Rust crate through wasm-pack once per kernel, then wasm-metadce and wasm-opt.
//
//   node scripts/build-wasm.mjs           rebuilds the committed files
//   node scripts/build-wasm.mjs --check   rebuilds elsewhere and fails unless the bytes equal the committed ones
//
// Needs Rust (rustup reads packages/ec-wasm/rust-toolchain.toml); installs wasm-pack under packages/ec-wasm/target when
// there is none. Without the pinned Rust, --check says so and succeeds: the committed files are enough to run
// everything.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CRATE = join(ROOT, "packages/ec-wasm");
const TARGET = join(CRATE, "target");
const BIN = join(ROOT, "node_modules/.bin");
const WASM_PACK_VERSION = "0.15.1";

/** The builds, by the features that their kernel needs. */
const BUILDS = { scalar: "", simd: "+simd128", relaxed: "+simd128,+relaxed-simd" };
/** The exports that the TypeScript face calls; everything else that wasm-bindgen adds is dropped, imports included. */
const EXPORTS = "memory kernelName stagingAt matrixAt rowsMax solve prepare apply".split(" ");
/** A page loads one build. */
const GZIP_BYTES_MAX = 8_500;
const RELAXED_SWIZZLE = Buffer.from([0xfd, 0x80, 0x02]);

const check = process.argv.includes("--check");
const missing = whatIsMissing();
if (missing) {
  console.log(`build-wasm: ${check ? "skipped, " : ""}${missing} (https://rustup.rs)`);
  process.exit(check ? 0 : 1);
}
const output = check ? mkdtempSync(join(tmpdir(), "agarose-wasm-")) : join(CRATE, "pkg");
try {
  build(output);
  if (check) compare(output);
} finally {
  if (check) rmSync(output, { recursive: true, force: true });
}

/** Another compiler makes other bytes, so only the pinned one can compare them. */
function whatIsMissing() {
  const pinned = /channel = "(.*)"/.exec(readFileSync(join(CRATE, "rust-toolchain.toml"), "utf8"))[1];
  const { status, stdout } = spawnSync("rustc", ["--version"], { cwd: CRATE, encoding: "utf8" });
  if (status !== 0 || spawnSync("cargo", ["--version"], { cwd: CRATE }).status !== 0) return "Rust is not installed";
  if (!stdout.startsWith(`rustc ${pinned} `)) return `Rust ${pinned} is needed, here is ${stdout.trim()}`;
  return existsSync(join(sysroot(), "lib/rustlib/wasm32-unknown-unknown")) ? "" : "Rust lacks wasm32-unknown-unknown";
}

function sysroot() {
  return execFileSync("rustc", ["--print", "sysroot"], { cwd: CRATE, encoding: "utf8" }).trim();
}

function build(directory) {
  const wasmPack = findWasmPack();
  mkdirSync(directory, { recursive: true });
  run("cargo", ["fetch", "--locked"]);
  for (const [name, features] of Object.entries(BUILDS)) {
    const bundled = join(TARGET, `pkg-${name}`);
    run(wasmPack, ["build", "--release", "--target", "web", "--no-pack", "--no-typescript", "--out-dir", bundled], {
      RUSTFLAGS: rustFlags(features),
      CARGO_TARGET_DIR: join(TARGET, name),
    });
    optimise(join(bundled, "agarose_ec_bg.wasm"), join(directory, `${name}.wasm`));
  }
  const relaxed = join(directory, "relaxed.wasm");
  const gzipBytes = gzipSync(readFileSync(relaxed), { level: 9 }).length;
  console.log(`build-wasm: a page loads ${gzipBytes} bytes gzipped (limit ${GZIP_BYTES_MAX})`);
  if (gzipBytes > GZIP_BYTES_MAX) fail("the build that a page loads is too large");
  checkSwizzles(relaxed);
}

/** js/features.ts replaces these bytes wherever they occur, so they must be that instruction and nothing else. */
function checkSwizzles(file) {
  const bytes = readFileSync(file);
  let occurrences = 0;
  for (let at = bytes.indexOf(RELAXED_SWIZZLE); at >= 0; at = bytes.indexOf(RELAXED_SWIZZLE, at + 1)) occurrences++;
  const instructions = disassemble(file).split("i8x16.relaxed_swizzle").length - 1;
  if (occurrences === 0 || occurrences !== instructions) {
    fail(`the bytes of ${instructions} relaxed swizzles occur ${occurrences} times`);
  }
}

/**
 * The stack is small because only matrices live on it. Loop strength reduction is off for SIMD because it turns the
 * constant offsets of the kernels' loads into additions of their own: the plain SIMD kernel is 1.5 times as fast
 * without it. Less is inlined than by default: 0.6 kB less to load, for a decoder that is 2% slower. Paths are remapped
 * so that no checkout leaves a trace.
 */
function rustFlags(features) {
  const registry = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry/src");
  // One folder per registry, named after its host: a mirror must not show in the result either.
  const crates = readdirSync(registry).map((name) => [join(registry, name), "crates"]);
  const remaps = [[CRATE, "ec-wasm"], [ROOT, "agarose"], [sysroot(), "rust"], ...crates];
  return [
    ...remaps.map(([from, to]) => `--remap-path-prefix=${from.replace(/\/$/, "")}=/${to}`),
    "-Clink-arg=-zstack-size=65536",
    "-Cllvm-args=-inline-threshold=75",
    ...(features ? [`-Ctarget-feature=${features}`, "-Cllvm-args=-disable-lsr"] : []),
  ].join(" ");
}

/** wasm-bindgen adds a table and a start hook for JavaScript values; nothing here passes any. */
function optimise(input, out) {
  const graph = join(TARGET, "reachable.json");
  const nodes = EXPORTS.map((name) => ({ name: `export ${name}`, export: name }));
  const root = { name: "face", root: true, reaches: nodes.map((node) => node.name) };
  writeFileSync(graph, JSON.stringify([root, ...nodes]));
  const reduced = join(TARGET, "reduced.wasm");
  run(join(BIN, "wasm-metadce"), [input, "--all-features", "--graph-file", graph, "-o", reduced]);
  const strip = ["--strip-debug", "--strip-producers", "--strip-target-features"];
  run(join(BIN, "wasm-opt"), [reduced, "--all-features", "-O3", ...strip, "-o", out]);
  removeData(out);
}

/**
 * Removes the data segments: a sixth of the module, and nothing in them but messages and places of panics. A panic
 * passes their addresses to a handler that ignores them. No function that returns may load from them.
 */
function removeData(file) {
  const text = disassemble(file);
  const starts = [...text.matchAll(/^ \(data \S+ \(i32\.const (\d+)\)/gm)].map((match) => Number(match[1]));
  const functions = text.split(/\n (?=\()/).filter((part) => part.startsWith("(func"));
  const returning = functions.filter((body) => !/\(unreachable\)\s+\)\s*$/.test(body)).join();
  const loads = [...returning.matchAll(/load\S*(?: offset=(\d+))?(?: align=\d+)?\s+(?:\(i32\.const (\d+)\))?/g)]
    .map(([, offset = 0, base = 0]) => Number(offset) + Number(base))
    .filter((address) => address >= Math.min(...starts) && address <= Math.max(...starts));
  if (loads.length > 0) fail(`${file} loads constants from ${loads.join(", ")}: the module must not need any data`);
  run(join(BIN, "wasm-opt"), [file, "--all-features", "--remove-memory-init", "-o", file]);
}

function disassemble(file) {
  return execFileSync(join(BIN, "wasm-dis"), [file, "--all-features"], { encoding: "utf8", maxBuffer: 1 << 28 });
}

function findWasmPack() {
  const own = join(TARGET, "wasm-pack/bin/wasm-pack");
  if (spawnSync("wasm-pack", ["--version"]).status === 0) return "wasm-pack";
  if (!existsSync(own)) {
    console.log("build-wasm: installing wasm-pack, this takes some minutes");
    const root = join(TARGET, "wasm-pack");
    run("cargo", ["install", "wasm-pack", "--locked", "--version", WASM_PACK_VERSION, "--root", root]);
  }
  return own;
}

function compare(directory) {
  const differing = Object.keys(BUILDS).filter((name) => {
    const committed = join(CRATE, `pkg/${name}.wasm`);
    return !existsSync(committed) || !readFileSync(committed).equals(readFileSync(join(directory, `${name}.wasm`)));
  });
  if (differing.length > 0) fail(`pkg differs from a rebuild: ${differing.join(", ")}. Run npm run build:wasm`);
  console.log(`build-wasm: pkg equals a rebuild, byte for byte (${Object.keys(BUILDS).join(", ")})`);
}

function run(command, args, env = {}) {
  const done = spawnSync(command, args, { cwd: CRATE, env: { ...process.env, ...env }, encoding: "utf8" });
  if (done.status === 0) return;
  console.error(done.stdout, done.stderr, done.error ?? "");
  fail(`${command} ${args[0]} exited with ${done.status}`);
}

function fail(message) {
  console.error(`build-wasm: ${message}`);
  if (check) rmSync(output, { recursive: true, force: true });
  process.exit(1);
}
