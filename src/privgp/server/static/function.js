// Functions and paths: one is made from a form, and asked at points.
"use strict";

const numbersOf = (text) => text.split(",").map((word) => Number(word.trim()));

trying($("make-function"), "submit", async () => {
  const kind = $("f-kind").value;
  const asked = {
    kind, shape: $("f-shape").value, variance: Number($("f-variance").value),
    lengthscales: numbersOf($("f-lengthscales").value), noise_variance: Number($("f-noise").value),
    epsilon: Number($("f-epsilon").value), delta: Number($("f-delta").value),
  };
  const once = `page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  const path = `/api/datasets/${encodeURIComponent($("make-function").dataset.dataset)}/functions`;
  window.location = `/functions/${await finished(await send(path, asked, { "Idempotency-Key": once }))}`;
});

trying($("ask-function"), "submit", async () => {
  const points = $("points").value.split("\n").filter((line) => line.trim()).map(numbersOf);
  if (points.flat().some(Number.isNaN)) throw new Error("Write numbers separated by commas, one point per line.");
  const { values } = await send(`/api/functions/${$("function").dataset.number}/ask`, { points });
  const paths = Array.isArray(values[0]) ? values : [values];
  $("answers").replaceChildren(...points.map((point, k) => row(
    ...point.map(String), paths.map((path) => short(path[k])).join(", "),
  )));
  $("answered").hidden = false;
});
