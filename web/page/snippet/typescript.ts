// Node.js 18 or later, Deno or Bun: a module, without dependencies.
export {};

const url = {{url}};
const key = {{key}};
const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };

// Creates a run. Sent once: every repeated POST starts another run.
const created = await fetch(`${url}/v1/agents`, {
  method: "POST",
  headers,
  signal: AbortSignal.timeout(60_000),
  body: JSON.stringify({
    template_id: {{template}},
    name: "Words of notes.txt",
    input_text: "How many words does notes.txt have?",
    files: [{ filename: "notes.txt", content_base64: btoa("one two three\n") }],
  }),
});
if (created.status !== 201) throw new Error(`${created.status}: ${await created.text()}`);
const run = JSON.parse(await created.text()).agent_id;

// Reads it every 5 seconds while it is running. A GET can be repeated: after 502,
// 503 and lost connections it waits 1, 2, 4 … 30 seconds.
let state;
for (let pause = 1; ; ) {
  const answer = await fetch(`${url}/v1/agents/${run}`, { headers, signal: AbortSignal.timeout(60_000) })
    .then(async (response) => ({ status: response.status, text: await response.text() }))
    .catch(() => ({ status: 0, text: "" })); // No answer came.
  let wait = pause;
  if (answer.status === 200) {
    state = JSON.parse(answer.text);
    if (state.loop_status !== "running") break;
    wait = 5;
    pause = 1;
  } else if ([0, 502, 503].includes(answer.status)) {
    pause = Math.min(pause * 2, 30);
  } else {
    throw new Error(`${answer.status}: ${answer.text}`);
  }
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
}

console.log(state.loop_status); // finished, technical_error or terminated
for (const message of state.transcript) console.log(`${message.role}: ${message.text}`);
