// Draws curves: one output along one input, with its 90% interval and the part that privacy noise makes.
"use strict";

const NARROW = 560, LONGEST = 14; // pixels, and characters of a name beside a curve
const half = (panel, name, k) => 0.5 * (panel[`${name}high`][k] - panel[`${name}low`][k]);
const isSplit = (panel) => "privacy_low" in panel;

// A value of an input as people write it: a date, a level, or a number.
function worded(view, i, value) {
  const ticks = view.ticks[i], along = view.axes[i];
  const digits = along[along.length - 1] - along[0] > 30 ? 10 : 16; // days, or minutes too
  if (ticks === "date") return new Date(864e5 * value).toISOString().slice(0, digits).replace("T", " ");
  if (Array.isArray(ticks)) return ticks[Math.round(value)];
  const decimals = Math.max(0, Math.min(12, Math.ceil(-Math.log10(Math.abs(along[along.length - 1] - along[0]) / 100 || 1))));
  return String(Number(value.toFixed(decimals))).replace("-", "−");
}

const withUnit = (name, unit) => (unit && !name.includes(unit) ? `${name}, ${unit}` : name);

// The first days of months between two days since 1970, as few as asked for.
function monthsBetween(low, high, count) {
  const first = new Date(864e5 * low), months = (high - low) / 30.4;
  const step = [1, 2, 3, 6, 12, 24, 60, 120, 240].find((each) => months / each <= count) || 600;
  const made = [];
  for (let k = 0; k <= months + step; k += 1) {
    const day = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + k, 1) / 864e5;
    if (day >= low && day <= high && (first.getUTCFullYear() * 12 + first.getUTCMonth() + k) % step === 0) made.push(day);
  }
  return made;
}

// Where words stand along an input: at round numbers, at dates, or at every level.
function stepsAlong(view, i, count) {
  const along = view.axes[i], ticks = view.ticks[i];
  if (!ticks) return roundSteps(along[0], along[along.length - 1], count);
  if (ticks === "date" && along[along.length - 1] - along[0] > 90) return monthsBetween(along[0], along[along.length - 1], count);
  const most = Math.min(count, along.length), every = Array.isArray(ticks) ? 0 : 0.5;
  return [...Array(most).keys()].map((k) => along[Math.floor((k + every) * along.length / most)]);
}

function tickText(view, i, value) {
  const long = view.ticks[i] === "date" && view.axes[i][view.axes[i].length - 1] - view.axes[i][0] > 90;
  return long ? new Date(864e5 * value).toLocaleDateString("en-GB", { month: "short", year: "numeric", timeZone: "UTC" }) : worded(view, i, value);
}

// A place on paper for every number: linear between two ends.
const scale = (low, high, from, to) => (value) => from + (to - from) * (high > low ? (value - low) / (high - low) : 0.5);
const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
const area = (x, low, high) => `${path(x.map((at, k) => [at, high[k]]))}L${path(x.map((at, k) => [at, low[k]]).reverse()).slice(1)}Z`;

// The numbers of one line of a panel: all of its points, or those of one level of the other input.
function lineOf(view, panel, input, places) {
  const pick = (name) => places.map((k) => panel[name][k]);
  const names = Object.keys(panel).filter((name) => Array.isArray(panel[name]) && name !== "points");
  return { ...Object.fromEntries(names.map((name) => [name, pick(name)])), x: places.map((k) => panel.points[k][input]), places };
}

/* Draws lines into a place.
   lines: what lineOf gives; chosen: which of them has its interval drawn; part: "total" or "privacy";
   at: the point that is read; small: without words, for a card. */
