/** Tabs as WAI-ARIA describes them. One is in the tab order, and arrow keys move between them. */
import { byId, h } from "./dom.ts";

export interface Tab {
  /** The id of the panel in index.html. */
  readonly id: string;
  readonly title: string;
  readonly onShow?: () => void;
}

export function startTabs(tabs: readonly Tab[]): void {
  const buttons = tabs.map((tab, index) =>
    h(
      "button",
      { type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": tab.id, onclick: () => select(index) },
      tab.title,
    ),
  );
  const list = byId("tabs");
  list.append(...buttons);
  list.addEventListener("keydown", ({ key }) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (step === undefined) return;
    const current = buttons.findIndex((button) => button.getAttribute("aria-selected") === "true");
    const next = (current + step + tabs.length) % tabs.length;
    select(next);
    buttons[next]!.focus();
  });
  select(0);

  function select(chosen: number): void {
    tabs.forEach(({ id }, index) => {
      const on = index === chosen;
      buttons[index]!.setAttribute("aria-selected", String(on));
      buttons[index]!.tabIndex = on ? 0 : -1;
      byId(id).hidden = !on;
    });
    tabs[chosen]!.onShow?.();
  }
}
