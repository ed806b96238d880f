// Draws a release: curves, maps or slices, with the privacy noise apart from the model.
// A server's page asks an endpoint for the numbers; a published file has them inside.
"use strict";

const $ = (id) => document.getElementById(id);
const short = (value) => String(Number(value.toPrecision(4))).replace("-", "−");
const NARROW = 600; // pixels

function make(tag, options = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

const row = (...cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)));

// Rows of a table; on a phone every cell stands under the title of its column.
function fill(body, rows) {
  const titles = [...body.closest("table").querySelectorAll("th")].map((each) => each.textContent);
  rows.forEach((each) => [...each.cells].forEach((cell, k) => cell.setAttribute("data-title", titles[k])));
  body.replaceChildren(...rows);
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["text", "line", "back", "panel", "mean", "model", "privacy"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// The plotting script is large and may come last.
const plotting = new Promise((resolve, reject) => {
  const script = document.querySelector("script[src$='plotly.js']");
  if (window.Plotly || !script) resolve();
  else {
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error("The plotting script did not load.")));
  }
});

const drawings = []; // all of them are drawn again when the colours change

async function redraw([place, picture]) {
  const { traces, layout } = picture(colours(), place.clientWidth < NARROW);
  await Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
}

async function draw(place, picture) {
  await plotting;
  drawings.push([place, picture]);
  await redraw([place, picture]);
}

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawings.filter(([place]) => place.isConnected).forEach(redraw);
});

function frame(colour, titles, narrow) {
  const axis = (title) => ({
    title: { text: escaped(title), standoff: 8 }, gridcolor: `${colour.line}44`, linecolor: colour.line,
    zeroline: false, automargin: true, fixedrange: true, nticks: narrow ? 5 : 8,
  });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
    font: { color: colour.text, size: 13, family: "system-ui, sans-serif" },
    margin: { l: 10, r: 10, t: 10, b: 10 }, showlegend: false,
    hoverlabel: {
      bgcolor: colour.panel, bordercolor: colour.line, font: { color: colour.text }, align: "left",
    },
    xaxis: axis(titles[0]), yaxis: axis(titles[1]),
  };
}

const escaped = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

// A value of an input as people write it: a date, a level, or a number.
function worded(view, i, value) {
  const ticks = view.ticks[i], along = view.axes[i];
  const digits = along[along.length - 1] - along[0] > 30 ? 10 : 16; // days, or minutes too
  if (ticks === "date") return new Date(864e5 * value).toISOString().slice(0, digits).replace("T", " ");
  return Array.isArray(ticks) ? ticks[Math.round(value)] : short(value);
}

// Such words along an axis.
function ticked(axis, view, i, narrow) {
  if (!view.ticks[i]) return;
  const along = view.axes[i], most = Math.min(narrow ? 3 : 6, along.length);
  const tickvals = [...Array(most).keys()].map((k) => along[Math.floor((k + 0.5) * along.length / most)]);
  Object.assign(axis, { tickmode: "array", tickvals, ticktext: tickvals.map((value) => escaped(worded(view, i, value))) });
}

const half = (panel, name, k) => 0.5 * (panel[`${name}high`][k] - panel[`${name}low`][k]);
const apart = (panel) => "privacy_low" in panel;

// What a panel says at one point, in parts.
function told(view, panel, k) {
  const said = [
    `${view.curve} ${short(panel.mean[k])}`,
    `90% range in all from ${short(panel.low[k])} to ${short(panel.high[k])}`,
  ];
  if (apart(panel)) {
    said.push(`due to privacy noise ±${short(half(panel, "privacy_", k))}`);
    said.push(`due to the model ±${short(half(panel, "model_", k))}`);
  }
  return said;
}

const hover = (view, panel, inputs) => panel.points.map((point, k) => [
  ...inputs.map((i) => `${view.inputs[i]} ${worded(view, i, point[i])}`), ...told(view, panel, k),
].map(escaped).join("<br>"));

