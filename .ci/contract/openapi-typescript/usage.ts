// What the author of a client writes against the generated types. It is compiled
// and never run. A line under @ts-expect-error has to be refused: types that have
// become `any` or empty would accept it.
import type { components, paths } from "./schema";

type Schemas = components["schemas"];
type CreateAgent = paths["/v1/agents"]["post"];
type GetAgent = paths["/v1/agents/{agent_id}"]["get"];
type JSONOf<T extends { content: { "application/json": unknown } }> = T["content"]["application/json"];

const request: JSONOf<CreateAgent["requestBody"]> = {
  name: "Nightly word count",
  template_id: "0197f3a2-5b1c-7d3e-8f40-1a2b3c4d5e6f",
  input_text: null,
  files: [{ filename: "notes.txt", content_base64: "b25lIHR3byB0aHJlZQo=" }],
};

// @ts-expect-error A request needs the template.
export const withoutTemplate: Schemas["PublicCreateAgentRequest"] = { name: "Nightly word count" };

// @ts-expect-error A file needs its content.
export const withoutContent: Schemas["PublicAgentFileInput"] = { filename: "notes.txt" };

// @ts-expect-error A run has no such status.
export const unknownStatus: Schemas["LoopStatus"] = "paused";

export async function start(server: string, key: string): Promise<string> {
  const response = await fetch(`${server}/v1/agents`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(request),
  });
  if (response.status === 422) {
    const refusal: JSONOf<CreateAgent["responses"][422]> = await response.json();
    throw new Error(reason(refusal));
  }
  const created: JSONOf<CreateAgent["responses"][201]> = await response.json();
  return created.agent_id;
}

export async function poll(server: string, key: string, id: GetAgent["parameters"]["path"]["agent_id"]) {
  const response = await fetch(`${server}/v1/agents/${id}`, { headers: { "X-API-Key": key } });
  const run: JSONOf<GetAgent["responses"][200]> = await response.json();
  return { done: isDone(run.loop_status), output: output(run.transcript) };
}

function isDone(status: Schemas["LoopStatus"]): boolean {
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

function output(transcript: Schemas["TranscriptMessage"][]): string[] {
  return transcript.filter((message) => message.role === "output_from_agent").map((message) => message.text);
}

function reason(refusal: JSONOf<CreateAgent["responses"][422]>): string {
  if (typeof refusal.detail === "string") {
    return refusal.detail;
  }
  return refusal.detail.map((issue) => `${issue.loc.join(".")}: ${issue.msg} (${issue.type})`).join("\n");
}
