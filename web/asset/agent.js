// What the form of an agent file does besides htmx.
(() => {
  "use strict";

  // What was asked before somebody typed on would be answered with older texts.
  // Everything is sent again once the typing pauses, or the field is left.
  document.addEventListener("input", (event) => {
    if (!event.target.closest?.("#agent-form")) return;
    for (const id of ["agent-fields", "file"]) document.getElementById(id)?.dispatchEvent(new Event("htmx:abort"));
  });

  // The line of a fault is shown where it is.
  document.addEventListener("click", (event) => {
    const line = Number(event.target.closest?.("[data-line]")?.dataset.line);
    const file = document.getElementById("file");
    if (!line || !file) return;
    event.preventDefault();
    const lines = file.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    file.focus();
    file.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    file.scrollTop = (file.scrollHeight / lines.length) * Math.max(line - 5, 0);
  });
})();
