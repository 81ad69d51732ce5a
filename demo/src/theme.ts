/**
 * Dark and light: as the system has it, until the button says otherwise.
 */
import { byId } from "./dom.ts";

const STORED = "agarose-theme";

export function startTheme(onChange: () => void): void {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: light)");
  const current = (): string => document.documentElement.dataset["theme"] ?? (system.matches ? "light" : "dark");
  const show = (): void => {
    button.textContent = current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use the ${current() === "dark" ? "light" : "dark"} theme`);
  };
  const stored = localStorage.getItem(STORED);
  if (stored) document.documentElement.dataset["theme"] = stored;
  show();
  if (stored) onChange();
  button.addEventListener("click", () => {
    const next = current() === "dark" ? "light" : "dark";
    document.documentElement.dataset["theme"] = next;
    localStorage.setItem(STORED, next);
    show();
    onChange();
  });
  system.addEventListener("change", () => {
    show();
    onChange();
  });
}
