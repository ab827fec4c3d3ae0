// Updates the overview of a running crawl. Everything except live figures works without JavaScript.
"use strict";
(() => {
  if (document.body.dataset.again) { // data is temporarily missing: reload, but keep what the user is typing
    const typed = () => [...document.querySelectorAll("input, textarea")]
      .some(e => e === document.activeElement || e.value !== e.defaultValue);
    let timer;
    const again = () => {
      timer = setTimeout(() => typed() ? again() : location.reload(), 1000 * document.body.dataset.again);
    };
    again();
    addEventListener("beforeunload", () => clearTimeout(timer)); // do not reload after the user has left
  }

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
    if (document.hidden || renewing || part.querySelector(":focus-visible")) return; // do not move the focus
    renewing = true;
    try {
      const answer = await fetch(part.dataset.part);
      if (answer.ok) {
        const text = await answer.text();
        const at = [...part.querySelectorAll(".scroll")].map(e => e.scrollLeft);
        part.innerHTML = text; // from this server, which escapes it
        part.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = at[i] || 0; });
      }
    } catch { /* try again next time */ }
    renewing = false;
  };

  const live = document.querySelectorAll("[data-live]");
  const was = live.length ? document.querySelector("[data-live=state]").textContent : "";
  let events;
  const heard = e => {
    const news = JSON.parse(e.data);
    if (!news.runs || news.live.state !== was) { // the state changed: load another page
      events.close();
      const kept = new URLSearchParams(location.search);
      for (const said of ["done", "n", "of"]) kept.delete(said);
      location.replace(location.pathname + (kept.size ? "?" + kept : ""));
      return;
    }
    for (const at of live) {
      const text = news.live[at.dataset.live] || "";
      if (at.textContent !== text) at.textContent = text;
    }
    say(news.words);
    if (part && part.dataset.beat) renew();
  };
  const watch = () => { // a hidden page holds no connection: browsers open at most six per server, for all pages
    if (events) events.close();
    events = undefined;
    if (document.hidden) return;
    events = new EventSource(from);
    events.onmessage = heard;
  };
  document.addEventListener("visibilitychange", watch);
  watch();

  if (part && !part.dataset.beat) setInterval(renew, 10000);
})();
