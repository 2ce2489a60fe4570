// The pages work without this file. With it a page that is open follows what
// happens: a stream of hints says that something has changed, and the part of the
// page is asked for again. Where the stream cannot be had the part is asked for every
// 15 seconds. Nothing is replaced under the finger of somebody who uses it.
"use strict";
(() => {
  const gap = 1000; // between two refreshes
  const soon = 200; // for hints that come together
  const part = () => document.querySelector("[data-keep]");
  const named = (id) => document.getElementById(id);

  // Times are in UTC, as in every log; beside them stands what the clock of whoever
  // reads says then, where it says something else.
  const clock = new Intl.DateTimeFormat(undefined, {weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short"});
  const localise = () => {
    for (const t of document.querySelectorAll("time[data-local]:not([data-told])")) {
      const at = new Date(t.dateTime);
      t.dataset.told = "";
      if (isNaN(at) || at.getTimezoneOffset() === 0) continue;
      const here = document.createElement("span");
      here.className = "quiet";
      here.textContent = " = " + clock.format(at);
      t.after(here);
    }
  };

  // Whether somebody is at it: something typed or chosen, opened, or in focus.
  const changed = (c) => c.matches("input[type=checkbox], input[type=radio]") ? c.checked !== c.defaultChecked
    : c.matches("select") ? [...c.options].some((o) => o.selected !== o.defaultSelected) && c.selectedIndex > 0
      : c.type !== "hidden" && c.value !== c.defaultValue;
  const busy = (el) => [...el.querySelectorAll("input, select, textarea")].some(changed)
    || el.querySelector("input[type=checkbox]:checked, details[open]") !== null
    || (el.contains(document.activeElement) && document.activeElement !== document.body);

  let source = null, last = "", over = false, wait = 2000;
  let timer = null, shownAt = 0, says = [], answered = "";
  const live = () => source !== null && source.readyState === EventSource.OPEN;

  const offer = (on) => { const p = named("changed"); if (p) p.hidden = !on; };
  const announce = () => {
    const p = named("says");
    if (p && says.length) p.textContent = says.length > 1 ? "Several things have changed." : says[0];
    says = [];
  };

  const show = () => {
    timer = null;
    const el = part();
    if (!el || document.hidden) return;
    if (busy(el)) {
      offer(true);
      announce();
      schedule(gap); // as soon as they are done with it
      return;
    }
    el.dispatchEvent(new Event("live"));
  };
  const schedule = (least) => {
    if (timer === null) timer = setTimeout(show, Math.max(least, shownAt + gap - Date.now()));
  };

  const heard = (event) => {
    if (event.lastEventId) last = event.lastEventId;
    const told = JSON.parse(event.data);
    says.push(told.says);
    if (told.answered) answered = told.answered;
    schedule(soon);
  };

  // The text of an answer that is on its way; the reply takes its place.
  let of = "", turn = "";
  const piece = (event) => {
    const box = named("coming"), p = JSON.parse(event.data);
    if (!box) return;
    const text = box.querySelector(".said");
    if (p.of !== of) { of = p.of; turn = p.turn; text.textContent = ""; }
    text.textContent += (p.lost ? "…" : "") + p.text;
    box.hidden = false;
  };
  const arrived = () => {
    if (answered !== "" && answered === turn) { const box = named("coming"); if (box) box.hidden = true; }
  };

  const close = () => { if (source) source.close(); source = null; };
  const connect = () => {
    const el = part();
    if (source || over || document.hidden || !el || !el.dataset.live || !window.EventSource) return;
    const url = new URL(el.dataset.live, location.href);
    if (last) url.searchParams.set("after", last);
    const mine = source = new EventSource(url);
    mine.onopen = () => { wait = 2000; };
    mine.addEventListener("ready", (event) => { last = event.lastEventId; });
    mine.addEventListener("hint", heard);
    mine.addEventListener("delta", piece);
    mine.addEventListener("end", () => { over = true; close(); });
    mine.onerror = () => {
      if (mine.readyState !== EventSource.CLOSED) return; // it comes again by itself
      if (source === mine) source = null;
      setTimeout(connect, wait);
      wait = Math.min(wait * 2, 60000);
    };
  };

  document.addEventListener("htmx:before:request", (event) => {
    const el = event.target.closest && event.target.closest("[data-keep]");
    if (!el) return;
    const from = event.detail.ctx && event.detail.ctx.sourceEvent;
    if (document.hidden || busy(el) || (live() && from && from.type === "every")) event.preventDefault();
  });
  document.addEventListener("htmx:before:response", (event) => {
    const el = event.target.closest && event.target.closest("[data-keep]"), answer = event.detail.ctx && event.detail.ctx.response;
    if (!el || !answer || answer.headers.get("HX-Redirect")) return;
    if (answer.status === 200 && !busy(el)) return;
    event.preventDefault(); // an error's page is no part, and what has been touched meanwhile stays
    if (answer.status === 204) offer(true);
    if (answer.status === 204 || answer.status === 200) announce();
    if (answer.status !== 204) schedule(answer.status === 200 ? gap : 5 * gap);
  });
  document.addEventListener("htmx:after:swap", () => {
    shownAt = Date.now();
    localise();
    offer(false);
    announce();
    arrived();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); return; }
    connect();
    if (says.length) schedule(soon);
  });
  localise();
  addEventListener("pagehide", close);
  addEventListener("pageshow", connect);
})();
