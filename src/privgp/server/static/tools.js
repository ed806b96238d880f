// Small tools that every script uses, in pages of the server and in published files.
"use strict";

const $ = (id) => document.getElementById(id);
const all = (query, within = document) => [...within.querySelectorAll(query)];
const short = (value) => String(Number(Number(value).toPrecision(4))).replace("-", "−");
const REACH = 1.645; // standard deviations in half of a 90% interval

function make(tag, options = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

const row = (...cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)));

// An element of a drawing.
function shape(tag, options = {}, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(options)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

// Numbers as people read them: 1,234 or 0.0123.
function readable(value) {
  const rounded = Number(Number(value).toPrecision(Math.abs(value) >= 1000 ? 4 : 3));
  return rounded.toLocaleString("en-GB", { maximumSignificantDigits: 6 }).replace("-", "−");
}

// Round numbers between two ends, about as many as asked for.
function roundSteps(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count, size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((times) => times * size >= rough);
  const made = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9 * step; at += step) made.push(Math.abs(at) < 1e-9 * step ? 0 : at);
  return made;
}
