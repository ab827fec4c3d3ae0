// Keeps the overview of a crawl that runs up to date. Everything else works without.
"use strict";
(() => {
  const words = document.getElementById("words");
  const from = words && words.dataset.events;
  if (!from) return;

  const put = (parent, name, text) => {
    const e = document.createElement(name);
    e.textContent = text;
    parent.append(e);
  };
  let said = "";
  const say = all => {
    const text = JSON.stringify(all);
    if (text === said) return;
    said = text;
    words.replaceChildren(...all.map(w => {
      const p = document.createElement("p");
      p.className = "word " + w.level;
      put(p, "b", w.what);
      if (w.do) {
        p.append(" ");
        put(p, "span", w.do);
      }
      return p;
    }));
  };

  const live = document.querySelectorAll("[data-live]");
  const was = live.length ? document.querySelector("[data-live=state]").textContent : "";
  const events = new EventSource(from);
  events.onmessage = e => {
    const news = JSON.parse(e.data);
    if (!news.runs || news.live.state !== was) { // other things are to be shown
      events.close();
      location.replace(location.pathname);
      return;
    }
    for (const at of live) {
      const text = news.live[at.dataset.live] || "";
      if (at.textContent !== text) at.textContent = text;
    }
    say(news.words);
  };

  const charts = document.querySelector("[data-part]");
  if (charts) setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(charts.dataset.part);
      if (answer.ok) charts.innerHTML = await answer.text(); // this server's own, escaped there
    } catch { /* the next time */ }
  }, 10000);
})();
