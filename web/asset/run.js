// What the pages of runs do in the browser besides what htmx does.
(() => {
  "use strict";

  // A list that was filtered in place keeps its address up to date, so that it
  // can be reloaded and passed on.
  document.addEventListener("htmx:after:swap", (event) => {
    const ctx = event.detail.ctx;
    if (!ctx?.sourceElement?.matches?.("[data-address]")) return;
    const address = new URL(ctx.request.action, location.href);
    for (const [name, value] of [...address.searchParams]) {
      if (!value) address.searchParams.delete(name);
    }
    history.replaceState(history.state, "", address.pathname + address.search);
  });

  // A page that hears nothing from the server must not look as if nothing
  // happened. The extension tries again what was once connected; the first
  // connection is tried again here, by the page's own trigger.
  const notLive = (hidden) => {
    const notice = document.getElementById("not-live");
    if (notice) notice.hidden = hidden;
  };
  let wait = 1000;
  document.addEventListener("htmx:sse:after:connection", () => {
    wait = 1000;
    notLive(true);
  });
  document.addEventListener("htmx:sse:error", () => notLive(false));
  for (const failure of ["htmx:error", "htmx:response:error"]) {
    document.addEventListener(failure, (event) => {
      const live = event.target;
      if (live.id !== "live") return;
      notLive(false);
      // Many pages are not to come back at the same moment, nor often for nothing.
      setTimeout(() => htmx.trigger(live, "again"), wait * (0.7 + 0.6 * Math.random()));
      wait = Math.min(2 * wait, 60000);
    });
  }

  // Ctrl+Enter sends what was written.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
    if (event.target instanceof HTMLTextAreaElement && event.target.matches("[data-submits]")) event.target.form.requestSubmit();
  });
})();
