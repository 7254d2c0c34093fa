// Shows the contract that the page names. No address leads to another server.
"use strict";
(() => {
  // Swagger UI has dark colours, and leaves it to the page to switch them on.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();

  // Swagger UI follows no reference in the parameters of a path as a whole, and
  // shows them without a name. It does in those of an operation, where they mean
  // the same.
  const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
  const parametersToOperations = (text) => {
    let contract;
    try {
      contract = JSON.parse(text);
    } catch {
      return text; // Swagger UI tells what is wrong with it.
    }
    for (const path of Object.values(contract.paths ?? {})) {
      for (const method of methods.filter((method) => path.parameters && path[method])) {
        path[method].parameters = [...path.parameters, ...(path[method].parameters ?? [])];
      }
      delete path.parameters;
    }
    return JSON.stringify(contract);
  };

  const reference = document.getElementById("reference");
  SwaggerUIBundle({
    domNode: reference,
    url: reference.dataset.contract,
    validatorUrl: null,
    deepLinking: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    plugins: [{
      statePlugins: {
        spec: { wrapActions: { updateSpec: (update) => (text) => update(parametersToOperations(text)) } },
      },
    }],
  });
})();
