// The server's pages: they ask the JSON endpoints, and draw with view.js.
"use strict";

const SHARES = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1]; // of what is left
const words = (text) => text.split(",").map((word) => word.trim()).filter((word) => word);
const when = (text) => text.replace("T", " ").replace(/\.\d+/, "").replace(/(\+00:00|Z)$/, "");

const SHOWN = 5000; // milliseconds that news stay; problems stay until the next words

function say(text, problem = false) {
  $("status").textContent = text;
  $("status").classList.toggle("problem", problem);
  clearTimeout(say.end);
  if (!problem) say.end = setTimeout(() => { $("status").textContent = ""; }, SHOWN);
}

async function ask(path, options = {}) {
  const headers = { "X-Privgp": "page", ...(options.headers || {}) };
  let response, answer;
  try {
    response = await fetch(path, { ...options, headers });
    answer = response.status === 204 ? {} : await response.json();
  } catch { throw new Error("The server cannot be reached."); }
  if (response.status === 401) window.location = "/";
  if (!response.ok) throw new Error(answer.error || "The request failed.");
  return answer;
}

const send = (path, value, headers = {}) => ask(path, {
  method: "POST",
  headers: { "Content-Type": "application/json", ...headers },
  body: JSON.stringify(value),
});

const ending = (file) => (file.name.toLowerCase().endsWith(".parquet") ? "parquet" : "csv");

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
    try { await action(); } catch (problem) { say(problem.message, true); }
    if (button) button.disabled = false;
  });
}

// A last look at what will be spent; what follows happens once it is agreed to.
function lastLook(facts, follow) {
  for (const [id, text] of Object.entries(facts)) $(id).textContent = text;
  $("spend").onclick = async () => {
    $("last-look").close();
    try { await follow(); } catch (problem) { say(problem.message, true); }
  };
  $("last-look").showModal();
}

trying($("signout"), "click", async () => {
  await ask("/signout", { method: "POST" });
  window.location = "/";
});

trying($("verify"), "click", async () => {
  const { whole, told } = await ask("/api/ledger/verify");
  $("verified").textContent = `${whole ? "✓" : "✗"} ${told}`;
  $("verified").classList.toggle("problem", !whole);
});

// the start: registering and keys

// "0:90" as numbers, "2024-01-01:2024-12-31" as dates
function pairOf(text) {
  const ends = text.split(":").map((end) => end.trim());
  return ends.map(Number).some(Number.isNaN) ? ends : ends.map(Number);
}

// "region=category north|south", "hour=periodic 24", "lat+lon=place EPSG:27700"
function kindOf(text) {
  const [names, said = ""] = text.split("="), [kind, ...more] = said.trim().split(/\s+/), option = more.join(" ");
  const made = { columns: names.trim().split("+"), kind };
  if (option && kind === "category") made.levels = option.split("|");
  if (option && kind === "periodic") made.period = Number(option);
  if (option && kind === "place") made.crs = option;
  return made;
}

// One question per input, answered no at first; one no makes all inputs private.
function askWhatIsPublic() {
  const names = words($("inputs").value);
  const before = new Set(publicInputs());
  $("public-inputs").replaceChildren(...names.map((name, k) => {
    const box = make("input", { type: "checkbox", id: `public-${k}`, value: name });
    box.checked = before.has(name);
    box.addEventListener("change", showPrivateInputs);
    return make("p", { class: "check" }, box, make("label", { for: `public-${k}` }, `Yes, everyone may see ${name} of every person`));
  }));
  showPrivateInputs();
}

const publicInputs = () => [...document.querySelectorAll("#public-inputs input:checked")].map((box) => box.value);

function showPrivateInputs() {
  const names = words($("inputs").value);
  $("private-inputs").hidden = names.length > 0 && publicInputs().length === names.length;
}

if ($("inputs")) $("inputs").addEventListener("input", askWhatIsPublic);

