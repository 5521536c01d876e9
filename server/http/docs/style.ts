/** The style sheet of the page: the explorer's tokens, so that both have the same colours, and the page's own rules. */
import { readFileSync } from "node:fs";

/**
 * The style sheet as text. Reads the tokens, which `npm run build` puts beside this file.
 * @throws Error if they are missing
 */
export function docsStyle(): string {
  return readFileSync(new URL("tokens.css", import.meta.url), "utf8") + OWN;
}

const OWN = `
* { box-sizing: border-box; }
html { scroll-padding-top: 4.5rem; background: var(--page); }
body {
  margin: 0;
  color: var(--text);
  font: var(--normal)/1.55 var(--font);
}
a { color: var(--accent); text-underline-offset: 0.2em; }
code, pre { font-family: var(--mono); font-size: var(--small); }
code { overflow-wrap: anywhere; }
h1 { margin: 0 0 0.25rem; font-size: var(--title); letter-spacing: -0.015em; }
h2 { margin: 3rem 0 0.25rem; font-size: 1.25rem; }
h3 { margin: 0; font-size: var(--normal); font-weight: 400; }
h4 { margin: 1.5rem 0 0.5rem; font-size: var(--small); color: var(--text-soft); letter-spacing: 0.03em; text-transform: uppercase; }
p { margin: 0.5rem 0; max-width: 46rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 0.25rem; }
.skip { position: absolute; left: 1rem; top: -4rem; z-index: 2; padding: 0.5rem 1rem; background: var(--surface); }
.skip:focus { top: 0.5rem; }
header {
  position: sticky; top: 0; z-index: 1;
  display: flex; justify-content: space-between; align-items: baseline; gap: 1rem;
  padding: 0.6rem 1.5rem; background: var(--surface); border-bottom: 1px solid var(--line);
}
header p { margin: 0; }
.title { font-size: 1.0625rem; font-weight: 650; }
.version, .links span { color: var(--text-soft); font-weight: 400; }
.links a { margin-right: 0.75rem; }
header form { display: flex; flex: 0 1 24rem; gap: 0.4rem; min-width: 0; }
header input, header button {
  padding: 0.25rem 0.6rem; color: var(--text); background: var(--page); border: 1px solid var(--line); border-radius: 0.4rem;
  font: var(--small)/1.5 var(--font);
}
header input { flex: 1; min-width: 0; }
header input::placeholder { color: var(--text-soft); opacity: 1; }
header button { cursor: pointer; }
.columns { display: grid; grid-template-columns: 19rem minmax(0, 1fr); max-width: 84rem; margin: 0 auto; }
nav {
  position: sticky; top: 3.2rem; align-self: start; height: calc(100vh - 3.2rem);
  padding: 1.5rem 0.5rem 2rem 1.5rem; overflow-y: auto; font-size: var(--small);
}
nav > details > summary { display: none; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: flex; gap: 0.5rem; padding: 0.15rem 0.35rem; border-radius: 0.25rem; color: var(--text); text-decoration: none; }
nav li a:hover { background: var(--sunken); }
nav .path { font-family: var(--mono); font-size: 0.75rem; overflow-wrap: anywhere; }
nav .method { flex: none; width: 3.1rem; padding: 0; font-size: 0.6875rem; line-height: 1.8; background: none; text-align: left; text-transform: uppercase; }
nav .area { margin: 1rem 0 0.15rem; font-weight: 650; }
nav .area a { padding: 0 0.35rem; color: inherit; text-decoration: none; }
main { min-width: 0; padding: 2rem 1.5rem 6rem; }
.lead { font-size: 1.0625rem; color: var(--text-soft); }
.operation { margin: 0.6rem 0; background: var(--surface); border: 1px solid var(--line); border-radius: 0.6rem; }
.operation[open] { border-color: var(--text-soft); }
.operation > summary { padding: 0.6rem 0.9rem; cursor: pointer; list-style: none; }
.operation > summary::-webkit-details-marker { display: none; }
.operation > summary:hover { background: var(--sunken); border-radius: 0.6rem; }
.operation > summary h3 { display: grid; grid-template-columns: 4rem minmax(0, 1fr); gap: 0.1rem 0.6rem; align-items: baseline; }
.operation > summary h3:not(:has(.method)) { display: block; font-weight: 600; }
.operation .path { font-weight: 600; }
.operation .summary { grid-column: 2; color: var(--text-soft); }
.body { padding: 0 0.9rem 1rem; border-top: 1px solid var(--line); }
.name { font-family: var(--mono); font-size: 0.75rem; }
.name a { color: var(--text-soft); scroll-margin-top: 9rem; }
.target { scroll-margin-top: 5rem; }
.method, .status {
  display: inline-block; padding: 0 0.4rem; border-radius: 0.3rem;
  font: 600 0.75rem/1.6 var(--mono); text-align: center;
}
.get, .kept { color: var(--info); background: var(--info-soft); }
.post { color: var(--good); background: var(--good-soft); }
.good { color: var(--good); background: var(--good-soft); }
.delete, .bad { color: var(--bad); background: var(--bad-soft); }
.members { margin: 0.5rem 0; border-left: 2px solid var(--line); }
.row { display: grid; grid-template-columns: minmax(8rem, 15rem) minmax(0, 1fr); gap: 0 1rem; padding: 0.3rem 0 0.3rem 0.75rem; }
.row + .row { border-top: 1px solid var(--line); }
dt { overflow-wrap: anywhere; }
dd { margin: 0; }
dd p { margin: 0.1rem 0; font-size: 0.875rem; color: var(--text-soft); }
dd .members .row { grid-template-columns: minmax(6rem, 11rem) minmax(0, 1fr); }
.type { font-size: var(--small); }
.bound { margin-left: 0.6rem; font-size: var(--small); color: var(--text-soft); }
.label { font-size: 0.75rem; color: var(--warning); }
.answer { margin: 0.4rem 0; max-width: none; }
.media { color: var(--text-soft); }
.example { margin: 0.5rem 0; }
.example > summary { cursor: pointer; font-size: var(--small); color: var(--accent); }
pre { margin: 0.35rem 0; padding: 0.75rem 0.9rem; overflow-x: auto; max-height: 30rem; background: var(--sunken); border-radius: 0.4rem; }
pre code { overflow-wrap: normal; }
@media (max-width: 56rem) {
  .columns { grid-template-columns: minmax(0, 1fr); }
  nav { position: static; height: auto; padding: 1rem 1rem 0; }
  nav > details[open] { max-height: 45vh; overflow-y: auto; border-bottom: 1px solid var(--line); }
  nav > details > summary { display: list-item; padding: 0.4rem 0; cursor: pointer; font-weight: 600; }
  header { padding: 0.6rem 1rem; }
  main { padding: 1rem 1rem 4rem; }
}
@media (max-width: 36rem) {
  .row, dd .members .row { grid-template-columns: minmax(0, 1fr); }
  .operation > summary h3 { display: block; }
  .operation .summary { display: block; margin-top: 0.2rem; }
  .links span, .version { display: none; }
  header { flex-wrap: wrap; }
  header form { order: 1; flex-basis: 100%; }
}
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
@media print { nav, header { display: none; } .columns { display: block; } }
`;
