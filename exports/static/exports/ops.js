// Keeps a page of the ops site up to date: fetches the same address again and replaces the parts marked `data-live`.
// Without this file everything works; a reload does the same.
"use strict";

(() => {
  const EVERY_MS = 2000;
  const SLOWEST_MS = 30000;
  const pause = document.getElementById("pause");
  if (!pause) return;
  let paused = false;
  let wait = EVERY_MS;

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? pause.dataset.resume : pause.dataset.pause;
    pause.setAttribute("aria-pressed", String(paused));
  });

  // What keeps the keyboard's place when the element that has it is replaced.
  const place = (element) => element.id ? "#" + CSS.escape(element.id)
    : element.hasAttribute("href") ? `a[href="${CSS.escape(element.getAttribute("href"))}"]`
    : element.classList.contains("scroll") ? ".scroll" : null;

  const replace = (part, fresh) => {
    if (part.innerHTML === fresh.innerHTML) return;
    const focused = part.contains(document.activeElement) ? place(document.activeElement) : null;
    const scrolled = part.querySelector(".scroll")?.scrollLeft ?? 0;
    if (part.dataset.say !== fresh.dataset.say) {
      document.getElementById("announcement").textContent = fresh.dataset.say;
      part.dataset.say = fresh.dataset.say;
    }
    part.replaceChildren(...document.importNode(fresh, true).childNodes);
    part.querySelector(".scroll")?.scrollTo({ left: scrolled });
    if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
  };

  const selecting = () => String(document.getSelection()) !== "";

  const update = async () => {
    const response = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
    if (!response.ok) throw new Error(response.status);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const found = fresh.getElementById(part.id);
      if (found) replace(part, found); else part.replaceChildren();
    }
  };

  const tick = async () => {
    if (!paused && !document.hidden && !selecting()) {
      try {
        await update();
        wait = EVERY_MS;
      } catch {
        wait = Math.min(2 * wait, SLOWEST_MS);
      }
    }
    setTimeout(tick, wait);
  };
  setTimeout(tick, wait);
})();
