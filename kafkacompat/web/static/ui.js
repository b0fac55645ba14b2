// Renews the parts of the page that are live: each names its address, and the seconds between two requests.
"use strict";

const MAX_FAILURES = 5;

function renew(id, state) {
  const part = document.getElementById(id);
  if (!part || !part.dataset.live) {
    return;
  }
  const later = () => window.setTimeout(renew, Number(part.dataset.seconds) * 1000 * (1 + state.failures), id, state);
  if (document.hidden) {
    later();
    return;
  }
  fetch(part.dataset.live, { credentials: "same-origin", redirect: "manual" })
    .then((answer) => {
      if (answer.type === "opaqueredirect") {
        // The session has ended: the page itself leads to the login.
        window.location.reload();
        return null;
      }
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      return answer.text();
    })
    .then((text) => {
      if (text === null) {
        return;
      }
      state.failures = 0;
      replace(part, new DOMParser().parseFromString(text, "text/html").getElementById(id));
      later();
    })
    .catch(() => {
      part.classList.add("stale");
      state.failures += 1;
      if (state.failures < MAX_FAILURES) {
        later();
      }
    });
}

function replace(part, renewed) {
  if (!renewed) {
    return;
  }
  part.classList.remove("stale");
  // A reader who selects text or has the focus in this part keeps what is there.
  const selection = document.getSelection();
  const isInUse = part.contains(document.activeElement) || (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  if (!isInUse) {
    part.replaceChildren(...renewed.childNodes);
  }
}

for (const part of document.querySelectorAll("[data-live]")) {
  window.setTimeout(renew, Number(part.dataset.seconds) * 1000, part.id, { failures: 0 });
}
