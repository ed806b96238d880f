// Registering a table, one question per step. A CSV file is looked at in this browser only; it is sent at the end.
"use strict";

const SAMPLE = 200_000; // bytes that are looked at
const KINDS = { number: "a number", date: "a date", category: "a category", boolean: "yes or no", periodic: "a cycle, such as the hour", place: "a place" };
const OUTCOMES = { number: "a number", count: "a count", label: "a label" };
const steps = all(".step"), form = $("register"), known = JSON.parse(form.dataset.known);
let now = 0, columns = [], sent = null; // sent: the file that the server has, and its name there

const lines = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line);
const of = (use) => columns.filter((each) => each.use === use);
const isPublic = () => of("input").every((each) => each.open);
const person = () => (form.elements.people.value === "several" ? $("groups").value : "");
const canFind = () => !person() && of("outcome").length === 1 && of("outcome")[0].kind === "number";
const finds = () => canFind() && $("find").checked;
const FOUND = 0.1; // of epsilon, for bounds that are to be found

form.addEventListener("input", ({ target }) => { if (target.getAttribute("aria-invalid") === "true") wrong(target.id, ""); });

function wrong(id, text) {
  $(`${id}-wrong`).textContent = text;
  const field = $(id);
  if (field && field.matches("input, select, textarea")) field.setAttribute("aria-invalid", text ? "true" : "false");
  if (text && field && field.focus) field.focus();
  return !text;
}

// Cells of CSV as RFC 4180 has it.
function parse(text) {
  const rows = [[]];
  let cell = "", quoted = false;
  for (let k = 0; k < text.length; k += 1) {
    const sign = text[k];
    if (quoted) {
      if (sign === '"' && text[k + 1] === '"') { cell += '"'; k += 1; } else if (sign === '"') quoted = false; else cell += sign;
    } else if (sign === '"') quoted = true;
    else if (sign === ",") { rows[rows.length - 1].push(cell); cell = ""; }
    else if (sign === "\n") { rows[rows.length - 1].push(cell.replace(/\r$/, "")); cell = ""; rows.push([]); }
    else cell += sign;
  }
  rows[rows.length - 1].push(cell);
  return rows.filter((each) => each.length > 1 || each[0]);
}

function kindOf(name, cells) {
  const given = cells.filter((cell) => cell !== ""), every = (test) => given.length > 0 && given.every(test);
  if (every((cell) => !Number.isNaN(Number(cell)))) return /^(lat|lon|lng|latitude|longitude)$/i.test(name) ? "place" : "number";
  if (every((cell) => /^\d{4}-\d\d-\d\d/.test(cell))) return "date";
  if (every((cell) => /^(true|false|yes|no)$/i.test(cell))) return "boolean";
  return new Set(given).size <= Math.max(2, Math.min(50, given.length / 2)) ? "category" : "text";
}

async function readTable(file) {
  if (/\.parquet$/i.test(file.name)) {
    const found = await ask(`/api/tables/${encodeURIComponent(await upload(file))}/columns`);
    return found.map((each) => ({ name: each.name, looks: each.kind, levels: [] }));
  }
  const text = await file.slice(0, SAMPLE).text(), cut = file.size > SAMPLE ? text.slice(0, text.lastIndexOf("\n")) : text;
  const [head, ...rows] = parse(cut);
  if (!head || !rows.length) throw new Error("The table has no rows under its header.");
  if (head.length === 1 && head[0].includes(";")) throw new Error("The cells are separated by semicolons. Save the table with commas between the cells.");
  if (new Set(head).size < head.length) throw new Error("Two columns have the same name. Rename one of them.");
  return head.map((name, k) => {
    const cells = rows.map((each) => each[k] ?? ""), looks = kindOf(name, cells);
    const levels = ["category", "boolean"].includes(looks) ? [...new Set(cells.filter((cell) => cell))].sort() : [];
    return { name, looks, levels, repeats: new Set(cells).size < cells.length, gaps: cells.filter((cell) => !cell.trim()).length };
  });
}

