// Shows a release: one large picture, what it is drawn of, and a reader of its values.
// A server's page asks an endpoint for the numbers; a published file has them inside.
"use strict";

function choice(title, names, changed) {
  const select = make("select", {}, ...names.map((name, k) => make("option", { value: String(k) }, name)));
  select.addEventListener("change", () => changed(Number(select.value)));
  return make("label", {}, title, select);
}

// Two buttons, one of them pressed.
function partSwitch(changed) {
  const pair = [["total", "90% interval"], ["privacy", "Part due to privacy noise"]];
  const inputs = pair.map(([value, text], k) => {
    const input = make("input", { type: "radio", name: "part", value, ...(k ? {} : { checked: "" }) });
    input.addEventListener("change", () => changed(value));
    return make("label", {}, input, make("span", {}, text));
  });
  return make("div", { class: "switch", role: "radiogroup", "aria-label": "What is drawn around the mean" }, ...inputs);
}

// The numbers of a panel at one point, in words.
function words(view, panel, k, unit) {
  const after = unit ? `\u00a0${unit}` : "";
  const said = [` 90% interval from ${readable(panel.low[k])} to ${readable(panel.high[k])}${after}.`];
  if (isSplit(panel)) said.push(` Privacy noise accounts for ±${readable(half(panel, "privacy_", k))}, the model for ±${readable(half(panel, "model_", k))}.`);
  if (!isNear(view, k)) said.push(" No data are near.");
  return [`${readable(panel.mean[k])}${after}`, said.join("")];
}

