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

  const part = document.querySelector("[data-part]");
  let renewing = false;
  const renew = async () => {
    if (document.hidden || renewing || part.contains(document.activeElement)) return; // who is in it is not to lose the place
    renewing = true;
    try {
      const answer = await fetch(part.dataset.part);
      if (answer.ok) part.innerHTML = await answer.text(); // this server's own, escaped there
    } catch { /* the next time */ }
    renewing = false;
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
    if (part && part.dataset.beat) renew();
  };

  if (part && !part.dataset.beat) setInterval(renew, 10000);
})();
