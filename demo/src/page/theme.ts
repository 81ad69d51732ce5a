/** Dark and light: the setting of the system, until the button overrides it. */
import { byId } from "./dom.ts";

const STORED = "agarose-theme";

export function startTheme(onChange: () => void): void {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: light)");
  const current = (): string => document.documentElement.dataset["theme"] ?? (system.matches ? "light" : "dark");
  const show = (): void => {
    button.textContent = current() === "dark" ? "Light theme" : "Dark theme";
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
