// The pages' own script: it asks the server's JSON endpoints and draws what they answer.
"use strict";

const $ = (id) => document.getElementById(id);
const LADDER = [0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1, 1.5, 2, 3];
const BLUE = "#3987c9", ORANGE = "#d98300";
const short = (value) => Number(value.toPrecision(4)).toString();
const say = (text) => { $("status").textContent = text; };
const words = (text) => text.split(",").map((word) => word.trim()).filter((word) => word);

async function ask(path, options = {}) {
  const headers = { "X-Privgp": "page", ...(options.headers || {}) };
  const response = await fetch(path, { ...options, headers });
  const answer = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Error(answer.error || "The request failed.");
  return answer;
}

const send = (path, value, headers = {}) => ask(path, {
  method: "POST",
  headers: { "Content-Type": "application/json", ...headers },
  body: JSON.stringify(value),
});

async function finished(job) {
  while (job.state === "waiting" || job.state === "running") {
    say(`${job.doing || "Waiting"} … ${Math.round(100 * job.progress)}%`);
    await new Promise((resolve) => setTimeout(resolve, 400));
    job = await ask(`/api/jobs/${job.id}`);
  }
  if (job.state === "failed") throw new Error(job.error);
  say("Done.");
  return job.result;
}

function trying(element, event, action) {
  if (!element) return;
  element.addEventListener(event, async (happened) => {
    happened.preventDefault();
    const button = element.tagName === "BUTTON" ? element : element.querySelector("[type=submit]");
    if (button) button.disabled = true;
    try { await action(); } catch (problem) { say(problem.message); }
    if (button) button.disabled = false;
  });
}

function row(...cells) {
  const made = document.createElement("tr");
  for (const cell of cells) {
    const place = document.createElement("td");
    place.append(cell);
    made.append(place);
  }
  return made;
}

function layout(titles) {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--text").trim(), line = style.getPropertyValue("--line").trim();
  const axis = (title) => ({ title: { text: title }, gridcolor: line + "55", zeroline: false });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: text },
    margin: { l: 60, r: 10, t: 30, b: 80 }, xaxis: axis(titles[0]), yaxis: axis(titles[1]),
    legend: { orientation: "h", y: -0.25 }, title: { text: titles[2] || "", font: { size: 14 } },
  };
}

function place(label, within = "views") {
  const made = document.createElement("div");
  made.className = "plot";
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", label);
  $(within).append(made);
  return made;
}

// The plotting script is large and comes last.
const plotting = new Promise((resolve) => {
  const script = document.querySelector("script[src$='plotly.js']");
  if (script) script.addEventListener("load", resolve);
});

async function draw(place, traces, titles, most) {
  await plotting;
  const made = layout(titles);
  if (most) made.yaxis.range = [0, most];
  await Plotly.react(place, traces, made, { displayModeBar: false, responsive: true });
}

const band = (x, low, high, name, colour) => [
  { x, y: low, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false },
  { x, y: high, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: colour, name },
];

// the start: registering, keys, the ledger

trying($("signout"), "click", async () => {
  await ask("/signout", { method: "POST" });
  window.location = "/signin";
});

trying($("register"), "submit", async () => {
  const file = $("table").files[0];
  const ending = file.name.toLowerCase().endsWith(".parquet") ? "parquet" : "csv";
  say("Uploading …");
  const kept = await ask(`/api/tables?ending=${ending}`, { method: "POST", body: file });
  const asked = {
    name: $("name").value, table: kept.table, inputs: words($("inputs").value),
    output: $("output").value.trim(), epsilon: Number($("epsilon").value),
    delta: Number($("delta").value),
  };
  if ($("bounds").value) asked.bounds = words($("bounds").value).map(Number);
  if ($("classes").value) asked.classes = words($("classes").value);
  if ($("groups").value) asked.groups = $("groups").value.trim();
  if ($("x-bounds").value) {
    asked.protect = "records";
    asked.x_bounds = words($("x-bounds").value).map((pair) => pair.split(":").map(Number));
  }
  await send("/api/datasets", asked);
  window.location = `/datasets/${encodeURIComponent(asked.name)}`;
});

trying($("add-key"), "submit", async () => {
  const asked = {
    name: $("key-name").value, role: $("key-role").value, datasets: words($("key-datasets").value),
  };
  const made = await send("/api/keys", asked);
  $("new-key").textContent = `Shown this once: ${made.key}`;
});

trying($("verify"), "click", async () => {
  $("verified").textContent = (await ask("/api/ledger/verify")).told;
});

// a dataset: planner, plans, releases, ledger

const dataset = $("dataset") && $("dataset").dataset;
const under = dataset && `/api/datasets/${encodeURIComponent(dataset.name)}`;
let compared = null;

function showOption() {
  const option = compared.options[Number($("slider").value)];
  const told = `epsilon ${option.epsilon}: expected error ${short(option.expected_error)} `
    + `(without privacy ${short(compared.error_without_privacy)}), ${option.noise}`;
  $("buys").textContent = told;
  $("slider").setAttribute("aria-valuetext", told);
  const most = Math.max(...compared.options.flatMap((each) => each.bars.flat()));
  compared.axes.forEach((axis, k) => {
    const trace = { x: axis.at, y: option.bars[k], mode: "lines", line: { color: BLUE } };
    draw($("bars").children[k], [trace], [axis.input, "standard deviation"], 1.05 * most);
  });
}