function drawCurve(place, view, { input, lines, chosen = 0, part = "total", at = null, names = [], unit = "", small = false }) {
  const width = Math.max(place.clientWidth, 240), height = Math.max(place.clientHeight, 120), narrow = width < NARROW;
  const levels = Array.isArray(view.ticks[input]), line = lines[chosen], both = isSplit(line);
  const margin = small ? { l: 8, r: 8, t: 10, b: 10 } : { l: narrow ? 48 : 58, r: narrow ? 90 : 128, t: 26, b: both ? 66 : 44 };
  const ends = [...line.low, ...line.high, ...lines.flatMap((each) => each.mean)];
  let low = Math.min(...ends), high = Math.max(...ends);
  if (view.curve === "probability") [low, high] = [Math.min(low, 0), Math.max(high, Math.min(1, 1.25 * high))];
  const pad = 0.04 * (high - low) || 1, along = line.x, step = levels ? 0.5 : 0;
  const X = scale(along[0] - step, along[along.length - 1] + step, margin.l, width - margin.r);
  const Y = scale(low - pad, high + pad, height - margin.b, margin.t);
  const draw = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: narrow ? "curve narrow" : "curve", "aria-hidden": "true" });
  const put = (tag, options, ...inside) => draw.append(shape(tag, options, ...inside));
  if (!small) {
    for (const value of roundSteps(low, high, narrow ? 4 : 6)) {
      put("line", { class: "rule", x1: margin.l, x2: width - margin.r, y1: Y(value), y2: Y(value) });
      put("text", { x: margin.l - 8, y: Y(value) + 4, class: "tick end" }, readable(value));
    }
    for (const value of stepsAlong(view, input, narrow ? (view.ticks[input] === "date" ? 3 : 4) : 8)) {
      put("text", { x: X(value), y: height - margin.b + 20, class: "tick middle" }, tickText(view, input, value));
    }
    put("text", { x: 0, y: 14, class: "axis" }, withUnit(names[0], unit));
    put("text", { x: (margin.l + width - margin.r) / 2, y: height - margin.b + 40, class: "axis middle" }, view.inputs[input]);
  }
  const x = along.map(X), points = (values) => x.map((place_, k) => [place_, Y(values[k])]);
  lines.forEach((each, n) => { if (n !== chosen && !levels) put("path", { class: "other", d: path(points(each.mean)) }); });
  const band = part === "privacy" && both ? "band pale" : "band";
  if (levels) {
    x.forEach((at_, k) => {
      put("line", { class: "bar", x1: at_, x2: at_, y1: Y(line.low[k]), y2: Y(line.high[k]) });
      if (part === "privacy" && both) put("line", { class: "bar privacy", x1: at_, x2: at_, y1: Y(line.privacy_low[k]), y2: Y(line.privacy_high[k]) });
      put("circle", { class: "dot", cx: at_, cy: Y(line.mean[k]), r: small ? 3 : 5 });
    });
  } else {
    put("path", { class: band, d: area(x, line.low.map(Y), line.high.map(Y)) });
    if (part === "privacy" && both) {
      for (const end of ["privacy_low", "privacy_high"]) put("path", { class: "inner", d: path(points(line[end])) });
    }
    put("path", { class: "mean", d: path(points(line.mean)) });
  }
  if (!small && both && !levels) { // a thin strip: which share of the interval privacy noise makes
    const top = height - 12, stops = x.filter((_, k) => k % 4 === 0).map((at_, n) => {
      const k = 4 * n, share = Math.min(1, half(line, "privacy_", k) / (half(line, "", k) || 1));
      return shape("stop", { offset: ((at_ - x[0]) / (x[x.length - 1] - x[0])).toFixed(3), class: "share", "stop-opacity": (0.06 + 0.94 * share * share).toFixed(3) });
    });
    put("defs", {}, shape("linearGradient", { id: "shares" }, ...stops));
    put("rect", { fill: "url(#shares)", x: x[0], y: top, width: x[x.length - 1] - x[0], height: 7, rx: 3 });
    put("text", { x: width - margin.r + 8, y: top + 8, class: "label share-label" }, "share of noise");
  }
  if (!small) { // labels at the right ends, apart from each other
    const last = x.length - 1, edge = width - margin.r + 8;
    const wanted = [["mean-label", names[1] || view.curve, line.mean[last]], ["band-label", "90% interval", line.high[last]]];
    lines.forEach((each, n) => { if (n !== chosen && !levels && lines.length <= 8) wanted.push(["other-label", each.name, each.mean[last]]); });
    if (part === "privacy" && both) wanted.push(["inner-label", "privacy noise", line.privacy_low[last]]);
    wanted.sort((a, b) => b[2] - a[2]);
    let above = -99;
    for (const [kind, text, value] of wanted) {
      above = Math.max(Y(value) + 4, above + 17);
      put("text", { x: edge, y: above, class: `label ${kind}` }, text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
    }
  }
  if (at !== null) {
    put("line", { class: "cursor", x1: x[at], x2: x[at], y1: margin.t, y2: height - margin.b });
    put("circle", { class: "dot read", cx: x[at], cy: Y(line.mean[at]), r: 6 });
  }
  place.replaceChildren(draw);
  return (event) => { // the point that is nearest to a pointer
    const found = event.clientX - place.getBoundingClientRect().left, scaled = found * width / place.clientWidth;
    return x.reduce((best, value, k) => (Math.abs(value - scaled) < Math.abs(x[best] - scaled) ? k : best), 0);
  };
}

// The lines of a panel: one of a curve or a slice, one per level where a number meets a category.
function linesOf(view, panel) {
  const count = panel.points.length, places = [...Array(count).keys()];
  if (view.kind !== "map") return { input: panel.input, other: null, lines: [lineOf(view, panel, panel.input, places)] };
  const input = Array.isArray(view.ticks[1]) ? 0 : 1, other = 1 - input, depth = view.axes[1].length;
  const lines = view.axes[other].map((value, level) => ({
    ...lineOf(view, panel, input, view.axes[input].map((_, k) => (input === 0 ? k * depth + level : level * depth + k))),
    name: worded(view, other, value),
  }));
  return { input, other, lines };
}

const isMap = (view) => view.kind === "map" && !view.ticks.some(Array.isArray);