trying($("register"), "submit", async () => {
  if (!$("bounds").value.trim() === !$("classes").value.trim()) {
    throw new Error("Give either the bounds of the output or its classes.");
  }
  const file = $("table").files[0];
  say("Uploading …");
  const kept = await ask(`/api/tables?ending=${ending(file)}`, { method: "POST", body: file });
  const asked = {
    name: $("name").value.trim(), table: kept.table, inputs: words($("inputs").value),
    epsilon: Number($("epsilon").value), delta: Number($("delta").value), kinds: words($("kinds").value).map(kindOf),
  };
  const outputs = words($("output").value), bounds = words($("bounds").value);
  asked.output = outputs.length > 1 ? outputs : $("output").value.trim();
  if (bounds.length) asked.bounds = $("bounds").value.includes(":") ? bounds.map(pairOf) : bounds.map(Number);
  if ($("max-change").value) asked.max_change = Number($("max-change").value);
  if ($("likelihood").value !== "gaussian") asked.likelihood = $("likelihood").value;
  if ($("exposure").value.trim()) asked.exposure = $("exposure").value.trim();
  if ($("classes").value.trim()) asked.classes = words($("classes").value);
  if ($("groups").value.trim()) asked.groups = $("groups").value.trim();
  asked.public_inputs = publicInputs();
  if (!$("private-inputs").hidden) {
    if (!$("x-bounds").value.trim()) throw new Error("Give the bounds of the private inputs, or state that everyone may see them.");
    asked.protect = "records";
    asked.public_inputs = [];
    asked.x_bounds = words($("x-bounds").value).map(pairOf);
  }
  await send("/api/datasets", asked);
  window.location = `/datasets/${encodeURIComponent(asked.name)}`;
});

async function showKeys() {
  const keys = await ask("/api/keys");
  fill($("keys"), keys.map((key) => {
    const revoke = make("button", { type: "button", "aria-label": `Revoke the key of ${key.name}` }, "Revoke");
    trying(revoke, "click", async () => {
      if (!window.confirm(`Revoke the key of ${key.name}? Its jobs that wait are not carried out.`)) return;
      await ask(`/api/keys/${key.id}`, { method: "DELETE" });
      await showKeys();
    });
    return row(
      key.name, key.role, (key.datasets || []).join(", ") || (key.role === "custodian" ? "all" : "none"),
      when(key.made_at), key.revoked_at ? `revoked ${when(key.revoked_at)}` : revoke,
    );
  }));
  const named = Object.fromEntries(keys.map((key) => [key.id, key.name]));
  fill($("events"), (await ask("/api/events")).map((each) => row(
    when(each.at), named[each.key] || each.key, each.kind, named[each.about] || each.about,
  )));
}

async function showUnusedTables() {
  const unused = await ask("/api/tables");
  $("unused").hidden = !unused.length;
  $("unused-tables").replaceChildren(...unused.map((each) => {
    const button = make("button", { type: "button", "aria-label": `Delete ${each.table}` }, "Delete");
    trying(button, "click", async () => {
      await ask(`/api/tables/${encodeURIComponent(each.table)}`, { method: "DELETE" });
      await showUnusedTables();
    });
    return make("li", {}, `${each.table} `, button);
  }));
}

trying($("add-key"), "submit", async () => {
  const asked = {
    name: $("key-name").value.trim(), role: $("key-role").value, datasets: words($("key-datasets").value),
  };
  if ($("key-days").value) asked.days = Number($("key-days").value);
  const made = await send("/api/keys", asked);
  $("new-key").textContent = `Shown this once: ${made.key}`;
  await showKeys();
});

if ($("keys")) {
  Promise.all([showKeys(), showUnusedTables()]).catch((problem) => say(problem.message, true));
}

// a dataset: planner, plans, releases, ledger

const dataset = $("dataset") && $("dataset").dataset;
const under = dataset && `/api/datasets/${encodeURIComponent(dataset.name)}`;
let compared = null, left = 0;

// Downwards to two digits, so that it still fits.
function rounded(value) {
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.floor(value / step + 1e-9) * step).toPrecision(2));
}

function settings() {
  const asked = { delta: Number($("plan-delta").value), mechanism: $("mechanism").value };
  asked.hyperparameters = $("hyperparameters").value;
  if ($("inducing").value) asked.inducing = Number($("inducing").value);
  return asked;
}

// of several outputs there is a number each, and the picture shows the first
const firstOf = (value) => [].concat(value)[0];
const shortAll = (value) => [].concat(value).map(short).join(", ");
const ofOutput = (axis) => (compared.outputs.length > 1 ? ` of ${axis.output}` : "");

const chosen = () => compared.options[Number($("slider").value)];

