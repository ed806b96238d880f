// The planner: one slider, and beside it the interval that each budget buys, in units of the outcome.
"use strict";

const SHARES = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1]; // of what is left
const planner = $("planner"), under = `/api/datasets/${encodeURIComponent($("dataset").dataset.name)}`;
const left = Number(planner.dataset.left), outcomes = JSON.parse(planner.dataset.outcomes);
let compared = null;

// Downwards to two digits, so that it still fits.
function rounded(value) {
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.floor(value / step + 1e-9) * step).toPrecision(2));
}

function settings() {
  const asked = { delta: Number($("plan-delta").value), mechanism: $("mechanism").value, hyperparameters: $("hyperparameters").value };
  if ($("inducing").value) asked.inducing = Number($("inducing").value);
  return asked;
}

const chosen = () => compared.options[Number($("slider").value)];
const reach = (error, k) => REACH * [].concat(error)[k];
const intervals = (error) => [].concat(error).map((each) => `±${readable(REACH * each)}`).join(", ");

// How often somebody who knows all else tells two values of a person apart, at most.
const oddsOf = (epsilon, delta) => Math.ceil(1000 * Math.min(1, (Math.exp(epsilon) + delta) / (1 + Math.exp(epsilon)))) / 10;

// The range of an outcome as a bar, with the expected interval inside it to scale.
function outcomeBar({ name, low, high }, error, best) {
  const width = Math.max($("intervals").clientWidth, 240), all_ = high - low;
  const draw = shape("svg", { viewBox: `0 0 ${width} 72`, role: "img", "aria-label": `${name} lies between ${readable(low)} and ${readable(high)}. Expected 90% interval: plus or minus ${readable(error)}.` });
  const part = (value) => Math.max(2, Math.min(1, 2 * value / all_) * width), middle = width / 2;
  draw.append(
    shape("text", { x: 0, y: 16, class: "big" }, `${name}: ±${readable(error)}`),
    shape("rect", { class: "range", x: 0, y: 28, width, height: 18, rx: 4 }),
    shape("rect", { class: "interval", x: middle - part(error) / 2, y: 28, width: part(error), height: 18, rx: 4 }),
    shape("rect", { class: "best", x: middle - part(best) / 2, y: 48, width: part(best), height: 3 }),
    shape("text", { x: 0, y: 67 }, readable(low)),
    shape("text", { x: width, y: 67, "text-anchor": "end" }, readable(high)),
    shape("text", { x: middle, y: 67, "text-anchor": "middle" }, `without privacy ±${readable(best)}`),
  );
  return make("div", { class: "outcome" }, draw);
}

function showOption() {
  const option = chosen(), best = compared.error_without_privacy;
  $("chosen").textContent = String(option.epsilon);
  $("intervals").replaceChildren(...outcomes.map((each, k) => outcomeBar(each, reach(option.expected_error, k), reach(best, k))));
  const told = `Epsilon ${option.epsilon}: the expected 90% interval is ${intervals(option.expected_error)}; without privacy it would be ${intervals(best)}.`;
  $("buys").textContent = told;
  $("odds").textContent = `An attacker who knows everything else and has to tell which of two values a person has is right at most ${oddsOf(option.epsilon, option.delta)}% of the time; a coin toss is right 50%.`;
  $("slider").setAttribute("aria-valuetext", told);
  all("#bars .picture").forEach((place, k) => drawBars(place, k, option));
}

// Half of the interval along one input, as a curve without an interval.
function drawBars(place, k, option) {
  const axis = compared.axes[k], values = option.bars[k].map((each) => REACH * each);
  const view = { ticks: [axis.ticks || ""], axes: [axis.at], inputs: [axis.input], curve: "" };
  const line = { x: axis.at, mean: values, low: values.map(() => 0), high: values };
  drawCurve(place, view, { input: 0, lines: [line], names: [`± ${axis.output}`, `epsilon ${option.epsilon}`] });
}

function showComparison(found) {
  compared = found;
  const usable = compared.options.filter((each) => each.epsilon <= left * (1 + 1e-9));
  compared.options = usable.length ? usable : compared.options;
  $("planning").hidden = true;
  $("choice").hidden = false;
  $("slider").max = String(compared.options.length - 1);
  $("slider").value = String(Math.floor((compared.options.length - 1) / 2));
  $("options").replaceChildren(...compared.options.map((each) => row(String(each.epsilon), intervals(each.expected_error), each.noise)));
  $("bars").replaceChildren(...compared.axes.map((axis) => make("div", { class: "picture low", role: "img", "aria-label": `Half of the expected 90% interval of ${axis.output} along ${axis.input}` })));
  $("where").hidden = !compared.axes.length;
  showOption();
}

const tell = (text) => { $("planning").hidden = false; $("planning").textContent = text; };

async function compare() {
  const epsilons = [...new Set(SHARES.map((share) => rounded(share * left)))];
  const asked = { ...settings(), epsilon: epsilons[Math.floor(epsilons.length / 2)], compare: epsilons };
  showComparison(await ask(`/api/plans/${await finished(await send(`${under}/plans`, asked), tell)}`));
}

if ($("slider")) {
  trying($("compare"), "click", compare);
  $("slider").addEventListener("input", showOption);
  all("details", $("choice")).forEach((each) => each.addEventListener("toggle", showOption));
  trying($("plan"), "click", async () => {
    const plan = await finished(await send(`${under}/plans`, { ...settings(), epsilon: chosen().epsilon }));
    if ($("dataset").dataset.custodian) await ask(`/api/plans/${plan}/approve`, { method: "POST" });
    sessionStorage.setItem("said", $("dataset").dataset.custodian ? "Planned and approved. Release it below." : "Sent to the custodians. They see it under Approvals.");
    window.location.reload();
  });
  const known = planner.dataset.comparison;
  (known ? ask(`/api/plans/${known}`).then(showComparison) : compare()).catch((problem) => {
    tell(problem.message);
    $("settings").open = true;
  });
}
