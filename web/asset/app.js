// What pages do in the browser that HTML cannot: copy a text, and open and
// close the dialogs that ask first.
(() => {
  "use strict";

  const announce = (text) => {
    const announcer = document.getElementById("announcer");
    if (announcer) announcer.textContent = text;
  };

  // Browsers offer the clipboard on https and localhost only; elsewhere a text
  // is selected and copied as a person would do it.
  const copy = async (element) => {
    const text = "value" in element ? element.value : element.textContent;
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const selection = getSelection();
    if ("select" in element) element.select();
    else selection.selectAllChildren(element);
    const copied = document.execCommand("copy");
    selection.removeAllRanges();
    if (!copied) throw new Error("not copied");
  };

  const onCopy = async (button) => {
    const element = document.querySelector(button.dataset.copy);
    const label = button.querySelector("span") ?? button;
    const before = (button.dataset.label ??= label.textContent);
    let said = "Copied";
    try {
      await copy(element);
    } catch {
      said = "Not copied";
    }
    label.textContent = said;
    announce(said);
    setTimeout(() => {
      label.textContent = before;
      announce("");
    }, 2000);
  };

  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const button = event.target.closest("[data-copy], [data-opens], [data-closes]");
    if (button?.dataset.copy) onCopy(button);
    else if (button?.dataset.opens) document.getElementById(button.dataset.opens)?.showModal();
    else if (button) button.closest("dialog")?.close();
    // An open menu closes when something else is chosen.
    for (const menu of document.querySelectorAll("details.menu[open], details.switch[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open], details.switch[open]")) {
      const summary = menu.querySelector("summary");
      if (menu.contains(document.activeElement)) summary.focus();
      menu.open = false;
    }
  });
})();