async function upload(file) {
  if (!sent || sent.file !== file) {
    const ending = /\.parquet$/i.test(file.name) ? "parquet" : "csv";
    sent = { file, ...(await ask(`/api/tables?ending=${ending}`, { method: "POST", body: file })) };
  }
  return sent.table;
}

function chooser(label, names, value, changed) {
  const select = make("select", { "aria-label": label }, ...Object.entries(names).map(([key, text]) => make("option", { value: key }, text)));
  select.value = value;
  select.addEventListener("change", () => changed(select.value));
  return select;
}

function showColumns() {
  const uses = { "": "not used", outcome: "outcome: to publish", input: "input: what it depends on", exposure: "population of a count" };
  $("columns").replaceChildren(...columns.map((each) => {
    const kinds = { outcome: OUTCOMES, input: KINDS }[each.use], cells = [
      make("strong", {}, each.name), each.looks,
      chooser(`Use ${each.name} as`, uses, each.use, (use) => { each.use = use; each.kind = usualKind(each); showColumns(); $(`use-${each.name}`)?.focus(); }),
      kinds ? chooser(`Kind of ${each.name}`, kinds, each.kind, (kind) => { each.kind = kind; }) : "",
    ];
    cells[2].id = `use-${each.name}`;
    const made = row(...cells);
    [...made.cells].forEach((cell, k) => cell.setAttribute("data-title", ["Column", "Looks like", "Use it as", "Kind"][k]));
    return made;
  }));
}

function usualKind(each) {
  if (each.use === "outcome") return ["category", "boolean", "text"].includes(each.looks) ? "label" : "number";
  return each.looks === "text" ? "category" : each.looks;
}

function showPublic() {
  const tell = () => {
    $("public-note").textContent = isPublic()
      ? "All inputs are public. The outcome is protected; the inputs of every person are published."
      : "One no makes all inputs private: whole rows are protected. Private inputs need bounds, and cost some accuracy.";
  };
  $("public").replaceChildren(...of("input").map((each, k) => {
    const answers = [["no", false], ["yes", true]].map(([text, open]) => {
      const input = make("input", { type: "radio", name: `open-${k}`, ...(each.open === open ? { checked: "" } : {}) });
      input.addEventListener("change", () => { each.open = open; tell(); });
      return make("label", { class: "check" }, input, text === "no" ? `No, ${each.name} is private` : `Yes, everyone may see ${each.name}`);
    });
    return make("div", { class: "question", role: "radiogroup", "aria-label": `May everyone see ${each.name} of every person?` }, make("span", {}, each.name), make("span", { class: "actions" }, ...answers));
  }));
  tell();
}

function showPeople() {
  const free = columns.filter((each) => !each.use), guess = free.find((each) => /id$|person|patient|subject|name/i.test(each.name));
  const before = $("groups").value;
  $("groups").replaceChildren(...free.map((each) => make("option", {}, each.name)));
  $("groups").value = free.some((each) => each.name === before) ? before : guess?.name ?? free[0]?.name ?? "";
  if (guess?.repeats && !columns.asked) {
    form.elements.people.value = "several";
    $("person").hidden = false;
    $("repeats").textContent = `The column ${guess.name} holds some values more than once, as if a person had several rows.`;
  }
  columns.asked = true;
}

const idOf = (each, key) => `${key}-${columns.indexOf(each)}`;
const problemOf = (id) => make("span", { class: "wrong", id: `${id}-wrong`, role: "alert" });
const field = (each, key, label, options = {}) => {
  const id = idOf(each, key), input = make("input", { id, "aria-describedby": `${id}-wrong`, ...options });
  input.value = each[key] ?? "";
  input.addEventListener("input", () => { each[key] = input.value.trim(); });
  return make("p", {}, make("label", { for: id }, label), input, problemOf(id));
};

function levelsField(each, title) {
  const id = idOf(each, "given"), area = make("textarea", { id, rows: "4", "aria-describedby": `${id}-wrong` });
  area.value = each.given ?? "";
  area.addEventListener("input", () => { each.given = area.value; });
  const fill = make("button", { type: "button", class: "quiet" }, "Fill in from the file");
  fill.addEventListener("click", () => { area.value = each.levels.join("\n"); each.given = area.value; });
  const hint = make("span", { class: "hint" }, "One per line. Everyone sees this list: remove values that only one person could have.");
  return make("div", { class: "bound" }, make("label", { for: id }, title, hint), area, problemOf(id), ...(each.levels.length ? [make("p", {}, fill)] : []));
}

