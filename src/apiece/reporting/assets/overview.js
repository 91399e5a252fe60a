"use strict";
/* The first screen: what was run, how good the fits are, what was spent; and the choices of filters. */

function showOverview() {
  const cards = Object.entries(report.facts).map(([title, facts]) => {
    const list = facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]);
    return element("div", { className: "card" }, [element("h2", { text: title }), element("dl", {}, list)]);
  });
  const filter = (id, names) => (name) => {
    $(id).value = String(names.indexOf(name));
    $(id).dispatchEvent(new Event("change"));
    $("points").scrollIntoView();
  };
  cards[Math.min(1, cards.length - 1)].append(bars(report.status_counts, filter("status", report.statuses)));
  if (report.advice_counts.length) {
    const advised = [element("h2", { text: "Advice" }), bars(report.advice_counts, filter("advice", report.advices), "statuses compact")];
    const last = cards.pop();
    cards.push(element("div", { className: "stack" }, [last, element("div", { className: "card" }, advised)]));
  }
  $("facts").replaceChildren(...cards);
  $("notes").replaceChildren(...report.notes.map((text) => element("p", { text })));
  $("made").textContent = `Made by apiece ${report.version}. Values are in units of ${report.metric}; positive means that the point helps.`;
  const [low, high] = report.k_range.map(whole);
  $("lead").textContent = `What each point is expected to change when it joins a training set of k others, in units of ${report.metric}. Sampled from k = ${low} to ${high}; move the size to rank the points anew.`;
  $("caveat").hidden = !report.caveat;
  $("caveat").textContent = report.caveat ?? "";
  charts.loss?.destroy();
  charts.loss = null;
  $("loss").hidden = !report.loss;
  if (report.loss) {
    charts.loss = lossChart($("loss-chart"), report.loss, report.metric);
    const [first, last] = [report.loss.mean[0], report.loss.mean.at(-1)];
    $("loss-chart").setAttribute("aria-label", `Mean loss falls from ${short(first)} to ${short(last)} over the sampled sizes`);
    $("loss-words").textContent = lossWords(report.loss);
  }
}

function lossWords({ curve, curve_k: sizes, low, high, k_range: sampled }) {
  if (!curve) return "";
  const now = curve[sizes.findIndex((k) => k >= sampled[1])];
  const percent = `${Math.round(100 * report.level)}\u00a0%`;
  return `${short(now)} at ${whole(sampled[1])} points; predicted at ${whole(sizes.at(-1))}: ${short(curve.at(-1))} (${percent} interval ${short(low.at(-1))} to ${short(high.at(-1))}).`;
}

/* How many points have each word, as bars; a click lists them. */
function bars(counts, onClick, className = "statuses") {
  const total = report.ids.length;
  const lines = counts.map(([name, count]) => {
    const bar = element("span", { className: "bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * count) / total}%`;
    const line = element("button", { type: "button", text: `${whole(count)} ${name}`, title: "List these points" });
    line.addEventListener("click", () => onClick(name));
    return element("li", {}, [line, bar]);
  });
  return element("ul", { className }, lines);
}

function fillSelects() {
  const fill = (id, names, any) => {
    const before = $(id).value;
    const options = names.map(([code, text]) => element("option", { value: code, text }));
    $(id).replaceChildren(element("option", { value: "", text: any }), ...options);
    $(id).value = before;
  };
  const numbered = (names) => names.map((text, code) => [String(code), text || "none"]);
  const present = new Set(report.status_counts.map(([name]) => name));
  fill("status", numbered(report.statuses).filter(([, text]) => present.has(text)), "any");
  $("label-box").hidden = !report.labels;
  if (report.labels) fill("label", numbered(report.labels), "any");
  $("advice-box").hidden = !report.advices;
  if (report.advices) fill("advice", numbered(report.advices), "any");
}
