// Draws maps on a canvas: colour is the value, fading the uncertainty. They zoom, pan and are read by a click.
"use strict";

const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"]
  .map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
const FAINTEST = 0.07; // opacity where a value is least certain
const MOST_ZOOM = 40;

function colourOf(share) {
  const at = Math.max(0, Math.min(1, share)) * (CIVIDIS.length - 1), k = Math.min(Math.floor(at), CIVIDIS.length - 2);
  return CIVIDIS[k].map((value, c) => Math.round(value + (at - k) * (CIVIDIS[k + 1][c] - value)));
}

// Longitude runs to the right; two other numbers run as they are named.
function mapAxes(view) {
  const [first, second] = view.places.length ? view.places : [0, 1], depth = view.axes[1].length;
  const index = (i, j) => (first === 0 ? i * depth + j : j * depth + i);
  return { first, second, x: view.axes[first], y: view.axes[second], index };
}

// Whether data are near a point; where inputs are private or few, nobody can tell.
function isNear(view, k) {
  return !view.near || view.near[k] === 1;
}

// How certain the map is at a point, from 0 to 1, by its whole interval or by the part of privacy noise.
function certainty(panel, part) {
  const name = part === "privacy" && isSplit(panel) ? "privacy_" : "";
  const halves = panel.mean.map((_, k) => half(panel, name, k)), sorted = [...halves].sort((a, b) => a - b);
  const [least, most] = [0.05, 0.9].map((share) => sorted[Math.floor(share * (sorted.length - 1))]); // beyond, it fades no further
  const of = (k) => (most > 1.02 * least ? Math.max(0, Math.min(1, (most - halves[k]) / (most - least))) : 1);
  return { least: sorted[0], most: sorted[sorted.length - 1], of };
}

// The grid as a small picture, one pixel a point, which the browser makes smooth when it enlarges it.
function rasterOf(view, panel, part) {
  const { x, y, index } = mapAxes(view), low = Math.min(...panel.mean), high = Math.max(...panel.mean), sure = certainty(panel, part);
  const raster = document.createElement("canvas");
  [raster.width, raster.height] = [x.length, y.length];
  const brush = raster.getContext("2d"), image = brush.createImageData(x.length, y.length);
  y.forEach((_, j) => x.forEach((_, i) => {
    const k = index(i, j), at = 4 * ((y.length - 1 - j) * x.length + i);
    image.data.set(colourOf(high > low ? (panel.mean[k] - low) / (high - low) : 0.5), at);
    image.data[at + 3] = isNear(view, k) ? Math.round(255 * (FAINTEST + (1 - FAINTEST) * sure.of(k))) : 0;
  }));
  brush.putImageData(image, 0, 0);
  return { raster, low, high, sure };
}

function drawSmall(place, view) {
  const panel = view.panels[0];
  place.textContent = "";
  if (!isMap(view)) {
    const { input, lines } = linesOf(view, panel);
    drawCurve(place, view, { input, lines, small: true });
    return;
  }
  const { raster } = rasterOf(view, panel, "total"), canvas = make("canvas", { "aria-hidden": "true" });
  place.replaceChildren(canvas);
  [canvas.width, canvas.height] = [canvas.clientWidth * 2, canvas.clientHeight * 2];
  canvas.getContext("2d").drawImage(raster, 0, 0, canvas.width, canvas.height);
}

// A map in a place. It keeps what is shown of the world: a centre and a zoom.
class WorldMap {
  constructor(place, view, panel, read) {
    Object.assign(this, { place, view, panel, read, part: "total", zoom: 1, centre: [0.5, 0.5], at: [0, 0], districts: [] });
    this.axes = mapAxes(view);
    this.canvas = make("canvas");
    place.replaceChildren(this.canvas);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(place);
  }

  show(changes) {
    Object.assign(this, changes);
    if (!this.image || "part" in changes || "panel" in changes) this.image = rasterOf(this.view, this.panel, this.part);
    this.draw();
  }

  // Pixels of a unit along both inputs: degrees keep their proportions, other numbers fill the place.
  size() {
    const { x, y } = this.axes, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const spans = [x[x.length - 1] - x[0], y[y.length - 1] - y[0]];
    let unit = [0.84 * width / spans[0], 0.84 * height / spans[1]];
    if (this.view.places.length) {
      const ratio = 1 / Math.max(0.05, Math.cos(Math.PI * (y[0] + y[y.length - 1]) / 360));
      const one = Math.min(unit[0], unit[1] / ratio);
      unit = [one, one * ratio];
    }
    return { width, height, spans, unit: unit.map((each) => each * this.zoom) };
  }