class Picture {
  constructor(view, into, about) {
    Object.assign(this, { view, about, panel: 0, level: 0, part: "total", places: [] });
    this.tools = make("div", { class: "tools" });
    this.place = make("div", { class: "picture", role: "img" });
    this.reader = make("div", { class: "reader" });
    into.replaceChildren(this.tools, this.place, this.reader, make("p", { class: "source" }, about.source));
    this.buildTools();
    this.build();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  get shown() { return this.view.panels[this.panel]; }

  buildTools() {
    const { view } = this, inputs = view.kind === "slices" ? view.inputs.length : 1;
    const change = (output, input) => { this.panel = output * inputs + input; this.build(); };
    let [output, input] = [0, 0];
    if (view.outputs.length > 1) this.tools.append(choice("Outcome", view.outputs, (k) => { output = k; change(output, input); }));
    if (inputs > 1) this.tools.append(choice("Along", view.inputs, (k) => { input = k; change(output, input); }));
    if (view.kind === "map" && !isMap(view)) {
      const { other } = linesOf(view, this.shown);
      this.tools.append(choice(view.inputs[other], view.axes[other].map((value) => worded(view, other, value)), (k) => { this.level = k; this.build(); }));
    }
    if (view.panels.some(isSplit)) this.tools.append(partSwitch((part) => { this.part = part; this.draw(); }));
    if (view.places.length) {
      const file = make("input", { type: "file", accept: ".geojson,.json" });
      file.addEventListener("change", async () => {
        try { this.map.show({ districts: ringsOf(JSON.parse(await file.files[0].text())) }); } catch { file.setCustomValidity("This is not GeoJSON."); file.reportValidity(); }
      });
      this.tools.append(make("label", {}, "Add districts (GeoJSON; stays in your browser)", file));
    }
  }

  // What changes when another panel or level is chosen: the lines, the map, and the reader.
  build() {
    const { view, shown } = this;
    if (isMap(view)) {
      const { first, second } = mapAxes(view);
      this.axes = [first, second];
      this.place.classList.add("map");
      if (!this.map) this.buildMap(); else this.map.show({ panel: shown });
      this.locate = ([i, j]) => mapAxes(view).index(i, j);
    } else {
      this.lines = linesOf(view, shown);
      this.axes = [this.lines.input];
      this.locate = ([k]) => this.lines.lines[this.level].places[k];
    }
    this.buildReader();
    const values = shown.mean, span = `from ${readable(Math.min(...values))} to ${readable(Math.max(...values))}`;
    this.place.setAttribute("aria-label", `${isMap(view) ? "Map" : "Curve"} of ${shown.output}, ${view.curve} ${span}. The sliders below read every value.`);
    this.read(this.axes.map((i) => Math.floor(view.axes[i].length / 2)));
  }

  buildMap() {
    const zoom = make("div", { class: "zoom" }), key = make("div");
    this.map = new WorldMap(this.place, this.view, this.shown, (places) => this.read(places));
    const buttons = [
      ["+", "Zoom in", () => this.map.zoomBy(1.5)], ["−", "Zoom out", () => this.map.zoomBy(1 / 1.5)],
      ["⌂", "Show the whole map", () => this.map.show({ zoom: 1, centre: [0.5, 0.5] })],
    ];
    for (const [text, title, action] of buttons) {
      const button = make("button", { type: "button", "aria-label": title, title }, text);
      button.addEventListener("click", action);
      zoom.append(button);
    }
    this.place.removeAttribute("role");
    this.map.canvas.setAttribute("role", "img");
    this.map.canvas.setAttribute("tabindex", "0");
    this.map.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      const times = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[event.key];
      if (by) this.map.panBy(...by);
      if (times) this.map.zoomBy(times);
      if (by || times) event.preventDefault();
    });
    this.place.append(key, zoom);
    this.key = key;
  }

  buildReader() {
    const { view } = this;
    this.output = make("output", { class: "reading" });
    this.sliders = this.axes.map((i) => make("input", { type: "range", min: "0", max: String(view.axes[i].length - 1), step: "1" }));
    this.sliders.forEach((slider) => slider.addEventListener("input", () => this.read(this.sliders.map((each) => Number(each.value)))));
    this.reader.replaceChildren(this.output, ...this.axes.map((i, n) => make("label", {}, `Read at ${view.inputs[i]}`, this.sliders[n])));
  }

  read(places) {
    const { view, shown } = this;
    this.places = places;
    const said = this.axes.map((i, n) => `${view.inputs[i]} ${worded(view, i, view.axes[i][places[n]])}`);
    const { other = null, lines = [] } = this.lines || {};
    const at = [...said, ...(other === null ? [] : [`${view.inputs[other]} ${lines[this.level].name}`])].join(", ");
    const [value, rest] = words(view, shown, this.locate(places), this.about.unit);
    this.output.replaceChildren(`At ${at}: `, make("strong", {}, value), `.${rest}`);
    this.sliders.forEach((slider, n) => {
      slider.value = String(places[n]);
      slider.setAttribute("aria-valuetext", this.output.textContent);
    });
    this.draw();
  }

  draw() {
    const { view, shown, part } = this, { unit } = this.about;
    if (!this.output) return;
    if (this.map) {
      this.map.show({ at: this.places, ...(part === this.map.part ? {} : { part }) });
      this.map.canvas.setAttribute("aria-label", this.place.getAttribute("aria-label"));
      this.key.replaceChildren(keyOf(view, shown, this.map.image, unit, part));
      return;
    }
    const { input, lines } = this.lines, chosen = lines[this.level].name || view.curve;
    const find = drawCurve(this.place, view, { input, lines, chosen: this.level, part, at: this.places[0], names: [shown.output, chosen], unit });
    this.place.onpointerdown = (event) => this.read([find(event)]);
    this.place.onpointermove = (event) => { if (event.buttons) this.read([find(event)]); };
  }
}

function numbers(view) {
  const names = ["mean", "low", "high", "privacy_low", "privacy_high", "model_low", "model_high"].filter((name) => name in view.panels[0]);
  const head = [...(view.outputs.length > 1 ? ["output"] : []), ...view.inputs, ...names.map((name) => name.replace("_", " "))];
  $("numbers-head").replaceChildren(make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name))));
  $("numbers").replaceChildren(...view.panels.flatMap((panel) => panel.points.map((point, k) => row(
    ...(view.outputs.length > 1 ? [panel.output] : []), ...point.map((value, i) => worded(view, i, value)), ...names.map((name) => short(panel[name][k])),
  ))));
}

function showView(view) {
  const place = $("picture"), { unit = "", source = "" } = place.dataset;
  const held = view.kind === "slices"
    ? ` The other inputs are held ${view.held}: ${view.inputs.map((name, i) => `${name} ${worded(view, i, view.held_at[i])}`).join(", ")}.` : "";
  $("as-numbers").addEventListener("toggle", () => numbers(view), { once: true });
  return new Picture(view, place, { unit, source: `${source}${held}${view.outline ? " Outline: Natural Earth. Cities: GeoNames, CC BY 4.0." : ""}` });
}

if ($("view-data")) showView(JSON.parse($("view-data").textContent));
