/**
 * WebKitGTK's MiniBrowser, by its own WebDriver server, which has no client library here: the few commands are below.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { once } from "node:events";
import { freePort } from "@agarose/dev-world/free-port";
import { setTimeout as delay } from "node:timers/promises";
import { NotInstalled, type TestBrowser } from "../fixtures/app-page.ts";

const DRIVER = "/usr/bin/WebKitWebDriver";
const DISPLAY_SERVER = "/usr/bin/Xvfb";
const LIBRARIES = "/usr/lib";
const TIMEOUT_MS = 60_000;

/** @throws NotInstalled */
export async function startWebKit(): Promise<TestBrowser> {
  const binary = findMiniBrowser();
  if (!existsSync(DRIVER) || !binary) throw new NotInstalled("WebKitGTK is not installed (Debian: webkit2gtk-driver)");
  const display = await findDisplay();
  const port = await freePort();
  const driver = spawn(DRIVER, [`--port=${port}`, "--host=127.0.0.1"], {
    env: { ...process.env, DISPLAY: display.name },
    stdio: "ignore",
  });
  const close = async (): Promise<void> => {
    await end(driver);
    if (display.server) await end(display.server);
  };
  try {
    const root = `http://127.0.0.1:${port}`;
    const session = await startSession(root, binary);
    const ask = (path: string, body: object): Promise<unknown> => command("POST", `${session}${path}`, body);
    await ask("/timeouts", { script: TIMEOUT_MS, pageLoad: TIMEOUT_MS });
    return {
      async open(url) {
        await ask("/url", { url });
        return {
          async evaluate(fn, argument) {
            const outcome = await ask("/execute/async", { script: scriptOf(fn), args: [argument ?? null] });
            const { value, error } = outcome as { value?: never; error?: string };
            if (error !== undefined) throw new Error(error);
            return value as never;
          },
          close: async () => void (await ask("/url", { url: "about:blank" })),
        };
      },
      async close() {
        await command("DELETE", session);
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Calls the driver's callback, the last argument, with what the function resolves with or why it rejects. */
function scriptOf(fn: (argument: never) => unknown): string {
  return `const [argument, done] = arguments;
    Promise.resolve(argument).then(${String(fn)}).then((value) => done({ value }), (error) => done({ error: String(error) }));`;
}

function findMiniBrowser(): string | undefined {
  if (!existsSync(LIBRARIES)) return undefined;
  const folders = readdirSync(LIBRARIES).flatMap((triplet) => [
    `${LIBRARIES}/${triplet}/webkit2gtk-4.1`,
    `${LIBRARIES}/${triplet}/webkit2gtk-4.0`,
  ]);
  return folders.map((folder) => `${folder}/MiniBrowser`).find((path) => existsSync(path));
}

/** MiniBrowser has no headless mode: it draws on the display there is, or on one in memory. */
async function findDisplay(): Promise<{ name: string; server?: ChildProcess }> {
  const { DISPLAY: own } = process.env;
  if (own) return { name: own };
  if (!existsSync(DISPLAY_SERVER)) throw new NotInstalled("WebKitGTK has no display here (Debian: xvfb)");
  const server = spawn(DISPLAY_SERVER, ["-displayfd", "3", "-screen", "0", "1024x768x24", "-nolisten", "tcp"], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  // It writes its number once it is ready.
  const [number] = (await once(server.stdio[3]!, "data")) as [Buffer];
  return { name: `:${String(number).trim()}`, server };
}

/** The driver says nothing when it listens, so it is asked until it answers. */
async function startSession(root: string, binary: string): Promise<string> {
  const browserOptions = { binary, args: ["--automation"] };
  const body = { capabilities: { alwaysMatch: { "webkitgtk:browserOptions": browserOptions } } };
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    try {
      const { sessionId } = (await command("POST", `${root}/session`, body)) as { sessionId: string };
      return `${root}/session/${sessionId}`;
    } catch (error) {
      if (!(error instanceof TypeError) || performance.now() > deadline) throw error;
      await delay(50);
    }
  }
}

async function command(method: string, url: string, body?: object): Promise<unknown> {
  const response = await fetch(url, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
  const { value } = (await response.json()) as { value: unknown };
  if (response.ok) return value;
  throw new Error(`WebKitWebDriver, ${method} ${new URL(url).pathname}: ${JSON.stringify(value)}`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill();
  await ended;
}