  toPixels(lon, lat) {
    const { width, height, spans, unit } = this.size(), { x, y } = this.axes;
    return [width / 2 + unit[0] * (lon - x[0] - this.centre[0] * spans[0]), height / 2 - unit[1] * (lat - y[0] - this.centre[1] * spans[1])];
  }

  draw() {
    const { width, height, unit } = this.size(), dense = window.devicePixelRatio || 1;
    if (!this.image || !width) return;
    [this.canvas.width, this.canvas.height] = [width * dense, height * dense];
    const brush = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    brush.scale(dense, dense);
    const { x, y } = this.axes, cell = [(x[1] - x[0]) * unit[0], (y[1] - y[0]) * unit[1]];
    const [left, low] = this.toPixels(x[0], y[0]), [right, top] = this.toPixels(x[x.length - 1], y[y.length - 1]);
    brush.imageSmoothingEnabled = true;
    brush.imageSmoothingQuality = "high";
    brush.drawImage(this.image.raster, left - cell[0] / 2, top - cell[1] / 2, right - left + cell[0], low - top + cell[1]);
    const project = (points) => { // flat lists of longitude and latitude
      const made = [], origin = this.toPixels(0, 0);
      for (let k = 0; k < points.length; k += 2) made.push([origin[0] + unit[0] * points[k], origin[1] - unit[1] * points[k + 1]]);
      return made;
    };
    const stroke = (points, look, wide, dash = []) => {
      brush.beginPath();
      project(points).forEach(([px, py], k) => (k ? brush.lineTo(px, py) : brush.moveTo(px, py)));
      Object.assign(brush, { strokeStyle: look, lineWidth: wide, lineJoin: "round" });
      brush.setLineDash(dash);
      brush.stroke();
    };
    const outline = this.view.outline || { coasts: [], borders: [], places: [] };
    outline.coasts.forEach((each) => { stroke(each, colour("back"), 3); stroke(each, colour("text"), 1.25); });
    outline.borders.forEach((each) => { stroke(each, colour("back"), 3); stroke(each, colour("text"), 1.25, [6, 4]); });
    this.districts.forEach((each) => stroke(each.ring, colour("text"), 1));
    this.name(brush, colour, outline.places);
    if (this.view.places.length) this.bar(brush, colour, unit[0]); else this.ticks(brush, colour);
    const [px, py] = this.toPixels(x[this.at[0]], y[this.at[1]]);
    brush.setLineDash([]);
    for (const [wide, look] of [[5, colour("back")], [2.5, colour("text")]]) {
      brush.beginPath();
      brush.arc(px, py, 8, 0, 7);
      Object.assign(brush, { strokeStyle: look, lineWidth: wide });
      brush.stroke();
    }
  }

  write(brush, colour, text, px, py, font = "500 12px system-ui, sans-serif") {
    Object.assign(brush, { font, lineJoin: "round", lineWidth: 3.5, strokeStyle: colour("back"), fillStyle: colour("text") });
    brush.setLineDash([]);
    brush.strokeText(text, px, py);
    brush.fillText(text, px, py);
  }

  // Names of cities, the largest first, where they do not cover each other.
  name(brush, colour, places) {
    const taken = [], most = this.canvas.clientWidth < NARROW ? 6 : 14;
    brush.textAlign = "left";
    for (const [name, lon, lat] of places) {
      const [px, py] = this.toPixels(lon, lat), box = [px - 4, py - 10, px + 16 + 7 * name.length, py + 10];
      const outside = box[0] < 4 || box[1] < 4 || box[2] > this.canvas.clientWidth - 60 || box[3] > this.canvas.clientHeight - 4;
      if (outside || taken.length >= most || taken.some((t) => box[0] < t[2] && box[2] > t[0] && box[1] < t[3] && box[3] > t[1])) continue;
      taken.push(box);
      brush.beginPath();
      brush.arc(px, py, 3, 0, 7);
      Object.assign(brush, { fillStyle: colour("text"), strokeStyle: colour("back"), lineWidth: 2 });
      brush.stroke();
      brush.fill();
      this.write(brush, colour, name, px + 7, py + 4);
    }
  }

  bar(brush, colour, unit) {
    const middle = Math.PI * (this.axes.y[0] + this.axes.y[this.axes.y.length - 1]) / 360;
    const pixels = unit / (111.32 * Math.cos(middle)); // of a kilometre
    const longest = 140 / pixels, size = 10 ** Math.floor(Math.log10(longest)), length = size * [5, 2, 1].find((times) => times * size <= longest);
    const right = this.canvas.clientWidth - 16, low = this.canvas.clientHeight - 16;
    Object.assign(brush, { strokeStyle: colour("text"), lineWidth: 2 });
    brush.setLineDash([]);
    brush.beginPath();
    brush.moveTo(right - length * pixels, low);
    brush.lineTo(right, low);
    brush.stroke();
    brush.textAlign = "right";
    this.write(brush, colour, length >= 1 ? `${readable(length)} km` : `${readable(1000 * length)} m`, right, low - 7);
  }

