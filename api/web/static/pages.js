// The pages work without this file. It keeps a list from being refreshed under
// the finger of somebody who is choosing in it.
"use strict";
(() => {
  const busy = (list) => list.querySelector("input[type=checkbox]:checked, details[open]") !== null
    || (list.contains(document.activeElement) && document.activeElement !== document.body);
  document.addEventListener("htmx:before:request", (event) => {
    const list = event.target.closest && event.target.closest("[data-keep]");
    if (list && busy(list)) event.preventDefault();
  });
})();