function boundsField(each, title) {
  const type = each.kind === "date" ? "date" : "number", options = { type, ...(type === "number" ? { step: "any" } : {}) };
  const extra = [];
  if (each.use === "outcome" && finds()) {
    const known = field(each, "low", `Lowest ${each.name}, if it is known`, { ...options, placeholder: "0 for costs and durations" });
    return make("div", { class: "bound" }, make("h3", {}, title), make("p", { class: "soft" }, "Its bounds are found when you register."), known);
  }
  if (each.use === "outcome" && each.kind === "count") extra.push(field(each, "change", "One person changes it by at most", { ...options, min: "0", placeholder: "1 for a count of people" }));
  return make("div", { class: "bound" }, make("h3", {}, title), make("div", { class: "columns" }, field(each, "low", `Lowest ${each.name}`, options), field(each, "high", `Highest ${each.name}`, options), ...extra));
}

function showBounds() {
  const made = of("outcome").map((each) => (each.kind === "label" ? levelsField(each, `All labels of ${each.name} that may occur`) : boundsField(each, `Outcome ${each.name}`)));
  for (const each of of("input")) {
    if (each.kind === "periodic") made.push(make("div", { class: "bound" }, field(each, "period", `One cycle of ${each.name} is`, { type: "number", step: "any", placeholder: "24 for hours" })));
    else if (!isPublic() && each.kind === "category") made.push(levelsField(each, `All values of ${each.name} that may occur`));
    else if (!isPublic() && each.kind !== "boolean") made.push(boundsField(each, `Private input ${each.name}`));
  }
  $("search").hidden = !canFind();
  $("bounds").replaceChildren(...made);
}

function showOdds() {
  const epsilon = Number($("epsilon").value), delta = Number($("delta").value);
  const odds = Math.min(1, (Math.exp(epsilon) + delta) / (1 + Math.exp(epsilon)));
  $("odds").textContent = epsilon > 0 ? `After all releases together: an attacker who knows everything else and has to tell which of two values a person has is right at most ${(Math.ceil(1000 * odds) / 10)}% of the time. A coin toss is right 50%.` : "";
}

const bounded = (each) => !["category", "boolean", "periodic"].includes(each.kind);
const ends = (each) => (each.kind === "date" ? [each.low, each.high] : [Number(each.low), Number(each.high)]);

// What is registered, as the JSON endpoint takes it.
function declaration() {
  const outcomes = of("outcome"), inputs = of("input"), label = outcomes[0].kind === "label";
  const places = inputs.filter((each) => each.kind === "place");
  const asked = {
    name: $("name").value.trim(), inputs: inputs.map((each) => each.name), epsilon: Number($("epsilon").value), delta: Number($("delta").value),
    output: outcomes.length > 1 ? outcomes.map((each) => each.name) : outcomes[0].name, kinds: [],
    public_inputs: isPublic() ? inputs.map((each) => each.name) : [],
  };
  if (label) asked.classes = lines(outcomes[0].given);
  else if (finds()) asked.find_bounds = { epsilon: Number((FOUND * asked.epsilon).toPrecision(3)), ...(outcomes[0].low ? { low: Number(outcomes[0].low) } : {}) };
  else asked.bounds = outcomes.length > 1 ? outcomes.map(ends) : ends(outcomes[0]);
  if (outcomes[0].kind === "count") asked.likelihood = "poisson";
  if (outcomes[0].kind === "count" && outcomes[0].change) asked.max_change = Number(outcomes[0].change);
  if (of("exposure").length) asked.exposure = of("exposure")[0].name;
  if (person()) asked.groups = person();
  for (const each of inputs) {
    if (each.kind === "place" && places.length === 2) { if (each === places[0]) asked.kinds.push({ columns: places.map((one) => one.name), kind: "place" }); }
    else if (!["number", "place"].includes(each.kind)) {
      const kind = { columns: [each.name], kind: each.kind };
      if (each.kind === "periodic") kind.period = Number(each.period);
      if (each.kind === "category" && each.given) kind.levels = lines(each.given);
      asked.kinds.push(kind);
    }
  }
  if (!isPublic()) Object.assign(asked, { protect: "records", x_bounds: inputs.filter(bounded).map(ends) });
  if ($("account").value) asked.account = $("account").value;
  if ($("unrelated").checked) asked.unrelated = true;
  return asked;
}