function errorPicture(colour, narrow) {
  const options = compared.options, now = chosen();
  const layout = frame(colour, ["epsilon", `expected error${ofOutput({ output: compared.outputs[0] })}`], narrow);
  Object.assign(layout.xaxis, { type: "log", tickmode: "array", tickangle: 0 });
  layout.xaxis.tickvals = options.filter((_, k) => k % (narrow ? 3 : 1) === 0).map((each) => each.epsilon);
  layout.yaxis.rangemode = "tozero";
  const x = options.map((each) => each.epsilon);
  const line = { x, mode: "lines", hoverinfo: "skip" };
  return {
    layout,
    traces: [
      { ...line, y: x.map(() => firstOf(compared.error_without_privacy)), line: { color: colour.model, dash: "dash" } },
      {
        ...line, y: options.map((each) => firstOf(each.expected_error)), mode: "lines+markers", hoverinfo: "text",
        text: options.map((each) => `epsilon ${each.epsilon}: ${shortAll(each.expected_error)}`),
        line: { color: colour.privacy, width: 2.5 },
      },
      {
        x: [now.epsilon], y: [firstOf(now.expected_error)], mode: "markers", hoverinfo: "skip",
        marker: { size: 14, color: colour.privacy, line: { color: colour.text, width: 2 } },
      },
    ],
  };
}

const barPicture = (k) => (colour, narrow) => {
  const axis = compared.axes[k], now = chosen();
  const layout = frame(colour, [axis.input, `standard deviation${ofOutput(axis)}`], narrow);
  layout.yaxis.range = [0, 1.05 * Math.max(...compared.options.flatMap((each) => each.bars.flat()))];
  const others = compared.options.filter((each) => each !== now).map((each) => ({
    x: axis.at, y: each.bars[k], mode: "lines", line: { color: colour.line, width: 1 }, opacity: 0.45,
    hoverinfo: "text", text: axis.at.map(() => `epsilon ${each.epsilon}`),
  }));
  const line = { color: colour.privacy, width: 3.5 };
  const text = axis.at.map((at, n) => `epsilon ${now.epsilon}<br>${escaped(axis.input)} ${short(at)}: ±${short(now.bars[k][n])}`);
  return { layout, traces: [...others, { x: axis.at, y: now.bars[k], mode: "lines", line, text, hoverinfo: "text" }] };
};

let planned = [];

function showOption() {
  const option = chosen();
  const told = `Epsilon ${option.epsilon}: expected error ${shortAll(option.expected_error)}; `
    + `${shortAll(compared.error_without_privacy)} without privacy. ${option.noise}`;
  $("buys").textContent = told;
  $("slider").setAttribute("aria-valuetext", told);
  planned.filter(([place]) => place.data).forEach(redraw);
}

async function compare() {
  const epsilons = [...new Set(SHARES.map((share) => rounded(share * left)))];
  const middle = epsilons[Math.floor(epsilons.length / 2)];
  const asked = { ...settings(), epsilon: middle, compare: epsilons };
  compared = await ask(`/api/plans/${await finished(await send(`${under}/plans`, asked))}`);
  $("planner").hidden = false;
  $("slider").max = compared.options.length - 1;
  $("slider").value = compared.options.findIndex((each) => each.epsilon === middle);
  $("options").replaceChildren(...compared.options.map((each) => row(
    String(each.epsilon), shortAll(each.expected_error), each.noise,
  )));
  const errors = plot("The expected error for every epsilon; the table below has the numbers");
  const bars = compared.axes.map((axis) => plot(`Error bars${ofOutput(axis)} along ${axis.input}; the slider changes them`));
  $("errors").replaceChildren(
    legend([["privacy", "with privacy"], ["model", "without privacy"]]), errors,
  );
  $("bars").replaceChildren(...bars);
  planned = [[errors, errorPicture], ...bars.map((place, k) => [place, barPicture(k)])];
  showOption();
  say("");
  $("slider").focus(); // which says what it buys
  await Promise.all(planned.map(([place, picture]) => draw(place, picture)));
}

function release(plan) {
  lastLook({
    "spent-epsilon": String(plan.epsilon), "spent-delta": String(plan.delta),
    "left-before": String(left), "left-after": String(plan.left_after),
    "last-error": shortAll(plan.expected_error),
  }, async () => {
    const once = `page-${plan.id}`; // however often it is pressed, it is one release
    try {
      const job = await send(`${under}/releases`, { plan: plan.id }, { "Idempotency-Key": once });
      window.location = `/releases/${await finished(job)}`;
    } finally { await refresh(); }
  });
}

// A button that sends one request and then shows where things stand.
function acting(title, path, told) {
  const button = make("button", { type: "button" }, title);
  trying(button, "click", async () => {
    await ask(path, { method: "POST" });
    say(told);
    await refresh();
  });
  return button;
}