  ticks(brush, colour) {
    const { x, y, first, second } = this.axes, low = this.canvas.clientHeight;
    brush.textAlign = "center";
    stepsAlong(this.view, first, 6).forEach((value) => this.write(brush, colour, tickText(this.view, first, value), this.toPixels(value, y[0])[0], low - 22));
    this.write(brush, colour, this.view.inputs[first], this.canvas.clientWidth / 2, low - 6, "600 13px system-ui, sans-serif");
    brush.textAlign = "left";
    stepsAlong(this.view, second, 6).forEach((value) => this.write(brush, colour, tickText(this.view, second, value), 8, this.toPixels(x[0], value)[1] + 4));
    this.write(brush, colour, this.view.inputs[second], 8, 18, "600 13px system-ui, sans-serif");
  }

  // Zooms about a pixel, which stays where it is.
  zoomBy(times, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
    const before = this.size(), zoom = Math.max(0.3, Math.min(MOST_ZOOM, this.zoom * times)), gain = 1 / before.unit[0], rise = 1 / before.unit[1];
    const shrink = 1 - this.zoom / zoom;
    this.centre = [
      this.centre[0] + shrink * gain * (px - before.width / 2) / before.spans[0],
      this.centre[1] - shrink * rise * (py - before.height / 2) / before.spans[1],
    ];
    this.show({ zoom });
  }

  panBy(dx, dy) {
    const { unit, spans } = this.size();
    this.show({ centre: [this.centre[0] - dx / unit[0] / spans[0], this.centre[1] + dy / unit[1] / spans[1]] });
  }

  nearest(px, py) {
    const { x, y } = this.axes, find = (axis, value, of) => axis.reduce((best, each, k) => (
      Math.abs(of(each) - value) < Math.abs(of(axis[best]) - value) ? k : best), 0);
    return [find(x, px, (each) => this.toPixels(each, y[0])[0]), find(y, py, (each) => this.toPixels(x[0], each)[1])];
  }

  listen() {
    const fingers = new Map(), place = this.place;
    let moved = 0, apart = 0;
    const where = (event) => { const box = place.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, where(event));
      moved = 0;
      if (fingers.size === 2) apart = spread();
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId), now = where(event);
      if (!before) return;
      fingers.set(event.pointerId, now);
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], next = spread();
        this.zoomBy(next / (apart || next), (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        apart = next;
      } else if (moved > 4) this.panBy(now[0] - before[0], now[1] - before[1]);
    });
    const end = (event) => {
      if (fingers.delete(event.pointerId) && moved <= 4 && event.type === "pointerup") this.read(this.nearest(...where(event)));
    };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-0.0015 * event.deltaY), ...where(event));
    }, { passive: false });
  }
}

// Rings of a GeoJSON file, as flat lists of longitude and latitude.
function ringsOf(json) {
  const polygons = (geometry) => ({ Polygon: [geometry?.coordinates], MultiPolygon: geometry?.coordinates }[geometry?.type] || []);
  return (json.features || []).flatMap((each) => polygons(each.geometry).flatMap((rings) => rings.map((ring) => ({ ring: ring.flatMap(([lon, lat]) => [lon, lat]) }))));
}

function keyOf(view, panel, image, unit, part) {
  const strip = make("canvas", { "aria-hidden": "true" }), [wide, tall] = [160, 12];
  [strip.width, strip.height] = [wide, tall];
  const brush = strip.getContext("2d"), data = brush.createImageData(wide, tall);
  for (let j = 0; j < tall; j += 1) for (let i = 0; i < wide; i += 1) {
    data.data.set([...colourOf(i / (wide - 1)), Math.round(255 * (FAINTEST + (1 - FAINTEST) * (1 - j / (tall - 1))))], 4 * (j * wide + i));
  }
  brush.putImageData(data, 0, 0);
  const { low, high, sure } = image, of = part === "privacy" && isSplit(panel) ? "privacy noise" : "90% interval";
  return make(
    "div", { class: "map-key" }, make("strong", {}, withUnit(panel.output, unit)), make("br"), strip,
    make("div", {}, make("span", {}, readable(low)), make("span", {}, readable(high))),
    `Fainter is less certain: ${of} from ±${readable(sure.least)} to ±${readable(sure.most)}`,
    ...(view.near?.includes(0) ? [make("br"), "Blank: no data are near"] : []),
  );
}
