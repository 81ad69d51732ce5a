/** Programs of the user that fail, hang, print too much, or get to see the end of this process. */
import { expect, test } from "vitest";
import { runUserCommand } from "./user-command.ts";

const SECRET = "hunter2";

test("what it prints is the result, and what it gets is on its stdin", async () => {
  expect(await runUserCommand(["sh", "-c", "cat"], { input: Buffer.from("signed") })).toBe("signed");
});

test.each([
  ["that fails", ["sh", "-c", `echo ${SECRET} >&2; echo ${SECRET}; exit 3`, `--pin=${SECRET}`], "ended with 3"],
  ["that is not there", ["/no/such/program", `--pin=${SECRET}`], "did not run: ENOENT"],
  ["that prints for ever", ["sh", "-c", "yes"], "printed more than"],
])("one %s is named without its arguments or what it printed", async (_what, command, message) => {
  const error = await runUserCommand(command).catch((cause: unknown) => cause as Error);
  expect((error as Error).message).toContain(message);
  expect((error as Error).message).not.toContain(SECRET);
});

test("one that hangs is ended, also when it ignores SIGTERM and a child of it holds its output", async () => {
  const command = ["sh", "-c", "trap '' TERM; sleep 30 & sleep 30"];
  await expect(runUserCommand(command, { limitMs: 200 })).rejects.toThrow("did not end within 200 ms");
});
