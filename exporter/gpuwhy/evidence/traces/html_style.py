"""The style of the HTML report, beside the palette that all of gpuwhy's pictures share."""

STYLE = """
:root { color-scheme: light dark; --text: #1b1b1f; --soft: #50505a; --back: #fff;
  --card: #f4f4f7; --grid: #dcdce3; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6ea; --soft: #b4b4be;
  --back: #16161a; --card: #222228; --grid: #35353d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; font: 1rem/1.45 system-ui, sans-serif;
  color: var(--text); background: var(--back); }
h1 { margin: 0; font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { margin: 1.75rem 0 .5rem; font-size: 1.2rem; overflow-wrap: anywhere; }
h3 { margin: 0 0 .25rem; font-size: 1rem; }
p { margin: .25rem 0; overflow-wrap: anywhere; }
.summary { font-size: 1.15rem; }
.soft, footer { color: var(--soft); }
svg { display: block; width: 100%; height: 4.5rem; background: var(--card); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; padding: 0;
  list-style: none; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem;
  background: currentColor; outline: 1px solid var(--grid); }
.cause { margin: .75rem 0; padding: .75rem 1rem; background: var(--card); border-radius: .25rem; }
.cause ul { margin: .25rem 0; padding-left: 1.25rem; }
.next { font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; }
th, td { padding: .2rem .75rem .2rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--grid); }
td { max-width: 40rem; overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
footer { margin-top: 2rem; font-size: .875rem; }
@page { margin: 1.5cm; }
@media print {
  :root { --text: #000; --soft: #444; --back: #fff; --card: #fff; --grid: #bbb; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .cause { border: 1px solid var(--grid); }
  .cause, tr, svg { break-inside: avoid; }
  h2, thead { break-after: avoid; }
  thead { display: table-header-group; }
  .wide { overflow: visible; }
  svg, .legend i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
