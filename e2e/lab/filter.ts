/** Shows the plots and rows that the form chooses. It runs in the page, which shows all of them without it. */
const form = document.querySelector("form")!;
const plots = [...document.querySelectorAll<HTMLElement>("section[data-question]")];

function filter(): void {
  const chosen = new FormData(form);
  const systems = new Set(chosen.getAll("system"));
  for (const plot of plots) {
    let shown = 0;
    for (const row of plot.querySelectorAll<HTMLElement>("tr[data-system]")) {
      row.hidden = !systems.has(row.dataset["system"]!);
      if (!row.hidden) shown++;
    }
    const fits = ["question", "way", "world", "fault"].every((name) => {
      const wanted = chosen.get(name);
      return wanted === "" || wanted === plot.dataset[name];
    });
    plot.hidden = !fits || shown === 0;
  }
  const count = plots.filter(({ hidden }) => !hidden).length;
  document.querySelector("output")!.textContent = `${count} of ${plots.length} plots`;
}

/** Checks all systems, or none. */
function check(all: boolean): void {
  for (const box of form.querySelectorAll<HTMLInputElement>("input[name=system]")) box.checked = all;
  filter();
}

form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
document.querySelector("#all-systems")!.addEventListener("click", () => check(true));
document.querySelector("#no-system")!.addEventListener("click", () => check(false));
// A browser restores the form of a page that it reloads.
filter();
