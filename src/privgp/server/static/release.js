// A release: its picture, its headline, and an update with new rows.
"use strict";

const number = $("release").dataset.number, released = `/api/releases/${number}`;

// How the release is asked for its value in the middle of the picture, from Python and with curl.
function showSnippets(view) {
  const cells = view.axes.map((axis, i) => {
    const value = axis[Math.floor(axis.length / 2)];
    return view.ticks[i] ? worded(view, i, value) : Number(value.toPrecision(4));
  });
  const columns = JSON.stringify(Object.fromEntries(view.inputs.map((name, i) => [name, [cells[i]]]))), file = $("in-python").dataset.file;
  const predict = view.curve === "probability" ? "probability = model.predict_proba(rows)" : "mean, std = model.predict(rows, return_std=True)";
  $("in-python").textContent = `import privgp\n\nmodel = privgp.load(${JSON.stringify(file)})\nrows = ${columns}\n${predict}\nlow, high = model.interval(rows, 0.9)`;
  $("with-curl").textContent = `curl -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\\n  -d '${JSON.stringify({ points: [cells] })}' \\\n  ${window.location.origin}${released}/predict`;
}

ask(`${released}/view`).then((view) => { showView(view); showSnippets(view); }).catch((problem) => { $("drawing").textContent = problem.message; });

if ($("edit-title")) {
  $("edit-title").addEventListener("click", () => $("title-dialog").showModal());
  $("title-cancel").addEventListener("click", () => $("title-dialog").close());
  trying($("title-form"), "submit", async () => {
    await send(`${released}/title`, { headline: $("headline").value.trim(), unit: $("unit").value.trim() }, {}, "PUT");
    window.location.reload();
  });
}

document.addEventListener("click", (event) => { // a menu closes when one of its entries, or something else, is clicked
  for (const menu of all(".menu[open]")) if (!menu.querySelector("summary").contains(event.target)) menu.open = false;
});

let fileKey = ""; // one for every file that is chosen: however often it is sent, it is one update

if ($("new-rows")) {
  $("new-rows").addEventListener("change", () => {
    fileKey = `page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  });
}

trying($("update"), "submit", async () => {
  const file = $("new-rows").files[0], promise = await ask(released);
  const { remaining } = await ask(`/api/datasets/${encodeURIComponent(promise.dataset)}`);
  lastLook({ ...$("update").dataset, before: short(remaining) }, async () => {
    const ending = /\.parquet$/i.test(file.name) ? "parquet" : "csv";
    const job = await ask(`${released}/updates?ending=${ending}`, { method: "POST", body: file, headers: { "Idempotency-Key": fileKey } });
    window.location = `/releases/${await finished(job)}`;
  });
});