function showSummary() {
  const asked = declaration(), outcomes = of("outcome").map((each) => each.name).join(", "), inputs = asked.inputs.join(", ");
  const facts = [
    ["Name", asked.name], ["Published", `${outcomes} by ${inputs}, with privacy noise`],
    ["Private", isPublic() ? outcomes : `everything in a row: ${outcomes}, ${inputs}`],
    ["Public", isPublic() ? `${inputs} of every person, row by row` : "nothing about a single person"],
    ["Protected", asked.groups ? `all rows of a person together (${asked.groups})` : `the ${isPublic() ? "outcome" : "row"} of every person, who has one row`],
    [asked.classes ? "Labels" : "Bounds", asked.classes ? asked.classes.join(", ") : finds() ? `found with privacy noise, for epsilon ${asked.find_bounds.epsilon}, which is charged when you register` : of("outcome").map((each) => `${each.name} ${each.low} to ${each.high}`).join(", ")],
    ...asked.kinds.filter((each) => each.levels).map((each) => [`Values of ${each.columns[0]}`, `${each.levels.join(", ")}: everyone sees this list`]),
    ...(asked.x_bounds ? [["Bounds of inputs", of("input").filter(bounded).map((each) => `${each.name} ${each.low} to ${each.high}`).join(", ") || "none"]] : []),
    ["Budget", asked.account ? `shared with ${asked.account}: certificates of both name ${asked.account} and state what is left` : `epsilon ${asked.epsilon}, delta ${asked.delta}, permanent`], ["Odds", $("odds").textContent],
  ];
  $("summary").replaceChildren(...facts.flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, text)]));
}

// What is wrong if one of these columns has empty cells.
function gapsOf(used) {
  const found = used.find((each) => each.gaps), rows = found?.gaps === 1 ? "one row" : `${found?.gaps} rows`;
  return found ? `${found.name} is empty in ${rows}. Fill in these cells or delete the rows, then choose the file again.` : "";
}

// Whether a step is answered; what is wrong is said at the field.
const checks = [
  async () => {
    const file = $("table").files[0], name = $("name").value.trim();
    if (!file) return wrong("table", "Choose a table.");
    if (!wrong("table", "")) return false;
    if (!/^[A-Za-z0-9][A-Za-z0-9 _.-]*$/.test(name)) return wrong("name", "Give a name of letters, digits, spaces, and the signs _ . -");
    if (known.includes(name)) return wrong("name", "A dataset of this name is registered already.");
    wrong("name", "");
    if (!columns.length || columns.file !== file) {
      try {
        columns = (await readTable(file)).map((each) => ({ ...each, use: "", kind: "", open: false }));
        columns.file = file;
      } catch (problem) { return wrong("table", problem.message); }
    }
    return true;
  },
  () => {
    const outcomes = of("outcome"), kinds = new Set(outcomes.map((each) => each.kind));
    if (!outcomes.length) return wrong("columns", "Choose an outcome.");
    if (!of("input").length) return wrong("columns", "Choose an input.");
    if (outcomes.length > 1 && (kinds.size > 1 || !kinds.has("number"))) return wrong("columns", "Several outcomes must all be numbers. Register counts and labels one by one, with the same budget.");
    if (of("exposure").length > 1) return wrong("columns", "A count has one population.");
    return wrong("columns", gapsOf(columns.filter((each) => each.use)));
  },
  () => true,
  () => wrong("groups", form.elements.people.value === "several" && !$("groups").value ? "No column is left that identifies the person." : gapsOf(columns.filter((each) => each.name === person()))),
  () => {
    const inputs = isPublic() ? [] : of("input"), numbers = [...of("outcome").filter((each) => each.kind !== "label" && !finds()), ...inputs.filter(bounded)];
    for (const place of all(".wrong", $("bounds"))) wrong(place.id.replace("-wrong", ""), "");
    for (const each of numbers) {
      for (const [key, word] of [["low", "lowest"], ["high", "highest"]]) {
        if (!each[key]) return wrong(idOf(each, key), `Give the ${word} ${each.name}.`);
      }
      const [low, high] = ends(each);
      if (!(low < high)) return wrong(idOf(each, "high"), `It must be above the lowest ${each.name}.`);
    }
    for (const each of [...of("outcome").filter((one) => one.kind === "label"), ...inputs.filter((one) => one.kind === "category")]) {
      if (lines(each.given ?? "").length < 2) return wrong(idOf(each, "given"), `Give all values of ${each.name} that may occur, at least two.`);
    }
    for (const each of of("input").filter((one) => one.kind === "periodic")) {
      if (!(Number(each.period) > 0)) return wrong(idOf(each, "period"), `Give the length of a cycle of ${each.name}.`);
    }
    return true;
  },
  () => {
    const delta = Number($("delta").value);
    return wrong("epsilon", Number($("epsilon").value) > 0 ? "" : "Epsilon must be above 0.") && wrong("delta", delta >= 0 && delta < 1 ? "" : "Delta must be between 0 and 1.");
  },
  () => true,
];
const shows = [() => {}, showColumns, showPublic, showPeople, showBounds, showOdds, showSummary];