function legend(entries) {
  return make("ul", { class: "legend" }, ...entries.map(([kind, text]) => (
    make("li", {}, make("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text))));
}

function plot(label, className = "plot") {
  return make("div", { class: className, role: "img", "aria-label": label });
}

// Sliders that read the numbers at a point: by keyboard, and aloud.
function reader(view, inputs, said, moved) {
  const output = make("output", { class: "reading" });
  const sliders = inputs.map((i) => make("input", {
    type: "range", min: "0", max: String(view.axes[i].length - 1), step: "1",
    value: String(Math.floor(view.axes[i].length / 2)),
  }));
  const show = (touched) => {
    const places = sliders.map((slider) => Number(slider.value));
    const at = inputs.map((i, n) => `${view.inputs[i]} = ${worded(view, i, view.axes[i][places[n]])}`);
    const text = `At ${at.join(", ")}: ${said(places).join("; ")}.`;
    output.textContent = text;
    sliders.forEach((slider, n) => slider.setAttribute("aria-valuetext", slider === touched ? text : at[n]));
    moved(places);
  };
  sliders.forEach((slider) => slider.addEventListener("input", () => show(slider)));
  const labels = inputs.map((i, n) => make("label", {}, `Read at ${view.inputs[i]}`, sliders[n]));
  return { element: make("div", { class: "reader" }, ...labels, output), show };
}

async function curve(view, panel, into, title) {
  const input = panel.input, x = panel.points.map((point) => point[input]), both = apart(panel);
  const ends = `${view.inputs[input]} from ${worded(view, input, x[0])} to ${worded(view, input, x[x.length - 1])}`;
  const label = `${panel.output} along ${ends}: ${view.curve} from ${short(Math.min(...panel.mean))} `
    + `to ${short(Math.max(...panel.mean))}. The sliders below read every value.`;
  const place = plot(label, both ? "plot tall" : "plot");
  const kinds = [["mean", view.curve], ["range", "90% range in all"]];
  if (both) kinds.push(["privacy", "due to privacy noise"], ["model", "due to the model"]);
  let at = 0;
  const picture = (colour, narrow) => {
    const layout = frame(colour, [view.inputs[input], panel.output], narrow);
    ticked(layout.xaxis, view, input, narrow);
    const flat = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
    const band = (name, fillcolor) => [
      { ...flat, y: panel[`${name}low`] },
      { ...flat, y: panel[`${name}high`], fill: "tonexty", fillcolor },
    ];
    const traces = band("", `${colour.model}2e`);
    if (both) traces.push(...band("privacy_", `${colour.privacy}70`));
    traces.push({
      x, y: panel.mean, mode: "lines", line: { color: colour.mean, width: 2.5 },
      text: hover(view, panel, [input]), hoverinfo: "text",
    });
    traces.push({
      x: [x[at]], y: [panel.mean[at]], mode: "markers", hoverinfo: "skip",
      marker: { size: 11, color: colour.mean, line: { color: colour.back, width: 2 } },
    });
    layout.hovermode = "x";
    if (view.curve === "probability") layout.yaxis.range = [-0.02, 1.02];
    layout.shapes = [{
      type: "line", x0: x[at], x1: x[at], y0: 0, y1: 1, yref: "paper",
      line: { color: colour.text, width: 1, dash: "dot" },
    }];
    if (both) {
      layout.yaxis.domain = [0.42, 1];
      layout.yaxis2 = {
        ...layout.yaxis, domain: [0, 0.3], rangemode: "tozero", nticks: 4,
        title: { text: "± of 90% range", standoff: 8 },
      };
      layout.xaxis.anchor = "y2";
      for (const name of ["privacy", "model"]) {
        traces.push({
          x, y: x.map((_, k) => half(panel, `${name}_`, k)), yaxis: "y2", mode: "lines",
          line: { color: colour[name], width: 2.5, dash: name === "model" ? "dash" : "solid" },
          hoverinfo: "skip",
        });
      }
    }
    return { traces, layout };
  };
  const read = reader(view, [input], ([k]) => told(view, panel, k), ([k]) => {
    at = k;
    if (place.data) redraw([place, picture]);
  });
  into.append(make("section", { class: "panel" }, make("h2", {}, title), legend(kinds), place, read.element));
  read.show();
  await draw(place, picture);
}

async function map(view, panel, into, title) {
  const geographic = view.places.length > 0;
  const [first, second] = geographic ? view.places : [0, 1]; // longitude runs to the right
  const x = view.axes[first], y = view.axes[second], depth = view.axes[1].length;
  const index = (i, j) => (first === 0 ? i * depth + j : j * depth + i);
  const grid = (of) => y.map((_, j) => x.map((_, i) => of(index(i, j))));
  const texts = hover(view, panel, [first, second]);
  const middle = Math.PI * (y[0] + y[y.length - 1]) / 360;
  const at = [0, 0];
  const shown = [["mean", view.curve, (k) => panel.mean[k]]];
  if (apart(panel)) {
    shown.push(["privacy", "± due to privacy noise", (k) => half(panel, "privacy_", k)]);
    shown.push(["model", "± due to the model", (k) => half(panel, "model_", k)]);
  } else shown.push(["model", "± of the 90% range", (k) => half(panel, "", k)]);
  const values = shown.map(([, , of]) => panel.mean.map((_, k) => of(k)));
  const most = Math.max(...values.slice(1).flat()); // one scale, so that they compare
  const place = shown.map(([kind, name], n) => plot(
    `Map of ${panel.output}, ${name}: from ${short(Math.min(...values[n]))} to `
    + `${short(Math.max(...values[n]))}. The sliders below read every value.`,
    kind === "mean" ? "plot map" : "plot",
  ));
  const picture = (n) => (colour, narrow) => {
    const [kind, , of] = shown[n];
    const layout = frame(colour, [view.inputs[first], view.inputs[second]], narrow);
    ticked(layout.xaxis, view, first, narrow);
    ticked(layout.yaxis, view, second, narrow);
    if (geographic) {
      const scaleratio = 1 / Math.cos(middle);
      Object.assign(layout.yaxis, { scaleanchor: "x", scaleratio, constrain: "domain" });
      layout.xaxis.constrain = "domain";
    }
    const bar = {
      orientation: "h", outlinewidth: 0, thickness: 12, y: kind === "mean" ? -0.2 : -0.32, yanchor: "top", len: narrow ? 1 : 0.7,
      title: { text: escaped(kind === "mean" ? panel.output : `± of ${panel.output}`), side: "bottom" },
    };
    const scale = kind === "mean" ? { colorscale: "Viridis" } : {
      colorscale: [[0, colour.back], [1, colour[kind]]], zmin: 0, zmax: most || 1,
    };
    const traces = [
      {
        type: "heatmap", x, y, z: grid(of), text: grid((k) => texts[k]), hoverinfo: "text",
        colorbar: bar, ...scale,
      },
      {
        x: [x[at[0]]], y: [y[at[1]]], mode: "markers", hoverinfo: "skip", showlegend: false,
        marker: { size: 14, symbol: "circle-open", color: colour.text, line: { width: 3 } },
      },
      {
        x: [x[at[0]]], y: [y[at[1]]], mode: "markers", hoverinfo: "skip", showlegend: false,
        marker: { size: 10, symbol: "circle-open", color: colour.back, line: { width: 2 } },
      },
    ];
    return { traces, layout };
  };
  const read = reader(view, [first, second], ([i, j]) => told(view, panel, index(i, j)), (places) => {
    [at[0], at[1]] = places;
    place.forEach((each) => {
      if (each.data) Plotly.restyle(each, { x: [[x[at[0]]], [x[at[0]]]], y: [[y[at[1]]], [y[at[1]]]] }, [1, 2]);
    });
  });
  const figure = (n) => make("figure", {}, make("figcaption", {}, shown[n][1]), place[n]);
  into.append(make(
    "section", { class: "panel" }, make("h2", {}, title), figure(0), read.element,
    make("p", { class: "soft" }, "What makes the 90% range that wide, as half of a width, in one scale of colours:"),
    make("div", { class: "pair" }, ...shown.slice(1).map((_, n) => figure(n + 1))),
  ));
  read.show();
  await Promise.all(place.map((each, n) => draw(each, picture(n))));
}

function numbers(view) {
  const names = [
    "mean", "low", "high", "privacy_low", "privacy_high", "model_low", "model_high",
  ].filter((name) => name in view.panels[0]);
  const several = view.outputs.length > 1;
  const head = [...(several ? ["output"] : []), ...view.inputs, ...names.map((name) => name.replace("_", " "))];
  $("numbers-head").replaceChildren(make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name))));
  $("numbers").replaceChildren(...view.panels.flatMap((panel) => panel.points.map((point, k) => row(
    ...(several ? [panel.output] : []), ...point.map(short), ...names.map((name) => short(panel[name][k])),
  ))));
}

async function showView(view) {
  $("drawing").remove();
  const details = $("as-numbers");
  details.addEventListener("toggle", () => numbers(view), { once: true });
  if (view.kind === "slices") {
    $("held").textContent = `Each picture varies one input and holds the others ${view.held}: `
      + `${view.inputs.map((name, i) => `${name} = ${short(view.held_at[i])}`).join(", ")}.`;
  }
  for (const panel of view.panels) {
    const by = view.kind === "map" ? view.inputs.join(" and ") : view.inputs[panel.input];
    const title = `${panel.output} by ${by}`;
    await (view.kind === "map" ? map : curve)(view, panel, $("views"), title);
  }
}

if ($("view-data")) showView(JSON.parse($("view-data").textContent));
