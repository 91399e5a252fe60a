"use strict";
/* Following a collection that is under way. */

async function follow() {
  let version = 0;
  for (;;) {
    try {
      const news = await (await fetch("progress" + location.search, { cache: "no-store" })).json();
      showProgress(news);
      if (news.version !== version && news.version > 0) {
        const bytes = await (await fetch("data" + location.search, { cache: "no-store" })).arrayBuffer();
        show(await readReport(bytes));
        version = news.version;
      }
    } catch (error) {
      $("progress-text").textContent = "The server does not answer any more; what is shown is the last it said.";
    }
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}

let lastHistory = "";

function showProgress(news) {
  $("live").hidden = false;
  $("progress").value = String(news.planned ? news.stored / news.planned : 0);
  const share = news.planned ? Math.floor((100 * news.stored) / news.planned) : 0;
  const fitted = news.version ? `laws fitted to ${whole(news.fitted)} of them` : "no laws yet";
  $("progress-text").textContent = news.trouble || (news.is_complete
    ? `Complete: ${whole(news.stored)} contributions; ${fitted}.`
    : `${share} %: ${whole(news.stored)} of ${whole(news.planned)} contributions; ${fitted}. This page follows.`);
  const text = JSON.stringify(news.history);
  if (news.history.length && text !== lastHistory) {
    lastHistory = text;
    charts.history?.destroy();
    charts.history = historyChart($("history-chart"), news.history);
    const last = news.history.at(-1);
    $("history-chart").setAttribute("aria-label", `Median standard error over value: ${short(last.relative_error)} after ${short(last.samples)} contributions a point`);
  }
}
