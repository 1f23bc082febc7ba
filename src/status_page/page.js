"use strict";
(() => {
  const live = document.getElementById("live");
  const events = new EventSource("/status/events");
  events.addEventListener("section", (event) => {
    const { id, html } = JSON.parse(event.data);
    const section = document.getElementById(id);
    if (section) section.innerHTML = html;
  });
  events.onopen = () => { live.textContent = "This page is live."; };
  events.onerror = () => { live.textContent = "The service does not answer; this page shows its last state."; };
})();
