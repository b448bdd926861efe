const data = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

// ---- charts ---------------------------------------------------------------------------------

function theme(isDark) {
  const text = isDark ? "#e6eaf0" : "#1a2230";
  const line = isDark ? "#364050" : "#d5dbe4";
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { labelColor: text, titleColor: text, gridColor: line, domainColor: line, tickColor: line,
      labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal", labelOverlap: true },
    legend: { labelColor: text, titleColor: text, titleFontWeight: "normal" },
    line: { strokeWidth: 2 },
  };
}

// The names of classes stand upright where there is room for all of them, and on their side elsewhere.
function turned(node, angle) {
  if (Array.isArray(node)) return node.map((inner) => turned(inner, angle));
  if (node === null || typeof node !== "object") return node;
  const made = Object.fromEntries(Object.entries(node).map(([key, inner]) => [key, key === "data" || key === "datasets" ? inner : turned(inner, angle)]));
  if ("labelAngle" in made) made.labelAngle = angle;
  return made;
}

function fitted(spec, width) {
  if (spec.usermeta?.room) return turned(spec, spec.usermeta.room <= width - 150 ? 0 : -90);
  if (!spec.vconcat) return spec;
  // axis titles and labels stand outside of the width that a chart below another is given
  return { ...spec, vconcat: spec.vconcat.map((one) => ({ ...one, width: Math.max(120, width - 90) })) };
}

async function drawCharts(isDark) {
  for (const place of document.querySelectorAll("[data-chart]")) {
    const spec = fitted(data.charts[place.dataset.chart], place.clientWidth);
    await window.vegaEmbed(place, spec, {
      actions: false, renderer: "svg", mode: "vega-lite", config: theme(isDark), tooltip: { theme: isDark ? "dark" : "light" },
    });
    const drawn = place.querySelector("svg");
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", spec.description);
    for (const inner of drawn.querySelectorAll("[role], [aria-label], [aria-roledescription]")) {
      inner.removeAttribute("role");
      inner.removeAttribute("aria-label");
      inner.removeAttribute("aria-roledescription");
    }
  }
}

let drawing = Promise.resolve();
function redraw(isDark) {
  drawing = drawing.then(() => drawCharts(isDark));
  return drawing;
}

// ---- single rows ----------------------------------------------------------------------------

const order = document.getElementById("row-order");
const list = document.getElementById("row-list");
const words = document.getElementById("row-words");
const chart = document.getElementById("row-chart");

function fillList() {
  const rows = data.rows;
  list.replaceChildren(
    ...rows.orders[order.value].map((place) => {
      const option = document.createElement("option");
      const [ofTruth, ofPredicted] = rows.given[place].map((share) => `${(100 * share).toFixed(1)} %`);
      const off = Math.abs(rows.truth[place] - rows.prediction[place]);
      // Short, as the lines of a list cannot be broken; the classes stand beside it.
      const said = { error: `off by ${off}`, surprise: `truth given ${ofTruth}`, uncertainty: `best given ${ofPredicted}` };
      option.value = place;
      option.textContent = `row ${rows.number[place]}: ${said[order.value]}`;
      return option;
    }),
  );
  list.selectedIndex = 0;
  showRow();
}

function made(name, kind, text) {
  const node = document.createElement(name);
  if (kind) node.className = kind;
  if (text !== undefined) node.textContent = text;
  return node;
}

function showCell(node, value, fill) {
  node.hidden = value === undefined || value === null;
  if (!node.hidden) fill(node, value);
}

function showReasons(number) {
  const place = document.getElementById("row-reasons"), found = data.reasons?.[number];
  place.hidden = found === undefined;
  if (place.hidden) return;
  const title = document.createElement("h3"), list = document.createElement("ul");
  title.textContent = "Reasons";
  for (const sentence of found.sentences) {
    const item = document.createElement("li");
    item.textContent = sentence;
    list.append(item);
  }
  place.replaceChildren(title, list);
}

function showRow() {
  const rows = data.rows, place = Number(list.value), p = rows.probabilities[place];
  const [ofTruth, ofPredicted] = rows.given[place];
  const percent = (value) => `${(100 * value).toFixed(1)} %`;
  const line = data.lines ? ` (line ${rows.number[place] + 2} in a spreadsheet)` : "";
  words.textContent =
    `Row ${rows.number[place]}${line}: the truth is ${data.classes[rows.truth[place]]}, which was given ${percent(ofTruth)}; ` +
    `predicted is ${data.classes[rows.prediction[place]]}, given ${percent(ofPredicted)}.${data.note}`;
  // bars are of groups, which are the classes themselves where those are not too many
  const truth = data.group[rows.truth[place]], predicted = data.group[rows.prediction[place]];
  showCell(document.getElementById("row-text"), rows.text?.[place], (node, text) => { node.textContent = text; });
  showCell(document.getElementById("row-image"), rows.image?.[place], (node, address) => {
    const image = document.createElement("img");
    image.src = address;
    image.alt = `the image of row ${rows.number[place]}`;
    node.replaceChildren(image);
  });
  showReasons(rows.number[place]);
  showCell(document.getElementById("row-columns"), rows.cells?.[place], (_, cells) => {
    document.getElementById("row-cells").replaceChildren(...cells.map((cell, i) => {
      const pair = made("div");
      pair.append(made("dt", "", rows.names[i]), made("dd", "", cell === "" ? "missing" : cell));
      return pair;
    }));
  });
  const most = Math.max(...p, 1e-9), bars = made("div", "bars");
  bars.setAttribute("role", "img");
  bars.setAttribute("aria-label", "Predicted distribution. " + words.textContent);
  p.forEach((value, k) => {
    const row = made("div", k === truth ? "row true" : "row"), track = made("span", "track"), bar = made("span", "bar");
    bar.style.width = `${(100 * value) / most}%`;
    track.append(bar);
    const figure = made("span", "value", `${percent(value)} `);
    const marks = [k === truth ? "true" : "", k === predicted ? "predicted" : ""].filter(Boolean);
    figure.append(made("span", "mark", marks.join(", ")));
    row.append(made("span", "name", data.groups[k]), track, figure);
    bars.append(row);
  });
  chart.replaceChildren(bars);
}

document.documentElement.style.setProperty("--method", data.colour);
order.addEventListener("change", fillList);
list.addEventListener("change", showRow);
fillList();

await redraw(dark.matches);
dark.addEventListener("change", () => redraw(dark.matches));
let pending;
window.addEventListener("resize", () => {
  clearTimeout(pending);
  pending = setTimeout(() => { showRow(); redraw(dark.matches); }, 200);
});
window.addEventListener("beforeprint", () => redraw(false));
window.addEventListener("afterprint", () => redraw(dark.matches));

// ---- words ----------------------------------------------------------------------------------

// A term leads to the glossary; where it can, the page shows its meaning on the spot instead.
const meaning = document.getElementById("meaning");
if (meaning.showPopover) {
  document.addEventListener("click", (event) => {
    const term = event.target.closest?.("a.term");
    const entry = term && document.getElementById(term.hash.slice(1));
    if (!entry || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    document.getElementById("meaning-term").textContent = entry.querySelector("dt").textContent;
    document.getElementById("meaning-text").textContent = entry.querySelector("dd").textContent;
    meaning.showPopover();
  });
}
document.body.dataset.ready = "true";

// Paper has nothing to unfold.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
