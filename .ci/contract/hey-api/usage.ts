// What the author of a client writes against the generated client. It is compiled
// and never run. A line under @ts-expect-error has to be refused: types that have
// become `any` or empty would accept it.
import { createAgent, getAgent } from "./client";
import type { CreateAgentErrors, LoopStatus, TranscriptMessage } from "./client";
import { createClient } from "./client/client";

const client = createClient({ baseUrl: "http://127.0.0.1:8080", auth: () => "ak_key" });

export async function start(): Promise<string> {
  const { data, error, response } = await createAgent({
    client,
    body: {
      name: "Nightly word count",
      template_id: "0197f3a2-5b1c-7d3e-8f40-1a2b3c4d5e6f",
      input_text: null,
      files: [{ filename: "notes.txt", content_base64: "b25lIHR3byB0aHJlZQo=" }],
    },
  });
  if (error !== undefined) {
    throw new Error(`${response?.status}: ${reason(error)}`);
  }
  return data.agent_id;
}

// @ts-expect-error A request needs the template.
export const withoutTemplate = () => createAgent({ client, body: { name: "Nightly word count" } });

// @ts-expect-error A run has an ID.
export const withoutID = () => getAgent({ client, path: {} });

export async function poll(id: string) {
  const { data: run } = await getAgent({ client, path: { agent_id: id }, throwOnError: true });
  // @ts-expect-error A run has no such status.
  const paused = run.loop_status === "paused";
  return { paused, done: isDone(run.loop_status), output: output(run.transcript) };
}

function isDone(status: LoopStatus): boolean {
  switch (status) {
    case "running":
      return false;
    case "finished":
      return true;
    case "technical_error":
    case "terminated":
      throw new Error(status);
    default: {
      const unhandled: never = status;
      return unhandled;
    }
  }
}

function output(transcript: TranscriptMessage[]): string[] {
  return transcript.filter((message) => message.role === "output_from_agent").map((message) => message.text);
}

function reason(refusal: CreateAgentErrors[422]): string {
  if (typeof refusal.detail === "string") {
    return refusal.detail;
  }
  return refusal.detail.map((issue) => `${issue.loc.join(".")}: ${issue.msg} (${issue.type})`).join("\n");
}
