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

function fitted(spec, width) {
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
const SVG = "http://www.w3.org/2000/svg";

function fillList() {
  const rows = data.rows;
  list.replaceChildren(
    ...rows.orders[order.value].map((place) => {
      const option = document.createElement("option");
      const truth = data.classes[rows.truth[place]], predicted = data.classes[rows.prediction[place]];
      option.value = place;
      option.textContent = `row ${rows.number[place]}: true ${truth}, predicted ${predicted}`;
      return option;
    }),
  );
  list.selectedIndex = 0;
  showRow();
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
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
  words.textContent =
    `Row ${rows.number[place]}: the truth is ${data.classes[rows.truth[place]]}, which was given ${percent(ofTruth)}; ` +
    `predicted is ${data.classes[rows.prediction[place]]}, given ${percent(ofPredicted)}.${data.note}`;
  // bars are of groups, which are the classes themselves where those are not too many
  const truth = data.group[rows.truth[place]], predicted = data.group[rows.prediction[place]];
  showCell(document.getElementById("row-text"), rows.text?.[place], (node, text) => { node.textContent = text; });
  showCell(document.getElementById("row-image"), rows.image?.[place], (node, address) => {
    const picture = document.createElement("img");
    picture.src = address;
    picture.alt = `the image of row ${rows.number[place]}`;
    node.replaceChildren(picture);
  });
  showReasons(rows.number[place]);
  const width = Math.max(280, chart.clientWidth || 640), height = 240, bottom = 40, top = 20;
  const step = width / p.length, most = Math.max(...p, 1e-9);
  const drawn = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  drawn.setAttribute("aria-label", "Predicted distribution. " + words.textContent);
  const every = Math.ceil((p.length * 34) / width);
  p.forEach((value, k) => {
    const high = (height - bottom - top) * (value / most), x = k * step;
    const bar = element("rect", {
      x: x + 0.1 * step, y: height - bottom - high, width: 0.8 * step, height: Math.max(high, 0.5),
      class: k === truth ? "bar true" : "bar",
    });
    bar.append(element("title", {}, `${data.groups[k]}: ${percent(value)}`));
    drawn.append(bar);
    if (k % every === 0 || k === truth || k === predicted) {
      const label = data.groups[k];
      drawn.append(element("text", { x: x + step / 2, y: height - bottom + 15, "text-anchor": "middle" },
        label.length > 8 && p.length > 6 ? label.slice(0, 7) + "…" : label));
    }
    if (k === truth) drawn.append(element("text", { x: x + step / 2, y: height - 8, "text-anchor": "middle", class: "mark" }, "true"));
    if (k === predicted) {
      drawn.append(element("text", { x: Math.min(Math.max(x + step / 2, 28), width - 28), y: height - bottom - high - 6, "text-anchor": "middle" }, "predicted"));
    }
  });
  chart.replaceChildren(drawn);
}

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
document.body.dataset.ready = "true";
