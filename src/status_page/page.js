"use strict";
(() => {
  const live = document.getElementById("live");
  const say = (text) => { if (live.textContent !== text) live.textContent = text; };
  let events;
  const show = ({ id, html }) => {
    const section = document.getElementById(id);
    const focused = section.contains(document.activeElement) && document.activeElement.id;
    section.innerHTML = html;
    if (focused) document.getElementById(focused)?.focus();
  };
  const follow = () => {
    events = new EventSource("/status/events");
    events.addEventListener("section", (event) => show(JSON.parse(event.data)));
    events.addEventListener("end", (event) => { events.close(); say(JSON.parse(event.data)); });
    events.onopen = () => say("This page is live.");
    events.onerror = () => say(events.readyState === EventSource.CLOSED
      ? "This page shows its last state. Reload it."
      : "The service does not answer. This page shows its last state.");
  };
  // A hidden page follows nothing.
  document.addEventListener("visibilitychange", () => {
    events?.close();
    if (!document.hidden) follow();
  });
  if (!document.hidden) follow();
  setInterval(() => document.querySelectorAll("[data-ms]").forEach((left) => {
    const ms = Math.max(0, left.dataset.ms - 1000);
    left.dataset.ms = ms;
    if (ms < 60000) left.textContent = `${Math.floor(ms / 1000)} s`;
  }), 1000);
})();
