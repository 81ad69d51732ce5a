/** The style sheet of a report. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d8dee4; --bar: #2f6f9f; --bad: #b3261e;
  --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa7b3; --line: #30363d; --bar: #6cb2e0; --bad: #ff8b80; --paper: #0f1318; }
}
body { max-width: 860px; margin: 0 auto; padding: 24px 16px 48px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 26px; }
h2 { margin: 32px 0 8px; padding-top: 12px; border-top: 1px solid var(--line); font-size: 19px; }
h3 { margin: 20px 0 6px; font-size: 15px; }
.soft { color: var(--soft); }
.good { color: var(--ink); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; overflow-wrap: anywhere; text-align: left; vertical-align: middle; font-weight: 400; }
thead th { color: var(--soft); font-size: 13px; }
.plot th { width: 34%; }
.bar { display: block; min-width: 2px; height: 8px; border-radius: 2px; background: var(--bar); }
.bar.bad { background: var(--bad); }
.plot span { color: var(--soft); font-size: 13px; }
@media print { section { break-inside: avoid; } .bar { print-color-adjust: exact; } }
`;