async function compare() {
  const delta = Number($("plan-delta").value || dataset.delta);
  const asked = { epsilon: 1, delta, compare: LADDER };
  compared = await ask(`/api/plans/${await finished(await send(`${under}/plans`, asked))}`);
  $("planner").hidden = false;
  $("slider").max = compared.options.length - 1;
  $("slider").value = compared.options.findIndex((each) => each.epsilon === 1);
  $("plan-delta").value = delta;
  $("bars").replaceChildren();
  compared.axes.forEach((axis) => place(`Error bars along ${axis.input}, which the slider changes`, "bars"));
  showOption();
  await refresh();
}

function lastLook(plan) {
  $("last-words").textContent = `This spends epsilon = ${plan.epsilon}, delta = ${plan.delta}, `
    + `for ever. Left afterwards: epsilon = ${short(plan.left_after)}. Expected error: `
    + `${short(plan.expected_error)}.`;
  const once = `page-${plan.id}`; // however often it is pressed, it is one release
  $("spend").onclick = async () => {
    $("last-look").close();
    try {
      const job = await send(`${under}/releases`, { plan: plan.id }, { "Idempotency-Key": once });
      window.location = `/releases/${await finished(job)}`;
    } catch (problem) { say(problem.message); await refresh(); }
  };
  $("last-look").showModal();
}

function next(plan) {
  const button = document.createElement("button");
  button.type = "button";
  if (plan.carried_out_by) {
    const link = document.createElement("a");
    link.href = `/releases/${plan.carried_out_by}`;
    link.textContent = "carried out";
    return link;
  }
  if (!plan.fits) return "does not fit into what is left";
  if (plan.approved_at) {
    button.textContent = "Release …";
    button.addEventListener("click", () => lastLook(plan));
    return button;
  }
  if (!dataset.custodian) return "a custodian approves it";
  button.textContent = "Approve";
  trying(button, "click", async () => {
    await ask(`/api/plans/${plan.id}/approve`, { method: "POST" });
    await refresh();
  });
  return button;
}

async function refresh() {
  const [plans, releases, ledger] = await Promise.all(
    ["plans", "releases", "ledger"].map((what) => ask(`${under}/${what}`)),
  );
  $("left").textContent = short(ledger.remaining);
  $("plans").replaceChildren(...plans.map((plan) => row(
    String(plan.epsilon), String(plan.delta), short(plan.expected_error),
    plan.approved_at ? `approved by ${plan.approved_by}` : "planned", next(plan),
  )));
  $("releases").replaceChildren(...releases.map((release) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `/releases/${release.id}`;
    link.textContent = `${release.previous ? "Update" : "Release"} of ${release.made_at}`;
    item.append(link);
    return item;
  }));
  $("entries").replaceChildren(...ledger.entries.map((entry) => row(
    String(entry.number), entry.kind, entry.at, "epsilon" in entry ? short(entry.epsilon) : "",
    "delta" in entry ? String(entry.delta) : "", `${entry.hash.slice(0, 12)}…`,
  )));
}

if (dataset) {
  $("plan-delta").value = dataset.delta;
  trying($("compare"), "click", compare);
  $("slider").addEventListener("input", showOption);
  trying($("plan"), "click", async () => {
    const epsilon = compared.options[Number($("slider").value)].epsilon;
    const asked = { epsilon, delta: Number($("plan-delta").value) };
    await finished(await send(`${under}/plans`, asked));
    await refresh();
  });
  refresh().catch((problem) => say(problem.message));
}

// a release: curve, map or slices

function curve(view, panel, input) {
  const x = panel.points.map((point) => point[input]);
  const traces = band(x, panel.low, panel.high, "90% range in all", BLUE + "33");
  if (panel.privacy_low) {
    traces.push(...band(x, panel.privacy_low, panel.privacy_high, "90% privacy noise", ORANGE + "55"));
  }
  traces.push({ x, y: panel.mean, mode: "lines", name: "mean", line: { color: BLUE } });
  draw(place(`${view.output} along ${view.inputs[input]}`), traces, [view.inputs[input], view.output]);
}

function map(view, panel) {
  const [x, y] = view.axes;
  const grid = (of) => y.map((_, j) => x.map((_, i) => of(i * y.length + j)));
  const shown = [
    ["mean", (k) => panel.mean[k]],
    ["± in all (90%)", (k) => 0.5 * (panel.high[k] - panel.low[k])],
  ];
  if (panel.privacy_low) {
    shown.push(["± by privacy noise (90%)",
      (k) => 0.5 * (panel.privacy_high[k] - panel.privacy_low[k])]);
  }
  for (const [name, of] of shown) {
    const trace = { type: "heatmap", x, y, z: grid(of), colorscale: "Viridis" };
    draw(place(`Map of ${view.output}: ${name}`), [trace], [...view.inputs, `${view.output}: ${name}`]);
  }
}

function numbers(view) {
  const names = ["mean", "low", "high", "privacy_low", "privacy_high"].filter((n) => n in view.panels[0]);
  const head = document.createElement("tr");
  for (const name of [...view.inputs, ...names]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name.replace("_", " ");
    head.append(cell);
  }
  $("numbers-head").replaceChildren(head);
  $("numbers").replaceChildren(...view.panels.flatMap((panel) => panel.points.map((point, k) => row(
    ...point.map(short), ...names.map((name) => short(panel[name][k])),
  ))));
}

async function showRelease() {
  const under = `/api/releases/${$("release").dataset.number}`;
  const [promise, view] = await Promise.all([ask(under), ask(`${under}/view`)]);
  $("promise").textContent = `epsilon = ${promise.epsilon}, delta = ${promise.delta}; protects `
    + `${promise.protects}.`;
  if (view.kind === "map") map(view, view.panels[0]);
  else view.panels.forEach((panel, input) => curve(view, panel, input));
  numbers(view);
}

if ($("release")) showRelease().catch((problem) => say(problem.message));
