// What all pages share: requests, jobs, messages, and buttons that send one request.
"use strict";

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

const send = (path, value, headers = {}, method = "POST") => ask(path, {
  method, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(value),
});

async function finished(job, tell = say) {
  while (job.state === "waiting" || job.state === "running") {
    tell(`${job.doing || "Waiting"} … ${Math.round(100 * job.progress)}%`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    job = await ask(`/api/jobs/${job.id}`);
  }
  if (job.state === "failed") throw new Error(job.error);
  tell("Done.");
  return job.result;
}

// Does something on an event. A problem is told at the form's own place for it, if there is one.
function trying(element, event, action) {
  if (!element) return;
  element.addEventListener(event, async (happened) => {
    happened.preventDefault();
    const button = element.tagName === "BUTTON" ? element : element.querySelector("[type=submit]");
    const wrong = element.querySelector("[data-wrong]");
    if (wrong) wrong.textContent = "";
    if (button) button.disabled = true;
    try { await action(happened); } catch (problem) {
      if (wrong) wrong.textContent = problem.message; else say(problem.message, true);
    }
    if (button) button.disabled = false;
  });
}

for (const button of all("[data-post]")) {
  trying(button, "click", async () => {
    const { post, method = "POST", confirm, done, next } = button.dataset;
    if (confirm && !window.confirm(confirm)) return;
    await ask(post, { method });
    if (done) sessionStorage.setItem("said", done);
    if (next) window.location = next; else window.location.reload();
  });
}

const said = sessionStorage.getItem("said"); // by the page before this one
sessionStorage.removeItem("said");
if (said) say(said);

for (const place of all("[data-watch]")) {
  finished({ state: "running", progress: 0, id: place.dataset.watch }, (text) => { place.textContent = text; })
    .catch(() => {}).finally(() => window.location.reload());
}

// A last look at what will be spent; what follows happens once it is agreed to.
function lastLook(facts, follow) {
  for (const place of all("[data-fact]", $("last-look"))) place.textContent = facts[place.dataset.fact] || "";
  $("spend").onclick = async () => {
    $("last-look").close();
    try { await follow(); } catch (problem) { say(problem.message, true); }
  };
  $("last-look").showModal();
}

for (const button of all("[data-release]")) {
  button.addEventListener("click", () => lastLook(button.dataset, async () => {
    const { release, dataset } = button.dataset;
    const once = { "Idempotency-Key": `page-${release}` }; // however often it is pressed, it is one release
    try {
      const job = await send(`/api/datasets/${encodeURIComponent(dataset)}/releases`, { plan: release }, once);
      const chip = button.closest("tr").querySelector(".chip");
      [chip.className, chip.textContent, button.disabled] = ["chip running", "running", true];
      window.location = `/releases/${await finished(job)}`;
    } catch (problem) {
      sessionStorage.setItem("said", problem.message);
      window.location.reload();
    }
  }));
}

trying($("verify"), "click", async () => {
  const { whole, told } = await ask("/api/ledger/verify");
  $("verified").textContent = `${whole ? "✓" : "✗"} ${told}`;
  $("verified").classList.toggle("problem", !whole);
});

trying($("add-key"), "submit", async () => {
  const datasets = all("#key-datasets input:checked").map((box) => box.value);
  const asked = { name: $("key-name").value.trim(), role: $("key-role").value, datasets };
  if ($("key-identity")?.value.trim()) asked.identity = $("key-identity").value.trim();
  if ($("key-days").value) asked.days = Number($("key-days").value);
  const made = await send("/api/keys", asked);
  $("add-key").reset();
  $("new-key").hidden = false;
  $("new-key").querySelector(".key").textContent = made.key;
});