function go(to) {
  steps[now].hidden = true;
  now = to;
  shows[now]();
  steps[now].hidden = false;
  $("back").hidden = now === 0;
  $("next").textContent = now === steps.length - 1 ? "Register" : "Next";
  $("register-wrong").textContent = "";
  [...$("steps").children].forEach((each, k) => {
    each.classList.toggle("done", k < now);
    if (k === now) each.setAttribute("aria-current", "step"); else each.removeAttribute("aria-current");
  });
  steps[now].querySelector("h2").focus();
}

// The step that a sentence of the server belongs to.
const stepOf = (text) => ({ name: 0, table: 0, bounds: 4, levels: 4, classes: 4, epsilon: 5, delta: 5, account: 5 }[(text.match(/name|table|x_bounds|bounds|levels|classes|epsilon|delta|account/) || [])[0]] ?? null);

trying(form, "submit", async () => {
  if (!(await checks[now]())) return;
  if (now < steps.length - 1) { go(now + 1); return; }
  try {
    say("Uploading …");
    const asked = { ...declaration(), table: await upload($("table").files[0]) };
    try { await send("/api/datasets", asked); } catch (problem) {
      await ask(`/api/tables/${asked.table}`, { method: "DELETE" }).catch(() => {}); // of no dataset
      throw problem;
    }
    window.location = `/datasets/${encodeURIComponent(asked.name)}`;
  } catch (problem) {
    say("");
    const step = stepOf(problem.message);
    if (step !== null) go(step);
    $("register-wrong").textContent = problem.message;
  }
});

$("find").addEventListener("change", showBounds);
$("back").addEventListener("click", () => go(now - 1));
$("epsilon").addEventListener("input", showOdds);
$("delta").addEventListener("input", showOdds);
$("account").addEventListener("change", () => {
  const { epsilon, delta } = $("account").selectedOptions[0].dataset;
  if (epsilon) [$("epsilon").value, $("delta").value] = [epsilon, delta];
  showOdds();
});
form.addEventListener("change", (event) => { if (event.target.name === "people") $("person").hidden = !person() && form.elements.people.value !== "several"; });
$("table").addEventListener("change", () => {
  const file = $("table").files[0];
  if (file && !$("name").value) $("name").value = file.name.normalize("NFKD").replace(/\p{M}/gu, "").replace(/\.\w+$/, "").replaceAll("_", " ").replace(/[^A-Za-z0-9 .-]/g, "-");
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  $("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) {
      $("table").files = event.dataTransfer.files;
      $("table").dispatchEvent(new Event("change"));
    }
  });
}
