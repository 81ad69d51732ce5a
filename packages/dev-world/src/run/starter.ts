/**
 * Notices that whatever started this process is gone, so that a local world does not outlive it.
 *
 * A process whose parent dies gets another parent. npm starts commands through a shell, which survives npm, so the
 * links above this process are watched up to npm.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

/** How often the links are looked at; `ps`, where there is no /proc, costs a process each time. */
const POLL_MS = process.platform === "linux" ? 500 : 2000;
/** npm, its shell and a script or two. */
const LINKS_MAX = 6;

interface Ancestor {
  readonly parent: number;
  readonly title: string;
}

/**
 * Calls `onGone` once when a process between this one and its starter has ended.
 *
 * @returns a function that ends the watch.
 */
export async function watchStarter(onGone: () => void): Promise<() => void> {
  const first = process.ppid;
  const above = process.env["npm_command"] === undefined ? [] : await linksToNpm(first);
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    const isGone = process.ppid !== first || !(await allHold(above));
    if (isOver) return;
    if (isGone) onGone();
    else timer = setTimeout(() => void look(), POLL_MS).unref();
  };
  void look();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** The links from `pid` up to npm, each as a process and its parent; none where npm is not above. */
async function linksToNpm(pid: number): Promise<[number, number][]> {
  const links: [number, number][] = [];
  for (let at = pid; links.length < LINKS_MAX;) {
    const ancestor = await ancestorOf(at);
    if (ancestor === undefined) return [];
    if (/^(npm|npx)\b/.test(ancestor.title)) return links;
    links.push([at, ancestor.parent]);
    at = ancestor.parent;
  }
  return [];
}

async function allHold(links: readonly [number, number][]): Promise<boolean> {
  for (const [pid, parent] of links) if ((await ancestorOf(pid))?.parent !== parent) return false;
  return true;
}

/** The parent and the title of a process; undefined when it has ended or cannot be looked at. */
async function ancestorOf(pid: number): Promise<Ancestor | undefined> {
  try {
    if (process.platform === "linux") {
      // `pid (title) state parent …`: the title may contain anything.
      const stat = await readFile(`/proc/${pid}/stat`, "utf8");
      const [, title = "", parent] = /\((.*)\) \S (\d+)/s.exec(stat) ?? [];
      return { title, parent: Number(parent) };
    }
    const { stdout } = await promisify(execFile)("ps", ["-o", "ppid=,command=", "-p", String(pid)]);
    const [, parent, title = ""] = /^\s*(\d+)\s+(.*)/.exec(stdout) ?? [];
    return { title, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