function next(plan) {
  if (plan.state === "released") return make("a", { href: `/releases/${plan.carried_out_by}` }, "See the release");
  if (plan.state === "running") return "being carried out";
  if (plan.state === "failed") return acting("Try again", `/api/jobs/${plan.job}/retry`, "Trying again. Nothing is charged twice.");
  if (!plan.fits) return "more than is left";
  const reject = acting(plan.state === "approved" ? "Withdraw" : "Reject", `/api/plans/${plan.id}/reject`, "It will not be carried out.");
  if (plan.state === "approved") {
    const button = make("button", { type: "button" }, "Release …");
    button.addEventListener("click", () => release(plan));
    return dataset.custodian ? make("span", {}, button, " ", reject) : button;
  }
  if (!dataset.custodian) return plan.state === "rejected" ? "" : "a custodian must approve it";
  const approve = acting("Approve", `/api/plans/${plan.id}/approve`, "Approved for one release.");
  return plan.state === "rejected" ? approve : make("span", {}, approve, " ", reject);
}

const state = (plan) => ({
  approved: `approved by ${plan.approved_by}`, rejected: `rejected by ${plan.rejected_by}`, failed: `failed: ${plan.error}`,
}[plan.state] || plan.state);

const KINDS = { charge: "charge", answer: "release stored" };

// Every entry names the one before it; that their hashes are right is for the server to check.
function chain(entries) {
  const broken = entries.findIndex((entry, k) => k > 0 && entry.previous !== entries[k - 1].hash);
  if (broken >= 0) return `✗ Entry ${entries[broken].number} does not follow the one before it.`;
  const head = entries.length ? `, up to ${entries[entries.length - 1].hash.slice(0, 12)}…` : "";
  return `✓ ${entries.length} ${entries.length === 1 ? "entry" : "entries"}, each chained to the one before${head}`;
}

async function refresh() {
  const [plans, releases, ledger] = await Promise.all(
    ["plans", "releases", "ledger"].map((what) => ask(`${under}/${what}`)),
  );
  left = ledger.remaining;
  $("left").textContent = short(left);
  $("left-meter").value = left;
  $("compare").disabled = left <= 0;
  if (left <= 0) $("compare").textContent = "Nothing is left to plan with";
  const shown = plans.filter((plan) => !plan.comparison || plan.approved_at);
  $("no-plans").hidden = shown.length > 0;
  $("plans-table").hidden = !shown.length;
  fill($("plans"), shown.map((plan) => row(
    String(plan.epsilon), String(plan.delta), shortAll(plan.expected_error), state(plan), next(plan),
  )));
  $("no-releases").hidden = releases.length > 0;
  $("releases").replaceChildren(...releases.map((each) => make("li", {}, make(
    "a", { href: `/releases/${each.id}` },
    `${each.previous ? "Update" : "Release"} of ${when(each.made_at)}`,
  ))));
  $("chain").textContent = chain(ledger.entries);
  fill($("entries"), ledger.entries.map((entry) => row(
    String(entry.number), KINDS[entry.kind] || entry.kind, when(entry.at), "epsilon" in entry ? short(entry.epsilon) : "",
    "delta" in entry ? String(entry.delta) : "", make("span", { title: entry.hash }, `${entry.hash.slice(0, 12)}…`),
  )));
}

if (dataset) {
  trying($("compare"), "click", compare);
  $("slider").addEventListener("input", showOption);
  trying($("plan"), "click", async () => {
    await finished(await send(`${under}/plans`, { ...settings(), epsilon: chosen().epsilon }));
    await refresh();
    say(dataset.custodian ? "Planned: approve it below." : "Planned: a custodian approves it.");
    $("plans-title").scrollIntoView();
  });
  refresh().catch((problem) => say(problem.message, true));
}

// a release: its view, and an update with new rows

const released = $("release") && `/api/releases/${$("release").dataset.number}`;

let fileKey = ""; // one for every file that is chosen: however often it is sent, it is one update

if ($("new-rows")) {
  $("new-rows").addEventListener("change", () => {
    fileKey = `page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  });
}

trying($("update"), "submit", async () => {
  const file = $("new-rows").files[0];
  const promise = await ask(released);
  const { remaining } = await ask(`/api/datasets/${encodeURIComponent(promise.dataset)}`);
  const costs = $("update").dataset;
  lastLook({ "spent-epsilon": costs.epsilon, "spent-delta": costs.delta, "left-before": String(remaining) }, async () => {
    const headers = { "Idempotency-Key": fileKey };
    const path = `${released}/updates?ending=${ending(file)}`;
    const job = await ask(path, { method: "POST", body: file, headers });
    window.location = `/releases/${await finished(job)}`;
  });
});

if (released) {
  ask(`${released}/view`).then(showView).catch((problem) => {
    $("drawing").textContent = problem.message;
    say(problem.message, true);
  });
}
